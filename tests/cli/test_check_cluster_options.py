"""Options of `fablint check`: those that contradict each other are refused in one line, before anything is done."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from fablint import cluster
from fablint.cli import main
from fablint.cli.options import SUITES
from fablint.cluster import JobRequest
from fablint.errors import IncompleteError
from fablint.model import Medium
from fablint.plan.check.suites import SUITES as PLANNED
from fablint.system import System
from fablint.workflows import programs
from fablint.workflows.check import cluster_check, local_check
from fablint.workflows.check.request import CheckRequest, read_request, request_text

SLIP = """format = 1
[[threshold]]
scope = "egde"
kernel = "bandwidth"
size = "1M"
value = "12 GB/s"
"""


@dataclass
class Called:
    """What a call of fablint came to."""

    code: int
    out: str
    err: str


Call = Callable[..., Called]


@dataclass
class FakeScheduler:
    """Remembers what it should write a script for; submits nothing."""

    name: str = "fake"
    title: str = "Fake"
    requests: list[JobRequest] = field(default_factory=list)

    def script(self, request: JobRequest, place: Path | None = None) -> str:
        self.requests.append(request)
        return "#!/bin/sh\n"

    def submit(self, *_: object) -> NoReturn:
        raise AssertionError("a job was submitted")


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call fablint in an empty directory outside of any job, where nothing can be measured or asked."""
    for name in ("SLURM_JOB_ID", "PBS_NODEFILE", "LSB_JOBID", "FLUX_URI", "PE_HOSTFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("FABLINT_HOME", str(tmp_path / "home"))
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def fake_work(*_: object, **__: object) -> NoReturn:
        raise AssertionError("hosts were asked, or something was measured")

    monkeypatch.setattr(local_check, "check_local", fake_work)
    monkeypatch.setattr(cluster, "everywhere", fake_work)
    monkeypatch.setattr(System, "resolves", lambda _, host: host in ("n1", "n2", "n3", "n4"))

    def run(*words: str) -> Called:
        with pytest.raises(SystemExit) as ended:
            main(words)
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Called(ended.value.code, said.out, said.err)

    return run


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> FakeScheduler:
    fake = FakeScheduler()
    monkeypatch.setattr(cluster, "find_scheduler", lambda _: fake)
    return fake


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[CheckRequest]:
    """What `check_cluster` was asked for: it ends there."""
    found: list[CheckRequest] = []

    def fake_check(_: object, wanted: CheckRequest, output: Path) -> NoReturn:
        found.append(wanted)
        raise IncompleteError("nothing is measured here")

    monkeypatch.setattr(cluster_check, "check_cluster", fake_check)
    return found


def refused(done: Called, line: str) -> None:
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("fablint: ")
    assert done.err.count("\n") == 1
    assert line in done.err
    assert list(Path.cwd().iterdir()) == []


# ------------------------------------------------------------------------------------------------ contradictions

REFUSED = {
    "two places": (["--local", "4", "-w", "n[1-2]"], "--local and --hosts contradict each other: give one of them"),
    "local, exclude": (
        ["--local", "4", "-x", "n1"],
        "--exclude does not apply to --local: it is for a cluster: give one of them",
    ),
    "local, hostfile": (["--local", "4", "--hostfile", "hosts"], "--hostfile does not apply to --local"),
    "local, from": (["--local", "4", "--from", "topology.conf"], "--from does not apply to --local"),
    "local, blocks": (["--local", "4", "--blocks", "2"], "--blocks does not apply to --local"),
    "local, NICs": (["--local", "4", "--nic", "eth0"], "--nic does not apply to --local"),
    "a NIC that is none": (["-w", "n[1-2]", "--nic", "eth0,"], "--nic: '' is not a name of a NIC"),
    "local, ppn": (["--local", "4", "--ppn", "2"], "--ppn does not apply to --local"),
    "local, ranks of a NIC": (["--local", "4", "--ranks-per-nic", "2"], "--ranks-per-nic does not apply to --local"),
    "local, suite": (["--local", "4", "--suite", "edge"], "--suite does not apply to --local"),
    "local, unequal": (["--local", "4", "--unequal"], "--unequal does not apply to --local"),
    "local, submit": (["--local", "4", "--submit"], "--submit does not apply to --local"),
    "local, site": (["--local", "4", "--site", "site.toml"], "--site does not apply to --local"),
    "dry run of nothing": (
        ["-w", "n[1-2]", "--dry-run"],
        "--dry-run requires --submit: give --submit as well",
    ),
    "submit without hosts": (["--submit"], "--submit requires hosts: name them with -w or --hostfile"),
    "submit for excluded hosts only": (["--submit", "-x", "n1"], "--submit requires hosts"),
    "full and a suite": (
        ["-w", "n[1-2]", "--full", "--suite", "edge"],
        "--full and --suite edge contradict each other: give one of them",
    ),
    "full and a suite, submitted": (
        ["-w", "n[1-2]", "--submit", "--full", "--suite", "edge"],
        "--full and --suite edge",
    ),
    "ranks of hosts and of NICs": (
        ["-w", "n[1-2]", "--ppn", "2", "--ranks-per-nic", "1"],
        "--ppn and --ranks-per-nic contradict each other: give one of them",
    ),
    "an unknown suite": (["-w", "n[1-2]", "--suite", "quik"], "'quik' is not one of 'quick', 'edge'"),
    "no ranks": (["-w", "n[1-2]", "--ppn", "0"], "'--ppn': 0 is not in the range x>=1"),
    "a budget of nothing": (["-w", "n[1-2]", "--budget", "0s"], "'0s' is not a duration above 0"),
    "no allocation": ([], "nothing to check: no allocation here: name hosts with -w HOSTS, or use --local N"),
    "an allocation of an unsupported scheduler": (["-x", "n1"], "nothing to check: no allocation here"),
    "no host remains": (["-w", "n[1-2]", "-x", "n[1-2]"], "no host of --hosts remains: exclude fewer of them"),
    "an unknown host is excluded": (["-w", "n[1-2]", "-x", "n7"], "--exclude: n7: not in --hosts"),
    "hosts that do not resolve": (["-w", "n[1-6]"], "n[5-6]: no such host: give names that resolve, or exclude them"),
    "a list that is none": (["-w", "n[1-"], "n[1-"),
    "a transport within hosts": (
        ["-w", "n[1-2]", "--transport", "tcp,cuda-p2p"],
        "transport cuda-p2p connects ranks of one host, and a check of several hosts measures between them: choose "
        "another --transport, or check one host: fablint check --local N --transport cuda-p2p",
    ),
    "a transport within hosts, submitted": (["-w", "n[1-2]", "--submit", "--transport", "hip-p2p"], "hip-p2p connects"),
    "a hostfile that is not there": (["--hostfile", "nope"], "nope"),
    "a place that is not there": (["-w", "n[1-2]", "-o", "no/x.run"], "no is not a directory: create it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line(call: Call, case: str) -> None:
    words, line = REFUSED[case]
    refused(call("check", *words), line)


FOREIGN = {"LSB_JOBID": "LSF", "FLUX_URI": "Flux", "PE_HOSTFILE": "Grid Engine"}


@pytest.mark.parametrize("name", FOREIGN)
def test_an_allocation_that_is_not_read_is_named(call: Call, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "17")
    line = (
        f"this is an allocation of {FOREIGN[name]} ({name}), which fablint does not read: name its hosts with --hosts"
    )
    refused(call("check"), line)


@pytest.mark.parametrize(
    "words", [["--detach"], ["--partition", "hpc"], ["--time", "30m"], ["--begin", "22:00"]], ids=lambda words: words[0]
)
def test_what_is_for_a_job_is_refused_without_one(call: Call, wanted: list[CheckRequest], words: list[str]) -> None:
    refused(call("check", "-w", "n[1-2]", *words), words[0])


def test_a_dry_run_on_this_machine_measures_nothing(call: Call) -> None:
    refused(call("check", "--local", "2", "--dry-run"), "--dry-run")


# ------------------------------------------------------------------------------------------------ files that are wrong

THRESHOLDS: dict[str, tuple[bytes | None, str]] = {
    "not there": (None, "site.toml: No such file or directory"),
    "no text": (b"\xff\xfe\x00", "site.toml: not a text file"),
    "no TOML": (b"[[threshold", "site.toml"),
    "no format": (b"", "site.toml: no format"),
    "a slip": (SLIP.encode(), "unknown scope 'egde': did you mean edge"),
}


def site_file(folder: Path, content: bytes | None) -> Path:
    path = folder / "site.toml"
    if content is not None:
        path.write_bytes(content)
    return path


@pytest.mark.parametrize("case", THRESHOLDS)
def test_a_site_file_that_is_wrong_is_refused_before_any_host_is_asked(call: Call, tmp_path: Path, case: str) -> None:
    content, line = THRESHOLDS[case]
    refused(call("check", "-w", "n[1-2]", "--site", str(site_file(tmp_path, content))), line)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--launcher ssh", "--launcher ssh starts no MPI, which transport mpi of row latency needs: "),
        ("--launcher ssh --transport tcp --mpicxx nope", "an engine without MPI is not built with an mpicxx: "),
        ("--mpicxx nope", "--mpicxx names nope, which is not a program: "),
    ],
)
def test_programs_that_start_no_ranks_are_refused_before_any_host_is_asked(call: Call, words: str, line: str) -> None:
    refused(call("check", "-w", "n[1-2]", *words.split()), line)


FILES = ["--topology", "--from"]


@pytest.mark.parametrize("option", FILES)
def test_files_that_are_not_there_are_refused_before_any_host_is_asked(call: Call, option: str) -> None:
    refused(call("-q", "check", "-w", "n[1-2]", option, "nope"), "nope: cannot be read: No such file or directory")


@pytest.mark.parametrize("option", FILES)
def test_before_a_file_is_refused_nothing_is_announced(call: Call, option: str) -> None:
    refused(call("check", "-w", "n[1-2]", option, "nope"), "nope: cannot be read: No such file or directory")


@pytest.mark.parametrize("option", ["--site", *FILES])
def test_files_that_are_not_there_are_refused_before_a_job_is_submitted(
    call: Call, scheduler: FakeScheduler, option: str
) -> None:
    refused(call("check", "-w", "n[1-2]", "--submit", "--dry-run", option, "nope"), "nope")


# ------------------------------------------------------------------------------------------------ what is asked for


def test_the_suites_are_those_of_the_plan() -> None:
    assert tuple(PLANNED) == SUITES


@pytest.mark.parametrize(
    ("words", "suite"),
    [([], "quick"), (["--suite", "edge"], "edge"), (["--full"], "full"), (["--full", "--suite", "full"], "full")],
    ids=lambda value: "-".join(value) if isinstance(value, list) else value,
)
def test_the_suite(call: Call, wanted: list[CheckRequest], words: list[str], suite: str) -> None:
    done = call("check", "-w", "n[1-2]", *words)
    assert (done.code, done.err) == (3, "fablint: nothing is measured here\n")
    assert [one.planned_suite.name for one in wanted] == [suite]


def test_what_is_asked_for(call: Call, wanted: list[CheckRequest]) -> None:
    words = ["--ppn", "3", "--budget", "2m", "--blocks", "2", "--from", "slurm=t.conf", "--nic", "ens3f0np0,mlx5_1"]
    words += ["--transport", "mpi,tcp", "--device", "10.1.0.0/16", "--streams", "2"]
    call("check", "-w", "n[1-4]", "-x", "n2", *words)
    (found,) = wanted
    assert found.nics == ("ens3f0np0", "mlx5_1")
    assert (found.ppn, found.budget, found.site) == (3, 120.0, None)
    assert found.media == (Medium(), Medium("tcp", device="10.1.0.0/16", streams=2))
    assert (found.hosts, found.exclude) == ("n[1-4]", "n2")
    assert (found.files, found.blocks) == (("slurm=t.conf",), 2)


def test_a_topology_is_a_file_of_the_fabric(call: Call, wanted: list[CheckRequest]) -> None:
    call("check", "-w", "n[1-4]", "--topology", "t.yaml", "--from", "t.conf", "--unequal")
    assert wanted[0].sources == ("t.yaml", "t.conf")
    assert all(level.unequal for level in wanted[0].planned_suite.levels)


# ------------------------------------------------------------------------------------------------ as a job


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
    "two policies": (b'{"format": 1, "force": true, "exclude_unfit": true}', "--force and --exclude-unfit contradict"),
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
