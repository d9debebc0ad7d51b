"""A pair is suspect where most of its rounds were slow: one moment is not a route. Two rows are two moments."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import named, reported

from fablint.analyse import diagnose
from fablint.analyse.findings.paths.pair_moments import _products_up_to
from fablint.model import Diagnosis, Row, Run, State
from fablint.simulate import Noise, SimulatedFabric, SimulatedRow, full_mesh
from fablint.simulate.rounds import all_rounds
from finding_cases import ref

MESH = full_mesh(4, 4)
REPEATS = 5
QUIET = Noise(scale=0.01, spike_share=0.0)
ROWS = {"bandwidth": SimulatedRow("bandwidth", (1 << 20,)), "latency": SimulatedRow("latency", (8,))}
PAIR = (2, 13)
ROUTE = ("route", "h02=h13", None)
Slow = Callable[[np.ndarray], np.ndarray]


def run_of(row: str = "bandwidth", noise: Noise = QUIET, seed: int = 1) -> Run:
    """Every pair in each of five repeats."""
    rounds = [pairs for _ in range(REPEATS) for pairs in all_rounds(len(MESH.hosts))]
    return SimulatedFabric(MESH, (), noise, seed=seed).measure(rounds, (ROWS[row],))


def slowed(
    run: Run, times: Collection[int], factor: float = 1.5, pair: tuple[int, int] = PAIR, *, both: bool = True
) -> Run:
    """The pair is slow the so-manieth time that it is measured; in one direction or both."""
    return replace(run, rows=tuple(_slowed(row, times, factor, pair, both=both) for row in run.rows))


def _slowed(row: Row, times: Collection[int], factor: float, pair: tuple[int, int], *, both: bool) -> Row:
    values = np.array(row.arrays["time_median"])
    for src, dst in (pair, pair[::-1])[: 1 + both]:
        columns = np.flatnonzero(row.arrays["dst"][src] == dst)
        assert columns.size == REPEATS
        values[src, columns[list(times)]] *= factor
    return replace(row, arrays={**row.arrays, "time_median": values})


def judged(run: Run) -> Diagnosis:
    return diagnose(run, MESH.topology)


@pytest.mark.parametrize("row", ROWS)
def test_the_unchanged_run_passes(row: str) -> None:
    diagnosis = judged(run_of(row))
    assert diagnosis.verdict.verdict == "pass"
    assert diagnosis.routes == ()


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("times", [[0], [4], [1, 3]])
def test_slow_in_the_fewer_rounds_is_a_slow_moment(row: str, times: list[int]) -> None:
    diagnosis = judged(slowed(run_of(row), times))
    assert reported(diagnosis) == set()
    assert diagnosis.routes == ()
    assert diagnosis.verdict.verdict == "pass"


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("times", [[0, 1, 2, 3, 4], [0, 1, 3, 4], [0, 2, 4]])
def test_slow_in_most_rounds_is_a_suspect_route(row: str, times: list[int]) -> None:
    diagnosis = judged(slowed(run_of(row), times))
    assert named(diagnosis, State.SUSPECT) == {ROUTE}
    assert named(diagnosis) == set()
    assert diagnosis.verdict.verdict == "incomplete"


def test_a_suspect_route_is_asked_about_with_its_two_ranks() -> None:
    (follow_up,) = judged(slowed(run_of(), range(REPEATS))).routes
    assert (follow_up.component.kind, follow_up.name) == ROUTE[:2]
    assert follow_up.open
    assert np.asarray(follow_up.pairs).tolist() in ([[2, 13], [13, 2]], [[13, 2], [2, 13]])


def test_slow_in_one_direction_only_is_a_suspect_route_of_that_direction() -> None:
    diagnosis = judged(slowed(run_of(), range(REPEATS), both=False))
    assert named(diagnosis, State.SUSPECT) == {("route", "h02>h13", None)}
    assert diagnosis.verdict.verdict == "incomplete"
    (follow_up,) = diagnosis.routes
    assert follow_up.name == "h02>h13"


def test_a_round_trip_that_was_slow_when_one_end_began_is_a_slow_moment() -> None:
    """It crosses both directions, whichever end begins."""
    assert judged(slowed(run_of("latency"), range(REPEATS), both=False)).verdict.verdict == "pass"


def test_several_directions_slow_do_not_hide_each_other() -> None:
    pairs = [(2, 13), (5, 8), (0, 15)]
    run = run_of()
    for pair in pairs:
        run = slowed(run, range(REPEATS), factor=1.3 + pair[0] / 10, pair=pair, both=False)
    expected = {("route", f"h{a:02}>h{b:02}", None) for a, b in pairs}
    assert named(judged(run), State.SUSPECT) == expected


def test_a_direction_slow_by_less_than_the_loss_in_scope_is_not_reported() -> None:
    run = slowed(run_of(noise=Noise(scale=0.001, spike_share=0)), range(REPEATS), factor=1.08, both=False)
    assert judged(run).verdict.verdict == "pass"


def test_the_slowest_of_heavy_tails_is_seldom_reported() -> None:
    """Student's t with 3 degrees of freedom and no fault: at most a run in a hundred by design; 2 of 40 here."""
    suspects = 0
    for seed in range(40):
        run = SimulatedFabric(MESH, (), Noise("student3", spike_share=0), seed=seed).measure(
            all_rounds(len(MESH.hosts)), (ROWS["bandwidth"],)
        )
        suspects += any(name.find(">") > 0 for _, name, _ in named(judged(run), State.SUSPECT))
    assert suspects <= 2


def test_each_direction_slow_at_other_times_is_a_slow_moment() -> None:
    """Slow two times in each direction, but never most of the times."""
    run = slowed(slowed(run_of(), [0, 1], both=False), [2, 3], pair=PAIR[::-1], both=False)
    assert reported(judged(run)) == set()


def test_one_very_slow_round_does_not_outvote_the_others() -> None:
    assert reported(judged(slowed(run_of(), [2], factor=100.0))) == set()


def test_two_suspect_routes_do_not_hide_each_other() -> None:
    run = slowed(slowed(run_of(), range(REPEATS)), [0, 1, 2, 4], pair=(5, 8))
    assert named(judged(run), State.SUSPECT) == {ROUTE, ("route", "h05=h08", None)}


def test_seven_more_healthy_rounds_clear_a_pair_that_was_slow_once() -> None:
    """What `plan.stages` measures of it: a row of its own, with the pair among others that are healthy."""
    fabric = SimulatedFabric(MESH, (), QUIET, seed=1)
    first = fabric.measure(all_rounds(len(MESH.hosts)), (ROWS["bandwidth"],))
    faulty = replace(first, rows=tuple(_once(row) for row in first.rows))
    assert (named(judged(faulty), State.SUSPECT), named(judged(faulty), State.NOT_JUDGED)) == (set(), {ROUTE})
    again = fabric.extended(faulty, [np.array([PAIR, (0, 5), (1, 9), (4, 15)])] * 7, (ROWS["bandwidth"],))
    assert reported(judged(again)) == set()


def test_seven_more_slow_rounds_confirm_it() -> None:
    fabric = SimulatedFabric(MESH, (), QUIET, seed=1)
    first = fabric.measure(all_rounds(len(MESH.hosts)), (ROWS["bandwidth"],))
    faulty = replace(first, rows=tuple(_once(row) for row in first.rows))
    again = fabric.extended(faulty, [np.array([PAIR, (0, 5), (1, 9), (4, 15)])] * 7, (ROWS["bandwidth"],))
    last = replace(again, rows=(again.rows[0], _once(again.rows[1])))
    assert named(judged(last), State.SUSPECT) == {ROUTE}


def two_rows() -> Run:
    """All pairs once, in a row of latency and then in a row of bandwidth."""
    rows = (ROWS["latency"], ROWS["bandwidth"])
    return SimulatedFabric(MESH, (), QUIET, seed=1).measure(all_rounds(len(MESH.hosts)), rows)


def test_slow_in_the_moments_of_two_rows_is_a_suspect_route() -> None:
    run = two_rows()
    assert named(judged(replace(run, rows=tuple(map(_once, run.rows)))), State.SUSPECT) == {ROUTE}


def test_slow_in_one_moment_is_not_judged_and_measured_again() -> None:
    """Both directions of a pair are measured in the same moment: they are one observation."""
    run = two_rows()
    diagnosis = judged(replace(run, rows=(run.rows[0], _once(run.rows[1]))))
    assert (named(diagnosis, State.SUSPECT), named(diagnosis, State.NOT_JUDGED)) == (set(), {ROUTE})
    assert diagnosis.verdict.verdict == "incomplete"
    assert [follow_up.name for follow_up in diagnosis.routes if follow_up.open] == ["h02=h13"]


def test_slow_in_two_rows_is_not_judged_where_many_others_are_slow_once() -> None:
    """3 and 3 other pairs of 120 are slow in one row: too many for a pair that is slow in both not to be by chance."""
    run = two_rows()
    others = ([(0, 5), (1, 9), (4, 15)], [(3, 10), (6, 12), (7, 14)])
    rows = []
    for row, pairs in zip(run.rows, others, strict=True):
        for pair in pairs:
            row = _once(row, pair)
        rows.append(_once(row))
    diagnosis = judged(replace(run, rows=tuple(rows)))
    assert named(diagnosis, State.SUSPECT) == set()
    (finding,) = (one for one in diagnosis.verdict.findings if one.state is State.NOT_JUDGED)
    assert ref("route", "h02", "h13") in finding.components


def test_the_numbers_of_pairs_that_are_slow_in_two_rows_by_chance() -> None:
    """Of n pairs with independent ranks in two rows, products of two ranks up to p are expected D(p) / n times."""
    assert [_products_up_to(number) for number in (1, 2, 3, 9)] == [1, 3, 5, 23]
    draw, pairs, most = np.random.default_rng(1), 120, 9
    ranks = np.arange(1, pairs + 1)
    found = [np.count_nonzero(ranks * draw.permutation(ranks) <= most) for _ in range(4000)]
    assert np.mean(found) == pytest.approx(_products_up_to(most) / pairs, rel=0.1)


@pytest.mark.parametrize(
    ("rounds", "state"), [((0, 3, 4, 7, 9, 12, 14), State.FAULT), ((4, 5, 6, 7, 8, 9, 10), State.NOT_JUDGED)]
)
def test_a_host_is_a_fault_where_its_pairs_are_slow_at_several_times(rounds: tuple[int, ...], state: State) -> None:
    """Each pair is measured in one moment; those of one period are a burst of load on the host."""
    run = SimulatedFabric(MESH, (), QUIET, seed=1).measure(all_rounds(len(MESH.hosts)), (ROWS["bandwidth"],))
    (row,) = run.rows
    for number in rounds:
        row = _once(row, (PAIR[0], int(row.arrays["dst"][PAIR[0], number])))
    diagnosis = judged(replace(run, rows=(row,)))
    assert named(diagnosis, State.FAULT, State.SUSPECT, State.NOT_JUDGED) == {("host", "h02", "both")}
    assert named(diagnosis, state) == {("host", "h02", "both")}


def _once(row: Row, pair: tuple[int, int] = PAIR) -> Row:
    """The pair is slow whenever it is measured in this row."""
    values = np.array(row.arrays["time_median"])
    for src, dst in (pair, pair[::-1]):
        values[src, row.arrays["dst"][src] == dst] *= 1.5
    return replace(row, arrays={**row.arrays, "time_median": values})


@pytest.mark.parametrize("kind", ["normal", "student3", "lognormal"])
def test_noise_makes_few_suspects_and_no_fault(kind: str) -> None:
    """Spikes hit one measurement in a hundred: none of them is most of five."""
    suspects = 0
    for seed in range(6):
        diagnosis = judged(run_of(noise=Noise(kind), seed=seed))  # type: ignore[arg-type]
        assert named(diagnosis) == set()
        suspects += len(named(diagnosis, State.SUSPECT))
    assert suspects <= 1
