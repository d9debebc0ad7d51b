"""First hosts of allocations, bindings of ranks, and times: causes that are not faults of a component."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from analyse_cases import attributed
from hypothesis import given, settings, strategies as st

from fablint.analyse.null_model.timing import TimedCells, drift_of, find_slow_time, slow_periods
from fablint.analyse.other_questions.confounders import confounded, first_hosts, shared_cores, slow_times
from fablint.analyse.settings import Settings
from fablint.model import Finding, Placement, Run, State
from fablint.simulate import SimulatedRow, full_mesh, simulate
from fablint.text.evidence_sentences import sentences
from finding_cases import texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

SETTINGS = Settings()
PAIRWISE = {"imported": {"tool": "osu", "launch": "pair"}}


def run_of(hosts: int, ranks_per_host: int = 1, **attributes: Any) -> Run:
    run = simulate(full_mesh(1, hosts), rows=[SimulatedRow("latency", (8,))], ranks_per_host=ranks_per_host)
    return attributed(run, **attributes)


def cells(src: np.ndarray, dst: np.ndarray, excess: np.ndarray, started: np.ndarray, size: int = 8) -> TimedCells:
    return TimedCells("latency", "latency", size, src, dst, excess, started)


def all_pairs(hosts: int, seed: int = 1, noise: float = 0.025, slow: Mapping[int, float] | None = None) -> TimedCells:
    """Every pair once in a full schedule, one round a second."""
    row = simulate(full_mesh(1, hosts), rows=[SimulatedRow("latency", (8,))]).rows[0]
    round_of = row.arrays["round"][0]
    src, dst = np.nonzero(round_of >= 0)
    excess = noise * np.random.default_rng(seed).standard_normal(src.size)
    for host, more in (slow or {}).items():
        excess[(src == host) | (dst == host)] += more
    return cells(src, dst, excess, round_of[src, dst].astype(float))


def repeated(view: TimedCells, times: int) -> TimedCells:
    """The same measurements several times, one after the other."""
    src, dst, excess = (np.tile(values, times) for values in (view.src, view.dst, view.excess))
    started = np.concatenate([view.started + at * (view.started.max() + 1) for at in range(times)])
    return cells(src, dst, excess, started)


def hour_glass(hosts: int, first: float, seed: int, groups: int = 1, size: int = 8) -> TimedCells:
    """Pairs in lexicographic order inside each of some allocations, as a script starts them; their first host slow."""
    rng = np.random.default_rng((seed, size))
    pairs = [(a + g * hosts, b + g * hosts) for g in range(groups) for a, b in list(combinations(range(hosts), 2))[:40]]
    src, dst = np.array(pairs).T
    excess = 0.01 * rng.standard_normal(src.size) + np.where(src % hosts == 0, first, 0)
    return cells(src, dst, excess, np.arange(src.size, dtype=float), size)


# ------------------------------------------------------------------------------------------------ first hosts


def test_the_first_host_of_an_allocation_is_confounded_where_each_pair_was_a_launch() -> None:
    run = run_of(18, **PAIRWISE)
    views = [hour_glass(18, 0.015, seed=1, size=size) for size in (8, 1024, 65536)]
    findings, notes = confounded(run, Placement.of(run, None), views, SETTINGS)
    (finding,) = findings
    assert (finding.state, finding.component, finding.name) == (
        State.CONFOUNDED,
        "config",
        "first host of the allocation",
    )
    assert finding.effect == pytest.approx(0.015, abs=0.006)
    assert "pairs with h00 take +" in sentences(finding.evidence)
    assert "in the same direction in 3 of 3 sizes" in sentences(finding.evidence)
    assert finding.log10_e is not None
    assert finding.log10_e > 2
    assert [note for note in texts(notes) if "each pair was a launch of its own" in note]


def test_several_allocations_that_agree_are_confounded_in_one_launch_too() -> None:
    hosts = [f"h{index:02d}" for index in range(72)]
    run = run_of(72, allocations=[hosts[start : start + 18] for start in range(0, 72, 18)])
    view = hour_glass(18, 0.03, seed=1, groups=4)
    (finding,) = first_hosts(run, Placement.of(run, None), [view])
    assert "pairs with h[00,18,36,54] take" in sentences(finding.evidence)
    assert confounded(run, Placement.of(run, None), [view], SETTINGS)[1] == []
    assert first_hosts(run, Placement.of(run, None), [hour_glass(18, 0.005, seed=1, groups=4)]) == []


def test_one_launch_of_one_allocation_has_no_first_host_to_tell_from_a_slow_one() -> None:
    run = run_of(18)
    assert first_hosts(run, Placement.of(run, None), [hour_glass(18, 0.5, seed=1)]) == []


def test_healthy_launches_have_first_hosts_like_others() -> None:
    """One in a hundred may be confounded: it costs a note."""
    run = run_of(18, **PAIRWISE)
    placement = Placement.of(run, None)
    found = sum(bool(first_hosts(run, placement, [hour_glass(18, 0, seed)])) for seed in range(400))
    assert found <= 12


def test_too_few_pairs_say_nothing_about_first_hosts() -> None:
    run = run_of(5, **PAIRWISE)
    src, dst = np.array(list(combinations(range(5), 2))).T
    view = cells(src, dst, np.where(src == 0, 0.1, 0.0), np.arange(10.0))
    assert first_hosts(run, Placement.of(run, None), [view]) == []
    assert first_hosts(run, Placement.of(run, None), []) == []


# ------------------------------------------------------------------------------------------------ bound


@pytest.mark.parametrize(
    ("cores", "sharing"),
    [
        (["0", "1"] * 4, None),
        (["0-7", "0-7"] * 4, None),
        (["", ""] * 4, None),
        (["0", "0"] * 4, "h[00-03]"),
        (["0", "1", "2", "2", "0", "1", "0,1", "0-1"], "h01"),
        (["0-1", "0"] * 3 + ["0", "0"], "h03"),
        (["0,2", "0-3"] * 4, None),
    ],
)
def test_ranks_on_one_cpu_are_confounded(cores: list[str], sharing: str | None) -> None:
    run = run_of(4, ranks_per_host=2, rank_cores=cores)
    findings = shared_cores(run, Placement.of(run, None))
    assert [finding.name for finding in findings] == (["ranks on the same CPU"] if sharing else [])
    assert all(sentences(finding.evidence).startswith(f"on {sharing} more ranks") for finding in findings)


def test_three_ranks_on_two_cpus_are_too_many() -> None:
    run = run_of(2, ranks_per_host=3, rank_cores=["0", "0-1", "1", "0", "1", "2"])
    (finding,) = shared_cores(run, Placement.of(run, None))
    assert sentences(finding.evidence).startswith("on h00 more ranks")


# ------------------------------------------------------------------------------------------------ time


def at_times(view: TimedCells, begin: float, end: float, more: float) -> TimedCells:
    inside = (view.started >= begin) & (view.started <= end)
    return cells(view.src, view.dst, view.excess + np.where(inside, more, 0), view.started)


def places_of(hosts: int) -> Placement:
    return Placement.of(run_of(hosts), None)


def test_a_slow_time_is_no_hosts_fault() -> None:
    view = at_times(all_pairs(32), 8, 12, 0.4)
    (period,) = slow_periods(view, places_of(32), SETTINGS)
    assert (period.begin, period.end) == (8, 12)
    assert period.excess == pytest.approx(0.4, abs=0.02)
    assert period.hosts == 31  # and the one that is in most of its pairs
    (finding,) = slow_times(view, places_of(32), SETTINGS)
    assert (finding.state, finding.component, finding.name) == (State.CONFOUNDED, "config", "time of measurement")
    assert PINNED["from 8 s to 12 s pairs"] in sentences(finding.evidence)


def test_two_slow_times_are_two() -> None:
    view = at_times(at_times(all_pairs(64), 8, 12, 0.4), 40, 45, 0.2)
    first, second = slow_periods(view, places_of(64), SETTINGS)
    assert (first.begin, first.end) == pytest.approx((8, 12), abs=1)  # known to a window of two rounds
    assert (second.begin, second.end) == pytest.approx((40, 45), abs=1)


def test_a_drift_is_distinguished_from_noise() -> None:
    view = all_pairs(32)
    drifting = cells(view.src, view.dst, view.excess + 0.1 * view.started / 31, view.started)
    (finding,) = slow_times(drifting, places_of(32), SETTINGS)
    assert PINNED["changed by +11%"] in sentences(finding.evidence)


@pytest.mark.parametrize(("hosts", "changed"), [(12, 3), (12, 4), (16, 6), (32, 12), (33, 15)])
@pytest.mark.parametrize("total", [0.4, -0.4])
def test_a_drift_of_few_hosts_is_no_drift_of_all(hosts: int, changed: int, total: float) -> None:
    view = repeated(all_pairs(hosts, noise=0.01), 6)
    concerned = (view.src < changed) | (view.dst < changed)
    drifting = cells(
        view.src, view.dst, view.excess + concerned * total * view.started / view.started.max(), view.started
    )
    assert drift_of(drifting, places_of(hosts)) == 0.0


@pytest.mark.parametrize("slow", [{0: 0.3}, {0: 2.0, 1: 1.0}, dict.fromkeys(range(8), 0.5)])
def test_slow_hosts_are_slow_at_any_time(slow: dict[int, float]) -> None:
    view = all_pairs(32, slow=slow)
    assert slow_times(view, places_of(32), SETTINGS) == []


def test_a_slow_first_host_of_a_lexicographic_order_is_no_slow_time() -> None:
    src, dst = np.array(list(combinations(range(64), 2))).T
    excess = 0.02 * np.random.default_rng(1).standard_normal(src.size) + np.where(src == 0, 0.5, 0)
    assert slow_times(cells(src, dst, excess, np.arange(src.size, dtype=float)), places_of(64), SETTINGS) == []


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), hosts=st.integers(8, 48), tails=st.booleans())
def test_healthy_runs_have_no_slow_time(seed: int, hosts: int, tails: bool) -> None:
    view = all_pairs(hosts, seed)
    if tails:
        rng = np.random.default_rng(seed)
        noise = 0.025 * rng.standard_t(3, view.excess.size)
        view = cells(view.src, view.dst, noise + 0.02 * rng.standard_normal(hosts)[view.src], view.started)
    assert slow_times(view, places_of(hosts), SETTINGS) == []


def test_without_times_nothing_is_said() -> None:
    view = all_pairs(16)
    unknown = cells(view.src, view.dst, view.excess, np.full(view.src.size, np.nan))
    assert slow_times(unknown, places_of(16), SETTINGS) == []


def test_a_run_has_one_finding_of_time() -> None:
    run = run_of(32)
    view = at_times(all_pairs(32), 8, 18, 0.4)
    findings, notes = confounded(run, Placement.of(run, None), [view, view], SETTINGS)
    assert [finding.name for finding in findings] == ["time of measurement"]
    assert notes == []


def test_a_slow_time_that_other_times_outvote_is_noted() -> None:
    run = run_of(32)
    view = at_times(all_pairs(32), 8, 12, 0.4)
    findings, notes = confounded(run, Placement.of(run, None), [view], SETTINGS)
    assert findings == []
    assert PINNED["from 8 s to 12 s pairs"] in texts(notes)[0]


# ------------------------------------------------------------------------------------------------ since when

TIME = np.linspace(0, 60, 61)


@pytest.mark.parametrize(
    ("slow", "kind", "text"),
    [
        (TIME >= 0, "always", "slow all the time"),
        (TIME >= 40, "since", "slow since 40 s after the start"),
        (TIME <= 20, "until", "slow until 20 s after the start"),
        ((TIME >= 15) & (TIME <= 30), "between", "slow between 15 s and 30 s after the start"),
        (TIME % 4 == 0, "now and then", "slow now and then (16 of 61 measurements)"),
        ((TIME // 10) % 2 == 0, "now and then", "slow now and then (31 of 61 measurements)"),
        ((TIME >= 40) & (TIME != 50) | (TIME == 7), "since", "slow since 40 s after the start"),
        (TIME != 30, "always", "slow all the time"),
    ],
)
def test_a_fault_has_its_time(slow: np.ndarray, kind: str, text: str) -> None:
    order = np.random.default_rng(1).permutation(TIME.size)
    found = find_slow_time(TIME[order], slow[order])
    assert found is not None
    assert (found.kind, sentences([found.evidence])) == (kind, text)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_chance_has_no_beginning(share: float) -> None:
    """One in 500 by chance."""
    rng = np.random.default_rng(1)
    found = [
        find_slow_time(np.sort(rng.random(count)), rng.random(count) < share) for count in rng.integers(6, 200, 400)
    ]
    assert sum(one is not None and one.kind not in ("always", "now and then") for one in found) <= 4


def test_too_few_measurements_have_no_time() -> None:
    assert find_slow_time(TIME[:5], TIME[:5] > 2) is None
    assert find_slow_time(np.full(61, np.nan), TIME > 2) is None
    assert find_slow_time(TIME, TIME < 0) is None


def test_findings_are_of_the_configuration_only() -> None:
    """No component is reported."""
    run = run_of(32, ranks_per_host=2, rank_cores=["0"] * 64, **PAIRWISE)
    view = at_times(all_pairs(32), 8, 12, 0.4)
    findings: list[Finding] = confounded(run, Placement.of(run, None), [view], SETTINGS)[0]
    assert {finding.state for finding in findings} == {State.CONFOUNDED}
    assert {finding.component for finding in findings} == {"config"}
