"""The request of a check: the job runs it as the user gave it, and a file with it is checked like any input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from check_calls import Call, FakeScheduler, refused
from fablint.cluster import JobRequest
from fablint.model import Medium
from fablint.workflows import programs
from fablint.workflows.check.request import CheckRequest, read_request, request_text


def inside(request: JobRequest) -> list[str]:
    """The words of the check that the job calls, with its input in a file."""
    words = list(request.command)
    assert words[1:] == ["-P", "-m", "fablint.cli", "check", "--request", "/dev/stdin"]
    file = Path("../request.json")
    file.write_text(request.input)
    return ["check", "--request", str(file)]


def test_the_job_does_the_same_check(
    call: Call, scheduler: FakeScheduler, wanted: list[CheckRequest], tmp_path: Path
) -> None:
    for name in ("t.yaml", "t.conf"):
        Path(name).write_text("x")
    Path("site.toml").write_text("format = 1\n")
    words = ["-w", "n[1-4]", "-x", "n2", "--suite", "bisection", "--unequal", "--ppn", "2", "--budget", "90s"]
    words += [
        *("--transport", "ofi,ucx", "--ofi-provider", "cxi"),
        "--nic",
        "eth2,eth3",
        "--blocks",
        "2",
        "--topology",
        "t.yaml",
        "--from",
        "slurm=t.conf",
        "--site",
        "site.toml",
    ]
    done = call("check", *words, "--submit", "--dry-run", "-o", "night.run")
    assert (done.code, done.out) == (0, "#!/bin/sh\n"), done.err
    (request,) = scheduler.requests
    here = Path.cwd()
    assert (request.hosts, request.ranks, request.run) == (("n1", "n3", "n4"), 2, here / "night.run")
    call("check", *words, "-o", "night.run")
    call(*inside(request))
    first, second = wanted
    assert second == first.in_any_folder()
    assert second.output == here / "night.run"
    assert second.media == first.media == (Medium("ofi", ofi_provider="cxi"), Medium("ucx"))
    assert second.nics == ("eth2", "eth3")
    assert second.sources == (str(here / "t.yaml"), f"slurm={here / 't.conf'}")
    assert second.site == here / "site.toml"
    assert (second.hosts, second.exclude) == ("n[1-4]", "n2")  # excluded hosts are named


def test_the_engine_is_built_before_a_job_or_the_job_has_the_time_for_it(
    call: Call, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    monkeypatch.setattr(programs, "build_first", lambda context: order.append(str(context.compiler.path)))
    monkeypatch.setattr(FakeScheduler, "submit", lambda *_: order.append("submitted") or sys.exit(0))
    submit = ("check", "-w", "n1", "--submit", "--time", "30m")
    for mpicxx, minutes in (("/nowhere/mpicxx", 35), ("/bin/true", 30)):  # true has a --version
        monkeypatch.setenv("FABLINT_MPICXX", mpicxx)
        assert ("may take 5 min longer" in call(*submit, "--dry-run").err) == (minutes == 35)
        assert (scheduler.requests[-1].time_s, order) == (60.0 * minutes, [])
    call(*submit)
    assert order == ["/bin/true", "submitted"]


def test_a_job_takes_the_wishes_of_the_scheduler(call: Call, scheduler: FakeScheduler) -> None:
    call("check", "-w", "n[1-2]", "--submit", "--dry-run", "--partition", "hpc", "--begin", "22:00", "--account", "p1")
    (request,) = scheduler.requests
    assert (request.partition, request.begin, request.account) == ("hpc", "22:00", "p1")
    assert not {"partition", "begin", "account", "submit", "dry_run"} & json.loads(request.input).keys()


@pytest.mark.parametrize(("words", "ranks"), [([], 2), (["--ppn", "1"], 2), (["--ppn", "4"], 4)])
def test_a_job_has_room_for_two_ranks_on_a_host(
    call: Call, scheduler: FakeScheduler, words: list[str], ranks: int
) -> None:
    """Ranks of one host are measured with each other first."""
    call("check", "-w", "n[1-2]", "--submit", "--dry-run", *words)
    assert scheduler.requests[0].ranks == ranks


def test_a_dry_run_leaves_nothing(call: Call, scheduler: FakeScheduler) -> None:
    call("check", "-w", "n[1-2]", "--submit", "--dry-run", "-o", "night.run")
    assert list(Path.cwd().iterdir()) == []


def test_without_a_scheduler(call: Call) -> None:
    refused(call("check", "-w", "n[1-2]", "--submit"), "no scheduler here")


def test_hosts_of_a_hostfile(call: Call, scheduler: FakeScheduler, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n1\nn2\nn3\n")
    call("check", "--hostfile", str(tmp_path / "hosts"), "-x", "n3", "--submit", "--dry-run")
    assert scheduler.requests[0].hosts == ("n1", "n2")


@pytest.mark.parametrize("given", ["a=b.conf", "slurm=run=3.conf"])
def test_files_with_an_equals_sign_are_found_by_the_job(call: Call, scheduler: FakeScheduler, given: str) -> None:
    name, file = ("", given) if given == "a=b.conf" else ("slurm=", "run=3.conf")
    Path(file).write_text("x")
    call("check", "-w", "n[1-2]", "--submit", "--dry-run", "--from", given)
    assert json.loads(scheduler.requests[0].input)["files"] == [f"{name}{Path.cwd() / file}"]


# ------------------------------------------------------------------------------------------------ as a file

FILES_OF_REQUESTS = {
    "not there": (None, "r.json: cannot be read: No such file or directory: name the request of a check"),
    "no text": (b"\xff\xfe", "r.json: is not the request of a check: submit the check again"),
    "no JSON": (b"{", "r.json: is not the request of a check"),
    "too deep": (b"[" * 100_000, "r.json: is not the request of a check"),
    "a list": (b"[]", "r.json: is not the request of a check"),
    "another file": (b"{}", "r.json: is not the request of a check"),
    "another format": (b'{"format": 2}', "r.json: is not the request of a check"),
    "an unknown option": (b'{"format": 1, "ppm": 1}', "r.json: ppm: Unexpected keyword argument: submit the check"),
    "no ranks": (b'{"format": 1, "ppn": 0}', "r.json: ppn: Input should be greater than 0"),
    "one rank": (b'{"format": 1, "ranks": 1}', "r.json: ranks: Input should be greater than or equal to 2"),
    "no number": (b'{"format": 1, "budget": "soon"}', "r.json: budget: Input should be a valid number"),
    "no end": (b'{"format": 1, "budget": Infinity}', "r.json: budget: Input should be a finite number"),
    "no medium": (b'{"format": 1, "media": []}', "r.json: media: Tuple should have at least 1 item"),
    "a transport": (b'{"format": 1, "media": [{"transport": "mpx"}]}', "r.json: media.0: transport 'mpx' is unknown"),
    "a memory": (b'{"format": 1, "media": [{"memory": "ram"}]}', "r.json: media.0: memory 'ram' is unknown"),
    "a suite": (b'{"format": 1, "hosts": "n1", "suite": "quik"}', "there is no suite 'quik': did you mean quick"),
    "two places": (b'{"format": 1, "ranks": 2, "hosts": "n1"}', "--local and --hosts contradict each other"),
    "not local": (b'{"format": 1, "ranks": 2, "files": ["f"]}', "--from does not apply to --local"),
    "two policies": (
        b'{"format": 1, "include_unfit": true, "exclude_unfit": true}',
        "--include-unfit and --exclude-unfit contradict",
    ),
}


@pytest.mark.parametrize("case", FILES_OF_REQUESTS)
def test_a_damaged_or_foreign_request_is_refused_in_one_line(call: Call, case: str) -> None:
    content, line = FILES_OF_REQUESTS[case]
    if content is not None:
        Path("../r.json").write_bytes(content)
    refused(call("check", "--request", "../r.json"), line)


@pytest.mark.parametrize(
    "words", [["-w", "n1"], ["--budget", "3m"], ["--transport", "tcp"], ["--submit"], ["--local", "2"]]
)
def test_a_request_has_all_options(call: Call, words: list[str]) -> None:
    refused(
        call("check", "--request", "r.json", *words), f"--request and {words[0].replace('-w', '--hosts')} contradict"
    )


def test_a_request_is_read_as_it_was_written(tmp_path: Path) -> None:
    names = {"hosts": "n\udcff", "files": ("a\udcff=b",), "topology": Path("t\udcff.yaml"), "blocks": 2, "budget": 0.5}
    request = CheckRequest(**names, media=(Medium("tcp", device="eth0", streams=2), Medium()), launcher="srun")
    (tmp_path / "r.json").write_text(request_text(request))
    assert read_request(tmp_path / "r.json") == request
