"""Half of the hosts of a switch are slow: the hosts are at fault, and not the paths of the switch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import named
from path_cases import Small

from fablint.analyse import diagnose
from fablint.discover import add_assumed_cables
from fablint.model import Run, State

LEFT_OUT = {3}  # of the pairs between s0 and s1 without slow hosts: their sum modulo 4


def slow(fabric: Small, run: Run, hosts: set[int], factor: float) -> Run:
    """The same run with slow hosts, of whose switch few pairs of other hosts with the next switch were measured."""
    (row,) = run.rows
    times, partner = np.array(row.arrays["time_median"]), row.arrays["dst"]
    for rank, column in np.ndindex(partner.shape):
        to = int(partner[rank, column])
        if hosts & {rank, to}:
            times[rank, column] *= factor
        elif {fabric.switch(rank), fabric.switch(to)} == {0, 1} and (rank + to) % 4 in LEFT_OUT:
            times[rank, column] = np.nan
    return replace(run, rows=(replace(row, arrays={**row.arrays, "time_median": times}),))


@pytest.mark.parametrize("factor", [1.2, 10.0])
@pytest.mark.parametrize("cables", ["unknown", "presumed"])
@pytest.mark.parametrize(("fabric", "hosts"), [(Small(12, 2, per_group=4), {0}), (Small(6, 4, per_group=3), {0, 2})])
def test_the_paths_of_slow_hosts_are_not_slow(fabric: Small, hosts: set[int], cables: str, factor: float) -> None:
    topology = fabric.topology if cables == "unknown" else add_assumed_cables(fabric.topology)
    diagnosis = diagnose(slow(fabric, fabric.run(1, "list"), hosts, factor), topology)
    assert named(diagnosis, State.FAULT) == {("host", f"h{host:02}", "both") for host in hosts}
    assert not [finding for finding in diagnosis.verdict.findings if finding.state is State.SUSPECT]


def test_a_slow_path_beside_a_slow_host_is_named() -> None:
    fabric = Small(12, 2, per_group=4, path=lambda s, t, a, b: 0.5 if {s, t} == {4, 5} else 1.0)
    diagnosis = diagnose(slow(fabric, fabric.run(1, "list"), {0}, 10.0), fabric.topology)
    assert named(diagnosis, State.FAULT) == {("host", "h00", "both"), ("cable", "s4=s5", "both")}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cables", ["unknown", "presumed"])
def test_a_path_measured_mostly_with_the_slow_host_is_not_slow(seed: int, cables: str) -> None:
    """In half of the rounds, chance gives some paths three quarters of their pairs from the slow host."""
    fabric = Small(12, 2, per_group=4)
    topology = fabric.topology if cables == "unknown" else add_assumed_cables(fabric.topology)
    run = slow(fabric, fabric.run(seed, "list"), {0}, 10.0)
    (row,) = run.rows
    times = np.array(row.arrays["time_median"])
    times[:, np.random.default_rng(seed).random(times.shape[1]) > 0.5] = np.nan
    diagnosis = diagnose(replace(run, rows=(replace(row, arrays={**row.arrays, "time_median": times}),)), topology)
    assert named(diagnosis, State.FAULT) == {("host", "h00", "both")}
    assert not [finding for finding in diagnosis.verdict.findings if finding.state is State.SUSPECT]
