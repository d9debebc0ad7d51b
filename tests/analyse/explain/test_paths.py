"""Paths between few switches whose cables are not declared, from data that `fablint.simulate` did not make."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from path_cases import HOP_S, Capacity, Small

from fablint.analyse import Settings, diagnose
from fablint.analyse.explain.paths.view_paths import path_bounds
from fablint.analyse.explain.view import judge_view
from fablint.analyse.explain.view_search import View
from fablint.analyse.observations.samples import select_usable_rows
from fablint.model import Diagnosis, Placement, State
from fablint.text.evidence_sentences import sentences
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

LAYOUTS = ("matrix", "list")


def only(*paths: tuple[int, int], share: float) -> Capacity:
    return lambda s, t, a, b: share if (s, t) in paths else 1.0


def judged(small: Small, seed: int, layout: str, *kernels: str) -> Diagnosis:
    return diagnose(small.run(seed, layout, kernels or ("bandwidth",)), small.topology)


def in_state(diagnosis: Diagnosis, state: State) -> tuple[str, ...]:
    return tuple(
        f"{finding.component} {finding.name}" for finding in diagnosis.verdict.findings if finding.state is state
    )


def outcomes(seeds: range, small: Small, state: State, *kernels: str) -> Counter[tuple[str, ...]]:
    return Counter(in_state(judged(small, seed, layout, *kernels), state) for layout in LAYOUTS for seed in seeds)


@pytest.mark.parametrize(
    ("switches", "paths", "name"),
    [
        (2, [(0, 1)], "link s0>s1"),
        (3, [(0, 1)], "link s0>s1"),
        (3, [(0, 1), (1, 0)], "cable s0=s1"),
        (3, [(0, 1), (0, 2)], "link s0>s[1-2]"),
        (3, [(0, 1), (0, 2), (1, 0), (2, 0)], "cable s0=s[1-2]"),
    ],
)
def test_a_slow_path_is_named_where_each_group_has_one_switch(switches, paths, name, seeds):
    small = Small(switches=switches, path=only(*paths, share=0.8))
    assert outcomes(seeds, small, State.FAULT) == {(name,): 2 * len(seeds)}


def test_both_directions_of_the_only_path_are_never_a_pass(seeds):
    small = Small(switches=2, path=lambda *_: 0.8)
    assert outcomes(seeds, small, State.CONFOUNDED) == {("cable s0=s1",): 2 * len(seeds)}
    diagnosis = judged(small, 0, "matrix")
    assert (diagnosis.verdict.exit_code, in_state(diagnosis, State.FAULT)) == (3, ())


def test_thinner_cables_between_all_switches_are_a_note():
    diagnosis = judged(Small(path=lambda *_: 0.5), 1, "matrix")
    assert diagnosis.verdict.verdict == "pass"
    assert any("-50 % beside messages on a switch" in note for note in note_texts(diagnosis.verdict))


@pytest.mark.parametrize("switches", [2, 3])
def test_sixteen_times_the_latency_is_a_fault_of_the_cable(switches, seeds):
    small = Small(switches=switches, added=lambda a, b: 16 * 1.2e-6 if {a, b} == {0, 1} else HOP_S)
    assert outcomes(seeds, small, State.FAULT, "latency") == {("cable s0=s1",): 2 * len(seeds)}


@pytest.mark.parametrize(("load", "state"), [(1.0, State.FAULT), (30.0, State.CONFOUNDED)])
def test_a_level_that_is_measured_later_is_compared_with_what_other_messages_changed_by(load, state):
    """Messages between switches follow those on switches. From the middle of these on, other jobs may delay all."""
    small = Small(switches=2, each=4, added=lambda *_: 60 * 1.2e-6)
    run = small.run(1, "matrix", ("latency",))
    (row,) = run.rows
    on_switch = np.equal.outer(np.arange(8) // 4, np.arange(8) // 4)
    time, started = np.array(row.arrays["time_median"]), np.array(row.arrays["started"])
    started[:, ~on_switch] += 100.0
    time[:, on_switch & (started[0] > np.nanmedian(started[0, on_switch]))] *= load
    later = replace(row, arrays={**row.arrays, "time_median": time, "started": started})
    diagnosis = diagnose(replace(run, rows=(later,)), small.topology)
    assert in_state(diagnosis, state) == ("cable s0=s1",)
    assert (diagnosis.verdict.verdict == "fault") is (state is State.FAULT)


@pytest.mark.parametrize("is_known", [True, False])
def test_messages_on_switches_at_the_same_time_are_compared_with_whatever_changed(is_known):
    """The start of one measurement may be unknown."""
    small = Small(switches=2, each=4, added=lambda *_: 16 * 1.2e-6)
    run = small.run(1, "matrix", ("latency",))
    (row,) = run.rows
    time, started = np.array(row.arrays["time_median"]), np.array(row.arrays["started"])
    on_switch = np.equal.outer(np.arange(8) // 4, np.arange(8) // 4)
    time[:, on_switch & (started[0] > np.nanquantile(started[0, on_switch], 0.65))] *= 30
    if not is_known:
        started[:, 0, 4] = np.nan
    same = replace(row, arrays={**row.arrays, "time_median": time, "started": started})
    assert in_state(diagnose(replace(run, rows=(same,)), small.topology), State.FAULT) == ("cable s0=s1",)


def test_a_longer_cable_is_a_note():
    small = Small(added=lambda a, b: HOP_S + 300e-9 if {a, b} == {0, 1} else HOP_S)
    for seed in range(5):
        diagnosis = judged(small, seed, "matrix", "latency", "bandwidth")
        assert diagnosis.verdict.verdict == "pass"
        assert any("s0=s1" in note and "longer cable" in note for note in note_texts(diagnosis.verdict))


@pytest.mark.parametrize("per_group", [1, 2, 4])
def test_healthy_paths_of_unknown_lengths_over_slow_switches_are_no_fault(per_group):
    """The switches form a chain s1 s0 s2 s3, which nothing declares; one switch adds nearly what its messages take."""
    place = {1: 0, 0: 1, 2: 2, 3: 3}
    chain = Small(switches=4, each=4, per_group=per_group, added=lambda a, b: abs(place[a] - place[b]) * 1.1e-6)
    for seed in range(5):
        verdict = judged(chain, seed, "matrix", "latency", "bandwidth").verdict
        assert verdict.verdict == "pass", verdict.findings
        assert any("s1=s3" in note and "more switches explain" in note for note in note_texts(verdict))


def test_two_slow_hosts_of_a_switch_are_no_path(seeds):
    small = Small(slow_hosts={0: 1.4, 1: 1.4})
    for name in outcomes(seeds, small, State.FAULT):
        assert not any(one.startswith(("link", "cable")) for one in name)


@pytest.mark.parametrize(
    "rough",
    [{}, {"pair_noise": 0.03}, {"hosts": 0.03}, {"noise": 0.05}, {"busy": (0, 1)}],
    ids=["quiet", "launch effects", "uneven hosts", "noisy", "a neighbour's traffic"],
)
@pytest.mark.parametrize(("switches", "each", "per_group"), [(2, 3, 1), (3, 6, 1), (4, 3, 2)])
def test_a_healthy_fabric_has_no_path_at_fault(rough, switches, each, per_group, seeds):
    small = Small(switches=switches, each=each, per_group=per_group, **rough)
    assert outcomes(seeds, small, State.FAULT, "bandwidth", "latency") == {(): 2 * len(seeds)}


def test_one_of_four_parallel_cables_is_a_group_of_candidates():
    small = Small(each=8, path=lambda s, t, a, b: 0.7 if (s, t) == (0, 1) and _hash(a, b) % 4 == 0 else 1.0)
    for seed in range(5):
        diagnosis = judged(small, seed, "matrix")
        assert in_state(diagnosis, State.FAULT) == ()
        assert in_state(diagnosis, State.SUSPECT) == ("link s0>s1",)
        (finding,) = (finding for finding in diagnosis.verdict.findings if finding.state is State.SUSPECT)
        assert finding.effect == pytest.approx(-0.3, abs=0.02)
        assert "of 64 pairs of hosts across s0>s1 slow" in sentences(finding.evidence)
        (follow_up,) = diagnosis.distances
        slow = [_hash(a, b) % 4 == 0 for a, b in follow_up.pairs.tolist()]
        assert 0.25 <= sum(slow) / len(slow) <= 0.75  # they split the group


def _hash(a: int, b: int) -> int:
    return zlib.crc32(bytes([a, b]))


def test_the_bound_of_a_healthy_path_covers_what_it_loses(seeds):
    small = Small(path=only((0, 1), share=0.97), hosts=0.005)
    covered = total = 0
    for seed in seeds:
        run = small.run(seed)
        placement = Placement.of(run, small.topology)
        (usable,), _ = select_usable_rows(run, placement, Settings())
        view = judge_view(View(usable.flows(usable.row.sizes[0], placement), placement, None, Settings(), views=1))
        bounds = path_bounds(view.paths)
        assert tuple(path.component(placement).label for path in bounds.paths) == tuple(
            f"s{a}>s{b}" for a in range(3) for b in range(3) if a != b
        )
        assert (bounds.host_pairs == 9).all()
        covered += bounds.upper[0] >= 0.03
        total += 1
        assert bounds.upper.max() < 0.1
    assert covered >= 0.95 * total


def test_healthy_paths_are_ok_with_the_largest_loss_that_may_hide():
    diagnosis = judged(Small(), 1, "matrix", "bandwidth", "latency")
    ok = {finding.quantity: finding for finding in diagnosis.verdict.findings if finding.component == "route"}
    assert {one.state for one in ok.values()} == {State.OK}
    assert ok["bandwidth"].name == "s0>s1, s0>s2, s1>s0, s1>s2, s2>s0, s2>s1"
    assert ok["latency"].name == "s0=s1, s0=s2, s1=s2"
    assert -0.1 < ok["bandwidth"].effect < 0 < ok["latency"].effect < 0.1
    assert PINNED["each measured between"] in sentences(ok["bandwidth"].evidence)
    assert diagnosis.verdict.verdict == "pass"


def test_a_path_that_may_hide_a_loss_is_not_judged():
    diagnosis = judged(Small(noise=0.2), 1, "list", "bandwidth")
    assert diagnosis.verdict.verdict == "incomplete"
    (finding,) = [
        finding
        for finding in diagnosis.verdict.findings
        if finding.component == "route" and finding.state is State.NOT_JUDGED
    ]
    assert PINNED["lost bandwidth would"] in sentences(finding.evidence)


@pytest.mark.parametrize("switches", [3, 6])
def test_a_path_between_too_few_pairs_of_hosts_is_not_judged(switches: int):
    """Between few switches each path counts; between many, those that a plan left out are a note."""
    small = Small(switches=switches)
    run = small.run(1)
    (row,) = run.rows
    first, second = slice(0, small.each), slice(small.each, 2 * small.each)
    for name, missing in (("time_median", np.nan), ("count", 0)):
        row.arrays[name][0, first, second] = missing
        row.arrays[name][0, 0, small.each] = 100 if name == "count" else row.arrays[name][0, 0, -1]
    verdict = diagnose(run, small.topology).verdict
    unjudged = [
        finding
        for finding in verdict.findings
        if finding.component == "route" and any(record.kind == "few_path_pairs" for record in finding.evidence)
    ]
    what = "fewer than 3 pairs of hosts"
    if switches == 3:
        assert [one.name for one in unjudged] == ["s0>s1"]
        assert what in sentences(unjudged[0].evidence)
        assert verdict.verdict == "incomplete"
    else:
        assert not unjudged
        assert any(what in note for note in note_texts(verdict))
