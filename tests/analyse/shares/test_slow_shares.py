"""Components that are slow for a share of the time are localised, whatever the medians of their pairs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import named, reported
from fabric_cases import DEEP, RAILS, ROUND_TRIP, STREAM, TREE, rounds_of

from fablint.analyse import diagnose
from fablint.model import Diagnosis, Row, Run, State
from fablint.simulate import Fabric, Noise, SimulatedFabric, SimulatedRow, full_mesh
from fablint.simulate.fault_syntax import parse_fault
from fablint.simulate.rounds import all_rounds
from fablint.text.evidence_sentences import sentences
from fact_cases import attributes_of, row_facts

MESH = full_mesh(4, 4)
NOISE = Noise(scale=0.01, spike_share=0.0)
SERIAL = replace(STREAM, order="serial")
Found = tuple[str, str, str | None]


def run_of(
    fabric: Fabric, fault: str, *rows: SimulatedRow, rounds: Sequence[np.ndarray] | None = None, seed: int = 1
) -> Run:
    """A run of a fabric with one fault: of all pairs, if no rounds are given."""
    faults = (parse_fault(fault),) if fault else ()
    simulated = SimulatedFabric(fabric, faults, NOISE, seed=seed, ranks_per_host=fabric.rails)
    return simulated.measure(rounds, rows or (STREAM,))


def judged(run: Run, fabric: Fabric) -> Diagnosis:
    return diagnose(run, fabric.topology)


LOCALISED: list[tuple[Fabric, str, SimulatedRow, Found]] = [
    (TREE, "cable:leaf0=spine1:-69%,flap33%", STREAM, ("cable", "leaf0=spine1", "both")),
    (TREE, "link:leaf3>spine2:-30%,flap33%", SERIAL, ("link", "leaf3>spine2", None)),
    (TREE, "link:leaf5>spine0:-40%,flap33%", STREAM, ("link", "leaf5>spine0", None)),
    (TREE, "switch:spine4:-50%,flap30%", STREAM, ("switch", "spine4", None)),
    (DEEP, "link:leaf0>agg0:-50%,flap33%", STREAM, ("link", "leaf0>agg0", None)),
    (TREE, "host:h09:-50%,flap33%", STREAM, ("host", "h09", "both")),
    (TREE, "host:h21:rx:-60%,flap33%", STREAM, ("host", "h21", "rx")),
    (TREE, "host:h21:+3us,flap33%", ROUND_TRIP, ("host", "h21", None)),
    (RAILS, "nic:h03/hsn1:tx:-50%,flap40%", SERIAL, ("nic", "h03/hsn1", "tx")),
]


@pytest.mark.parametrize(("fabric", "fault", "row", "expected"), LOCALISED, ids=[case[1] for case in LOCALISED])
def test_what_is_slow_for_a_share_of_the_time_is_a_fault(
    fabric: Fabric, fault: str, row: SimulatedRow, expected: Found
) -> None:
    diagnosis = judged(run_of(fabric, fault, row), fabric)
    assert reported(diagnosis) == named(diagnosis) == {expected}
    (finding,) = (one for one in diagnosis.verdict.findings if one.state is State.FAULT)
    text = sentences(finding.evidence)
    assert "slow in " in text and "elsewhere in " in text


@pytest.mark.parametrize("percent", [20, 45, 60])
@pytest.mark.parametrize(
    ("fabric", "fault", "row", "expected"),
    [
        (TREE, "host:h14:-45%,flap{}%", STREAM, ("host", "h14", "both")),
        (TREE, "link:leaf2>spine4:-45%,flap{}%", STREAM, ("link", "leaf2>spine4", None)),
        (RAILS, "nic:h07/hsn0:tx:-45%,flap{}%", SERIAL, ("nic", "h07/hsn0", "tx")),
    ],
    ids=["host", "link", "nic"],
)
def test_a_share_from_a_fifth_to_more_than_a_half_is_found(
    fabric: Fabric, fault: str, row: SimulatedRow, expected: Found, percent: int
) -> None:
    """Of a component that is slow about half of the time, the median is anywhere between fast and slow."""
    diagnosis = judged(run_of(fabric, fault.format(percent), row, seed=2), fabric)
    assert {name for _, name, _ in named(diagnosis)} == {expected[1]}
    assert diagnosis.verdict.verdict == "fault"


def test_a_link_that_leads_to_one_host_is_the_host_with_the_link_as_an_alternative() -> None:
    """What the host receives on its own switch, five of 35 pairs, is too little to distinguish them."""
    diagnosis = judged(run_of(TREE, "link:spine2>leaf3:-40%,flap33%"), TREE)
    assert reported(diagnosis) == {("host", "h20", "rx")}
    (finding,) = (one for one in diagnosis.verdict.findings if one.state is State.FAULT)
    assert "spine2>leaf3" in {component.label for component in finding.ambiguity_group}


@pytest.mark.parametrize("share", [10, 20])
def test_a_host_that_is_slow_seldom_is_never_a_pass_where_it_was_slow_often_enough(share: int) -> None:
    """120 measurements of each direction: 10 % are twelve slow ones, of as many pairs."""
    rounds = [pairs for _ in range(8) for pairs in all_rounds(len(MESH.hosts))]
    diagnosis = judged(run_of(MESH, f"host:h05:rx:-60%,flap{share}%", rounds=rounds), MESH)
    assert named(diagnosis) == {("host", "h05", "rx")}


def test_a_repeated_pair_does_not_acquit_by_its_median() -> None:
    """Each pair across the cable is fast in most of its nine measurements; all of them are slow in some."""
    rounds = [pairs for _ in range(9) for pairs in all_rounds(len(MESH.hosts))]
    diagnosis = judged(run_of(MESH, "cable:s0=s2:-69%,flap33%", rounds=rounds), MESH)
    assert reported(diagnosis) == {("cable", "s0=s2", "both")}


def as_repeats(run: Run, repeats: int) -> Run:
    """All pairs in rounds of a list, each measured `repeats` times, as a matrix of as many repeats."""
    (row,) = run.rows
    ranks, columns = run.ranks, row.arrays["dst"].shape[1] // repeats
    times = np.full((repeats, ranks, ranks, 1), np.nan, np.float32)
    started = np.full((repeats, ranks, ranks), np.nan)
    for repeat in range(repeats):
        part = slice(repeat * columns, (repeat + 1) * columns)
        target = np.asarray(row.arrays["dst"])[:, part]
        source, column = np.nonzero(target >= 0)
        to = target[source, column]
        times[repeat, source, to] = np.asarray(row.arrays["time_median"])[:, part][source, column]
        started[repeat, source, to] = np.asarray(row.arrays["started"])[:, part][source, column]
    attributes = {**attributes_of(row), "layout": "matrix", "pattern": "all-pairs", "repeats": repeats}
    arrays = {"time_median": times, "started": started, "size": row.arrays["size"]}
    arrays["count"] = np.where(np.isnan(times), 0, 100).astype(np.uint32)
    return replace(run, rows=(replace(row, facts=row_facts(attributes), arrays=arrays),))


def test_each_repeat_of_a_matrix_counts_and_not_their_median() -> None:
    rounds = [pairs for _ in range(5) for pairs in all_rounds(len(TREE.hosts))]
    run = as_repeats(run_of(TREE, "link:leaf1>spine3:-50%,flap25%", rounds=rounds), 5)
    assert reported(judged(run, TREE)) == {("link", "leaf1>spine3", None)}


def with_retest(run: Run, pairs: Sequence[tuple[int, int]], seconds: float) -> Run:
    """The run with a row that measured pairs again."""
    (row,) = run.rows
    partner = np.full((run.ranks, len(pairs)), -1, np.int32)
    times = np.full((run.ranks, len(pairs), 1), np.nan, np.float32)
    started = np.full(partner.shape, np.nan)
    for column, (src, dst) in enumerate(pairs):
        partner[src, column], times[src, column], started[src, column] = dst, seconds, 100.0 + column
    attributes = {**attributes_of(row), "layout": "list", "pattern": "pairs", "retest_of": row.name, "repeats": 1}
    arrays = {"time_median": times, "started": started, "dst": partner, "size": row.arrays["size"]}
    arrays["count"] = np.where(np.isnan(times), 0, 100).astype(np.uint32)
    return replace(run, rows=(row, Row(f"{row.name}-retest", row_facts(attributes), arrays)))


def test_a_retest_adds_a_measurement_and_takes_none_away() -> None:
    run = run_of(TREE, "cable:leaf0=spine1:-69%,flap33%")
    times = np.array(run.rows[0].arrays["time_median"])[0, :, :, 0]
    slow = np.argwhere(times > 1.5 * np.nanmedian(times))
    again = with_retest(run, [(int(a), int(b)) for a, b in slow], float(np.nanmedian(times)))
    before, after = (
        next(one for one in judged(each, TREE).verdict.findings if one.state is State.FAULT) for each in (run, again)
    )
    assert (after.component, after.name) == (before.component, before.name) == ("cable", "leaf0=spine1")
    counts = [one.evidence[0].values for one in (before, after)]
    assert counts[1]["slow"] == counts[0]["slow"]
    assert counts[1]["measured"] == counts[0]["measured"] + counts[0]["slow"]


# ------------------------------------------------------------------------------------------------ what is no component


def slowed(run: Run, slow: np.ndarray, factor: float = 3.0) -> Run:
    """The run with some cells (ranks, rounds) slower."""
    (row,) = run.rows
    times = np.array(row.arrays["time_median"])
    times[slow] *= factor
    return replace(run, rows=(replace(row, arrays={**row.arrays, "time_median": times}),))


def test_one_slow_pair_that_was_measured_often_is_no_component() -> None:
    pair = np.array([(2, 13), (0, 5), (1, 9), (4, 15)])
    run = run_of(MESH, "", rounds=[*all_rounds(len(MESH.hosts)), *[pair] * 20])
    target = np.asarray(run.rows[0].arrays["dst"])
    slow = np.zeros(target.shape, bool)
    slow[2], slow[13] = target[2] == 13, target[13] == 2
    assert {component for component, _, _ in reported(judged(slowed(run, slow), MESH))} <= {"route"}


def test_a_host_that_was_slow_in_one_period_is_no_fault() -> None:
    rounds = [pairs for _ in range(4) for pairs in all_rounds(len(MESH.hosts))]
    run = run_of(MESH, "", rounds=rounds)
    target = np.asarray(run.rows[0].arrays["dst"])
    slow = np.zeros(target.shape, bool)
    slow[7] = slow[target == 7] = True
    slow[:, :20] = slow[:, 38:] = False
    diagnosis = judged(slowed(run, slow & (target >= 0)), MESH)
    assert named(diagnosis) == set()
    assert {name for _, name, _ in named(diagnosis, State.NOT_JUDGED, State.SUSPECT, State.CONFOUNDED)} == {"h07"}


@pytest.mark.parametrize("hosts_of_switch", [2, 3])
def test_hosts_of_a_switch_that_are_slow_at_the_same_times_are_the_links_of_the_switch(hosts_of_switch: int) -> None:
    """Load on the up-links of a switch slows all that its hosts exchange with others, and nothing on the switch."""
    fabric = full_mesh(8, hosts_of_switch)
    run = run_of(fabric, "", rounds=[pairs for _ in range(6) for pairs in all_rounds(len(fabric.hosts))])
    target = np.asarray(run.rows[0].arrays["dst"])
    source = np.broadcast_to(np.arange(run.ranks)[:, None], target.shape)
    crosses = (source // hosts_of_switch == 5) != (target // hosts_of_switch == 5)
    loaded = np.sin(np.arange(target.shape[1]) / 4.0) > 0.7
    diagnosis = judged(slowed(run, crosses & loaded & (target >= 0)), fabric)
    assert reported(diagnosis) == {("route", "s5=any", None)}
    assert diagnosis.verdict.verdict == "incomplete"
    ok = [component for one in diagnosis.verdict.findings if one.state is State.OK for component in one.components]
    assert not any("s5" in end.nodes for one in ok for end in one.ends if one.kind == "link")


def test_times_that_scatter_to_both_sides_are_no_slow_share() -> None:
    run = run_of(MESH, "", rounds=[pairs for _ in range(4) for pairs in all_rounds(len(MESH.hosts))])
    (row,) = run.rows
    times, target = np.array(row.arrays["time_median"]), np.asarray(row.arrays["dst"])
    own = (np.arange(run.ranks)[:, None] == 3) | (target == 3)
    times[own] *= np.exp(0.25 * np.random.default_rng(1).standard_normal(times[own].shape))
    noisy = replace(run, rows=(replace(row, arrays={**row.arrays, "time_median": times}),))
    assert named(judged(noisy, MESH), State.FAULT, State.SUSPECT) == set()


def test_pairs_that_bursts_of_load_slow_everywhere_are_no_component() -> None:
    """A fifth of the rounds is slow for all pairs, and the pairs of two leaves are measured in few rounds."""
    for seed in range(4):
        run = run_of(TREE, "", rounds=all_rounds(len(TREE.hosts)), seed=seed)
        target = np.asarray(run.rows[0].arrays["dst"])
        draw = np.random.default_rng(seed)
        hit = (draw.random(target.shape[1]) < 0.2)[None, :] & (draw.random(target.shape) < 0.7)
        assert named(judged(slowed(run, hit & (target >= 0)), TREE)) == set()


@pytest.mark.parametrize("kind", ["normal", "student3", "lognormal"])
def test_no_noise_makes_a_slow_share(kind: str) -> None:
    for fabric in (MESH, TREE):
        for rounds in (None, rounds_of(fabric)):
            run = SimulatedFabric(fabric, (), Noise(kind), seed=3).measure(rounds, (ROUND_TRIP, STREAM))  # type: ignore[arg-type]
            diagnosis = judged(run, fabric)
            kinds = {one.evidence[0].kind for one in diagnosis.verdict.findings if one.state is not State.OK}
            assert "slow_share" not in kinds


# ------------------------------------------------------------------------------------------------ what a median hides


def test_ok_says_in_the_median_where_few_measurements_bound_the_share() -> None:
    few, many = (
        judged(run_of(TREE, "", rounds=rounds), TREE)
        for rounds in (rounds_of(TREE)[:12], [pairs for _ in range(3) for pairs in all_rounds(len(TREE.hosts))])
    )
    assert few.verdict.verdict == many.verdict.verdict == "pass"
    kinds = [
        {evidence.kind for one in diagnosis.verdict.findings for evidence in one.evidence} for diagnosis in (few, many)
    ]
    assert ["in_the_median" in found for found in kinds] == [True, False]
