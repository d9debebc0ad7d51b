"""Runs of which most is missing, as a kill or a damaged disk leaves them: no diagnosis computes with nothing."""

from __future__ import annotations

import warnings
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from fablint.analyse import diagnose
from fablint.model import Row, Run, State, Topology
from fablint.simulate import Noise, fat_tree, simulate

FABRIC = fat_tree(4, 2)
SWITCHES = sorted(set(FABRIC.topology.host_switch.values()))
MEASURED = simulate(FABRIC, seed=1, noise=Noise(scale=0.01))


def cut(row: Row, random: Random) -> Row:
    """The row with the cells of some ranks, of its first rounds, or of some pairs."""
    share = random.choice([0.0, 0.02, 0.1, 0.3, 1.0])
    count = np.asarray(row.arrays["count"])
    kept = np.random.default_rng(random.randrange(10**6)).random(count.shape)
    match random.choice(["ranks", "rounds", "pairs"]):
        case "ranks":
            kept = kept[:, :1, :1]
        case "rounds":
            kept = np.arange(count.shape[1])[None, :, None] / count.shape[1]
        case _:
            kept = kept[:, :, :1]
    lost = np.broadcast_to(kept >= share, count.shape)
    arrays = {
        name: np.where(lost, 0 if name == "count" else np.nan, values) if values.shape == count.shape else values
        for name, values in ((name, np.asarray(values)) for name, values in row.arrays.items())
    }
    return replace(row, arrays=arrays)


def cut_run(seed: int) -> Run:
    random = Random(seed)
    rows = [cut(row, random) for row in MEASURED.rows if random.random() < 0.9]
    return replace(MEASURED, rows=tuple(rows))


@pytest.mark.parametrize("topology", [FABRIC.topology, None], ids=["declared", "unknown"])
def test_a_run_of_which_most_is_missing_is_judged_without_a_warning(topology: Topology | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for seed in range(20):
            verdict = diagnose(cut_run(seed), topology).verdict
            assert [finding for finding in verdict.findings if finding.state is State.FAULT] == [], seed


def test_a_switch_is_healthy_only_if_most_of_its_hosts_are_judged() -> None:
    behind = {switch: {host for host, at in FABRIC.topology.host_switch.items() if at == switch} for switch in SWITCHES}
    states = set()
    for seed in range(20):
        findings = diagnose(cut_run(seed), FABRIC.topology).verdict.findings
        unjudged = {
            host for one in findings if any(each.kind == "few_hosts" for each in one.evidence) for host in one.hosts
        }
        for finding in findings:
            if finding.component == "switch":
                states.add(finding.state)
            if finding.component == "switch" and finding.state is State.OK:
                assert finding.effect is not None, seed
                assert all(2 * len(behind[name] & unjudged) < len(behind[name]) for name in finding.nodes), seed
    assert states == {State.OK, State.NOT_JUDGED}
