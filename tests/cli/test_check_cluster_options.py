"""Options of `fablint check`: those that contradict each other are refused in one line, before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from check_calls import Call, FakeScheduler, refused
from fablint.cli.options import SUITES
from fablint.model import Medium
from fablint.plan.check.suites import SUITES as PLANNED
from fablint.workflows.check.request import CheckRequest

SLIP = """format = 1
[[threshold]]
scope = "egde"
kernel = "bandwidth"
size = "1M"
value = "12 GB/s"
"""


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
