"""What the declared speed of cables decides: thinner by design is not a fault, and slower than declared is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import pytest
from path_cases import RATE, Small

from fablint.analyse import diagnose
from fablint.model import Cable, Diagnosis, State
from fablint.simulate import Fault, fat_tree, simulate
from finding_cases import note_texts, ref

SEEDS = range(5)
LAYOUTS = ("matrix", "list")


def meshed(switches: int, speeds: Mapping[tuple[int, int], float | None], shares: Mapping[tuple[int, int], float]):
    """Each two switches joined; shares of RATE that cables are declared at (others: RATE) and carry, per direction."""
    cables = []
    for pair in combinations(range(switches), 2):
        speed = speeds.get(pair, 1.0)
        cables.append(Cable(f"s{pair[0]}", f"s{pair[1]}", None if speed is None else speed * RATE))
    carried = {**shares, **{(b, a): share for (a, b), share in shares.items()}}
    return Small(switches, each=4, cables=tuple(cables), path=lambda s, t, *_: carried.get((s, t), 1.0))


def judged(small: Small, seed: int, layout: str) -> Diagnosis:
    return diagnose(small.run(seed, layout), small.topology)


def named(diagnosis: Diagnosis) -> set[str]:
    reported = (State.FAULT, State.SUSPECT, State.CONFOUNDED)
    return {f"{finding.state} {finding.name}" for finding in diagnosis.verdict.findings if finding.state in reported}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("declared", "carried", "verdict", "found"),
    [
        (None, 0.6, "incomplete", {"CONFOUNDED s0=s1"}),  # slower by design or by a fault: undecidable
        (0.6, 0.6, "pass", set()),
        (1.0, 0.6, "fault", {"FAULT s0=s1"}),
        (2.0, 0.6, "fault", {"FAULT s0=s1"}),  # faster than the hosts
        (0.6, 0.3, "fault", {"FAULT s0=s1"}),
        (2.0, 1.0, "pass", set()),
    ],
)
def test_the_only_path_is_judged_by_its_declared_speed(layout, declared, carried, verdict, found):
    small = meshed(2, {(0, 1): declared}, {(0, 1): carried})
    for seed in SEEDS:
        diagnosis = judged(small, seed, layout)
        assert (diagnosis.verdict.verdict, named(diagnosis)) == (verdict, found), seed


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_cable_that_is_declared_at_half_is_no_fault(layout):
    small = meshed(4, {(0, 1): 0.5}, {(0, 1): 0.5})
    for seed in SEEDS:
        diagnosis = judged(small, seed, layout)
        assert (diagnosis.verdict.verdict, named(diagnosis)) == ("pass", set()), seed
        assert any("s0=s1" in note and "declared at 48 Gb/s" in note for note in note_texts(diagnosis.verdict))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cable_slower_than_declared_is_a_fault_among_faster_ones(layout):
    small = meshed(4, {(0, 1): 0.5}, {(0, 1): 0.4})
    for seed in SEEDS:
        assert "FAULT s0=s1" in named(judged(small, seed, layout)), seed


def test_links_that_are_compared_with_each_other():
    tree = fat_tree(4, 3)
    slow = tree.topology.cables[0]
    declared = tuple(
        replace(cable, speed=25e9 * (0.5 if {cable.a, cable.b} == {slow.a, slow.b} else 1.0))
        for cable in tree.topology.cables
    )
    run = simulate(tree, faults=[Fault(ref("cable", slow.a, slow.b), bandwidth_factor=0.5)])
    bare = diagnose(run, tree.topology)
    diagnosis = diagnose(run, replace(tree.topology, cables=declared))
    assert any(f"{slow.a}={slow.b}" in one for one in named(bare))
    assert not named(diagnosis)
    assert any(slow.name in note and "declared at 100 Gb/s" in note for note in note_texts(diagnosis.verdict))


@pytest.mark.parametrize(
    ("share", "order", "is_noted"), [(4.0, "serial", True), (4.0, "parallel", False), (1.05, "serial", False)]
)
def test_a_stream_that_cannot_fill_a_cable_is_stated(share, order, is_noted):
    small = meshed(4, dict.fromkeys(combinations(range(4), 2), share), {})
    verdict = diagnose(small.run(1, "matrix", order=order), small.topology).verdict
    notes = [note for note in note_texts(verdict) if "streams of one pair at a time" in note]
    assert len(notes) == is_noted, note_texts(verdict)
    assert all("6 cables declared faster: a loss of up to 75 %" in note for note in notes)
