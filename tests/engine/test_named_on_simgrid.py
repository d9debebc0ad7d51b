"""The real engine on SimGrid's fabrics, and the verdict on its runs: each injected fault is named, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from simgrid_bed import NEEDS_SIMGRID, make_fabric, run_engine, topology_of

from fablint.analyse import diagnose
from fablint.model import Diagnosis, State
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.store import read_run
from fablint.topology.routed_placement import RoutedPlacement

pytestmark = NEEDS_SIMGRID

# Healthy cables differ by 2 %, and messages by 50 ns.
TREE = ["--topology", "fattree", "--routing", "dmodk"]
LEAVES = ["--topology", "twolevel", "--routing", "ecmp", "--param", "leaf=8", "--param", "spines=4"]
FLY = ["--topology", "dragonfly", "--routing", "static"]
SCATTER = ["--spread", "0.02", "--noise", "50ns"]

LATENCY = "latency --sizes 8 --samples 5 --warmup 1"
STREAM = "bandwidth --sizes 1M --window 2 --samples 3 --warmup 1"
PLANNED = "--pattern rounds --rounds-file rounds/planned.txt"
ALL = "--pattern all-pairs"

Part = tuple[str, str, str | None]  # component, name, direction


@dataclass(frozen=True)
class Case:
    """A fabric with faults, what is measured, and what has to be found."""

    fabric: list[str]
    rows: tuple[str, ...]
    faults: list[str] = field(default_factory=list)
    truth: frozenset[Part] = frozenset()
    hosts: int = 64

    def made(self, folder: Path, engine: Path) -> Diagnosis:
        faults = [word for fault in self.faults for word in ("--fault", fault)]
        make_fabric(folder, [*self.fabric, "--hosts", str(self.hosts), *SCATTER, *faults])
        topology = topology_of(folder)
        rounds = stratified_rounds(RoutedPlacement.on_routes(list(topology.host_switch), topology))
        (folder / "a.run" / "rounds").mkdir(parents=True)
        lines = [" ".join(f"{a}-{b}" for a, b in pairs.tolist()) for pairs in rounds]
        (folder / "a.run" / "rounds" / "planned.txt").write_text("\n".join(lines) + "\n")
        (folder / "net.plan").write_text("\n".join(self.rows) + "\n")
        run_engine(folder, engine, ["--plan", "net.plan", "-q", "-o", "a.run"])
        return diagnose(read_run(folder / "a.run"), topology)


def planned(order: str, *rows: str) -> tuple[str, ...]:
    return tuple(f"{row} {PLANNED} --order {order}" for row in rows)


CASES = {
    "contended global cable": Case(
        FLY,
        planned("parallel", STREAM),
        ["bw:g00r02=g05r01:0.5", "bw:h0007.rx:0.7"],
        frozenset({("cable", "g00r02=g05r01", "both"), ("host", "h0007", "rx")}),
    ),
    "NIC one way": Case(
        TREE, planned("parallel", LATENCY, STREAM), ["bw:h0012.tx:0.5"], frozenset({("host", "h0012", "tx")})
    ),
    "uplink one way": Case(
        TREE,
        (f"{STREAM} {ALL} --order parallel --samples 1",),
        ["bw:p01e00>p01a01:0.5"],
        frozenset({("link", "p01e00>p01a01", None)}),
    ),
    "several": Case(
        TREE,
        planned("serial", LATENCY, STREAM),
        ["bw:h0012.rx:0.7", "bw:p01e00>p01a01:0.5", "bw:h0040:0.6"],
        frozenset({("host", "h0012", "rx"), ("link", "p01e00>p01a01", None), ("host", "h0040", "both")}),
    ),
    "slow to answer": Case(
        TREE, planned("parallel", LATENCY), ["lat:h0012:+1us"], frozenset({("host", "h0012", None)})
    ),
    "global cable": Case(
        FLY,
        planned("serial", LATENCY, STREAM),
        ["bw:g00r02=g05r01:0.5", "bw:h0007.rx:0.7"],
        frozenset({("cable", "g00r02=g05r01", "both"), ("host", "h0007", "rx")}),
    ),
    "128 hosts": Case(
        TREE,
        planned("parallel", LATENCY, STREAM),
        ["bw:p02e00>p02a02:0.5", "bw:h0100.tx:0.6"],
        frozenset({("link", "p02e00>p02a02", None), ("host", "h0100", "tx")}),
        hosts=128,
    ),
    "256 hosts": Case(
        TREE,
        planned("parallel", STREAM),
        ["bw:p02e00>p02a02:0.5", "bw:h0200.rx:0.6"],
        frozenset({("link", "p02e00>p02a02", None), ("host", "h0200", "rx")}),
        hosts=256,
    ),
}


HASHED = Case(LEAVES, (f"{STREAM} {ALL} --order serial --samples 1",), ["bw:leaf01=spine02:0.5"])


def reported(diagnosis: Diagnosis, *states: State) -> set[Part]:
    return {(f.component, f.name, f.direction) for f in diagnosis.verdict.findings if f.state in states}


@pytest.mark.parametrize("name", CASES)
def test_each_fault_is_named_and_nothing_else(name: str, smpi_engine: Path, tmp_path: Path) -> None:
    diagnosis = CASES[name].made(tmp_path, smpi_engine)
    assert reported(diagnosis, State.FAULT) == CASES[name].truth
    assert reported(diagnosis, State.SUSPECT) == set()


def test_a_hashed_uplink_is_found_at_its_leaf(smpi_engine: Path, tmp_path: Path) -> None:
    diagnosis = HASHED.made(tmp_path, smpi_engine)
    (finding,) = [one for one in diagnosis.verdict.findings if one.state is State.FAULT]
    assert (finding.component, finding.direction) == ("cable", "both")
    assert finding.name.startswith("leaf01=spine") or finding.name.endswith("=leaf01")


@pytest.mark.parametrize(("fabric", "order"), [(TREE, "parallel"), (LEAVES, "parallel"), (FLY, "serial")])
def test_a_healthy_platform_is_not_reported(fabric: list[str], order: str, smpi_engine: Path, tmp_path: Path) -> None:
    diagnosis = Case(fabric, planned(order, LATENCY, STREAM)).made(tmp_path, smpi_engine)
    assert reported(diagnosis, State.FAULT, State.SUSPECT) == set()
