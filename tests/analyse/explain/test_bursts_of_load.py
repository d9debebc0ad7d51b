"""Small healthy fabrics that meet long bursts of load (benchmarks/noise/bursts_of_load.py), and a slow cable in one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from fablint.analyse import diagnose
from fablint.model import Row, Run, State
from fablint.simulate import fat_tree, full_mesh

sys.path.append(str(Path(__file__).parents[3] / "benchmarks" / "noise"))

from bursts_of_load import measured_run

FABRIC = full_mesh(4, 4)
SLOW_NETWORK = 10  # times the times of the simulation: a length of cable explains no share of its messages


def in_burst(seed: int, kind: str = "machine", *, faulty: bool = False) -> Run:
    return measured_run(FABRIC, "serial", kind, "long", faulty=faulty, seed=seed)


def with_slow_cable(row: Row, factor: float) -> Row:
    """The row in a slow network, where small messages between the first and the third switch take longer."""
    if row.quantity != "latency":
        return row
    times, target = np.array(row.arrays["time_median"]), np.asarray(row.arrays["dst"])
    ends = {0, 2}
    for rank, partners in enumerate(target.tolist()):
        across = [partner >= 0 and {rank // 4, partner // 4} == ends for partner in partners]
        times[rank, across] *= factor
    return replace(row, arrays={**row.arrays, "time_median": times * SLOW_NETWORK})


def faults(run: Run) -> list[str]:
    return [finding.name for finding in diagnose(run, FABRIC.topology).verdict.findings if finding.state is State.FAULT]


@pytest.mark.parametrize("seed", [99, 149, 160, 208])
def test_messages_on_switches_that_a_burst_slowed_make_no_cable_elsewhere_a_fault(seed: int) -> None:
    assert faults(in_burst(seed)) == []


def suspects(run: Run) -> list[str]:
    found = diagnose(run, FABRIC.topology).verdict.findings
    return [finding.name for finding in found if finding.state is State.SUSPECT]


@pytest.mark.parametrize(("kind", "seed"), [("machine", 19), ("machine", 30), ("host", 2), ("host", 9)])
def test_bursts_make_no_suspects_of_healthy_pairs_and_hosts(kind: str, seed: int) -> None:
    """Each of these runs had one to ten SUSPECT routes, or a SUSPECT host that was slow for a period."""
    assert suspects(in_burst(seed, kind)) == []


def test_a_route_that_is_slow_in_two_rows_is_suspect_beside_bursts_on_hosts() -> None:
    found = [suspects(in_burst(seed, "host", faulty=True)) for seed in range(1, 7)]
    assert sum("h01=h14" in names for names in found) >= 4


def test_a_cable_of_half_more_latency_is_found_in_most_bursts_and_no_other() -> None:
    found = []
    for seed in range(1, 11):
        run = in_burst(seed)
        found.append(faults(replace(run, rows=tuple(with_slow_cable(row, 1.5) for row in run.rows))))
    assert {name for names in found for name in names} == {"s0=s2"}
    assert sum(map(bool, found)) >= 5


TREE = fat_tree(6, 2)


def in_periodic_load(seed: int, order: str) -> Run:
    return measured_run(TREE, order, "machine", "periodic", faulty=False, seed=seed)


@pytest.mark.parametrize(("order", "seed"), [("parallel", 6), ("serial", 7), ("serial", 15)])
def test_pairs_of_two_switches_that_were_measured_in_bursts_are_no_suspects(order: str, seed: int) -> None:
    """Each of these runs had two SUSPECT switches: their pairs are measured together, and met the same bursts."""
    verdict = diagnose(in_periodic_load(seed, order), TREE.topology).verdict
    assert [one.name for one in verdict.findings if one.state in (State.FAULT, State.SUSPECT)] == []


@pytest.mark.parametrize("order", ["serial", "parallel"])
def test_two_switches_of_which_some_pairs_are_slow_at_all_times_are_suspect_in_bursts(order: str) -> None:
    found = []
    for seed in range(1, 7):
        run = in_periodic_load(seed, order)
        member = np.random.default_rng(seed).random((36, 36)) < 0.4  # pairs whose messages take the slow cable
        rows = []
        for row in run.rows:
            times, target = np.array(row.arrays["time_median"]), np.asarray(row.arrays["dst"])
            source = np.arange(len(TREE.hosts))[:, None]
            across = (np.minimum(source, target) // 6 == 1) & (np.maximum(source, target) // 6 == 4) & (target >= 0)
            times[across & member[np.minimum(source, target), np.maximum(source, target)]] *= 1.7
            rows.append(replace(row, arrays={**row.arrays, "time_median": times}))
        findings = diagnose(replace(run, rows=tuple(rows)), TREE.topology).verdict.findings
        found.append({frozenset(one.nodes) for one in findings if one.state in (State.FAULT, State.SUSPECT)})
    leaves = sorted({TREE.topology.host_switch[host] for host in TREE.hosts})
    assert sum(any(leaves[1] in nodes or leaves[4] in nodes for nodes in names) for names in found) >= 3


def test_pairs_of_a_large_burst_are_one_finding_and_one_note() -> None:
    """Ten pairs that were slow in one moment each, and nine while others were slow, were 17 findings."""
    verdict = diagnose(in_burst(30), FABRIC.topology).verdict
    (finding,) = (one for one in verdict.findings if one.component == "route")
    assert (finding.state, finding.evidence[0].kind) == (State.NOT_JUDGED, "slow_block_once")
    (note,) = (note for note in verdict.notes if note.kind == "explained_pairs")
    assert note.values["reason"] == "time"
    assert cast(int, note.values["number"]) > len(cast(list[str], note.values["pairs"])) == 6
