"""`fablint plan --split`, and `analyse` and `report` of the runs of several allocations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from split_cases import SplitFabric

from fablint.model import ComponentRef
from fablint.simulate import Fault
from fablint.simulate.fabrics.kinds import build
from fablint.store import write_run
from fablint.workflows.run_files import save_topology
from fablint_command import Fablint
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

TREE = build("fat-tree", shape="8x2")
NAMES = ("one.run", "two.run")


@pytest.fixture
def fablint(fablint_in_process: Fablint) -> Fablint:
    return fablint_in_process


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs of a fabric with a slow host, the second with domain names; only one has the topology."""
    host = TREE.hosts[20]
    fault = Fault(ComponentRef.of("host", host), "tx", bandwidth_factor=0.7)
    split = SplitFabric(TREE, 2, faults=(fault,), levels=(0.0, 0.03))
    for name, run in zip(NAMES, split.runs(), strict=True):
        run = run if name == NAMES[0] else run.renamed({host: f"{host}.site.org" for host in run.hosts})
        write_run(tmp_path / name, run)
    save_topology(TREE.topology, tmp_path / NAMES[0])
    return tmp_path


def test_several_runs_have_one_verdict(fablint: Fablint, runs: Path) -> None:
    analysed = fablint("analyse", *NAMES, "--json")
    verdict = json.loads(analysed.stdout)
    assert analysed.returncode == 1
    assert verdict["coverage"]["hosts"] == 64
    (fault,) = [finding for finding in verdict["findings"] if finding["state"] == "FAULT"]
    assert TREE.hosts[20] in json.dumps(fault["components"])
    (note,) = [note for note in verdict["notes"] if note["kind"] == "joined_runs"]
    assert note["values"] == {"runs": list(NAMES), "hosts": 64, "shared": 4, "absent": 0}
    page = fablint("report", *NAMES, "-o", "page.html")
    assert page.returncode == 1
    assert TREE.hosts[20] in (runs / "page.html").read_text()
    assert json.loads((runs / "page.verdict.json").read_text())["findings"] == verdict["findings"]
    table = fablint("report", *NAMES, "--table", "pairs", "--row", "bandwidth", "--slowest", "3")
    assert (table.returncode, any(host in table.stdout for host in TREE.hosts)) == (0, True)


def test_a_run_without_a_host_of_the_others_is_refused(fablint: Fablint, runs: Path) -> None:
    other = SplitFabric(TREE, 2).runs()[0]
    write_run(runs / "other.run", other.renamed({host: f"x{host}" for host in other.hosts}))
    refused = fablint("analyse", *NAMES, "other.run")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert PINNED["other.run has no host"] in refused.stderr


def test_a_run_that_is_named_twice_and_a_page_without_a_place_are_refused(fablint: Fablint, runs: Path) -> None:
    assert "one.run is named twice" in fablint("analyse", "one.run", "one.run").stderr
    without = fablint("report", *NAMES)
    assert (without.returncode, without.stderr) == (
        2,
        PINNED["joined runs have no folder"],
    )


def test_plan_writes_the_files_of_each_allocation(fablint: Fablint, runs: Path) -> None:
    topology = str(runs / NAMES[0] / "topology.yaml")
    words = ("plan", "--topology", topology, "--split", "4", "--overlap", "2", "-o", "night.plan", "--json")
    planned = json.loads(fablint(*words).stdout)["allocations"]
    assert len(planned) == 4
    for number, allocation in enumerate(planned, 1):
        hosts = [f"{host} slots=1" for host in allocation["hosts"]]
        assert (runs / f"night-{number}.hosts").read_text().splitlines() == hosts
        assert allocation["command"] == PINNED["fablint measure --hostfile"].filled(number=number)
        (rounds,) = {
            word
            for line in (runs / f"night-{number}.plan").read_text().splitlines()
            for word in line.split()
            if word.startswith(f"night-{number}.plan-")
        }
        assert len((runs / rounds).read_text().splitlines()) == allocation["rounds"]
    assert len({host for allocation in planned for host in allocation["hosts"]}) == 64


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--split", "2"), "--split requires hosts"),
        (("-w", "n[1-16]", "--overlap", "2"), "--overlap requires --split"),
        (("-w", "n[1-16]", "--split", "2", "--full"), "--full and --split contradict each other"),
        (("-w", "n[1-16]", "--split", "2", "--explain"), "--explain and --split contradict each other"),
        (("-w", "n[1-7]", "--split", "2"), "7 hosts cannot be split into 2 allocations"),
    ],
)
def test_what_cannot_be_split_is_refused(fablint: Fablint, words: tuple[str, ...], reason: str) -> None:
    refused = fablint("plan", *words)
    assert (refused.returncode, reason in refused.stderr, refused.stderr.count("\n")) == (2, True, 1)


def test_a_number_of_ranks_beside_a_hostfile_is_refused(fablint: Fablint, tmp_path: Path) -> None:
    (tmp_path / "night.hosts").write_text("n1 slots=2\n")
    refused = fablint("measure", "-n", "2", "--hostfile", "night.hosts", "-r", "latency")
    assert (refused.returncode, "-n and --hostfile contradict each other" in refused.stderr) == (2, True)
