"""A pair that was slow while unrelated pairs were slow is explained by its time; of a calm moment it is NOT JUDGED."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import reported

from fablint.analyse import diagnose
from fablint.model import Diagnosis, Run, State
from fablint.simulate import Noise, SimulatedFabric, SimulatedRow, full_mesh
from fablint.simulate.rounds import all_rounds

SMALL, LARGE = full_mesh(4, 4), full_mesh(8, 8)
QUIET = Noise(scale=0.01, spike_share=0.0)
MOMENT = range(60, 70)  # pairs of a serial row, one after the other
FACTORS = (1.6, 2.9, 1.3, 4.1, 2.2, 3.4, 1.9, 5.5, 2.5, 1.45)
Pair = tuple[int, int]


def run_of(kernel: str, order: str = "serial") -> Run:
    row = SimulatedRow(kernel, (8 if kernel == "latency" else 1 << 20,), order)  # type: ignore[arg-type]
    fabric = SMALL if order == "serial" else LARGE
    return SimulatedFabric(fabric, (), QUIET, seed=3).measure(all_rounds(len(fabric.hosts)), (row,))


def in_order(run: Run) -> list[Pair]:
    """The pairs of ranks in the order in which they were measured."""
    arrays = run.rows[0].arrays
    rank, column = np.nonzero(np.asarray(arrays["dst"]) >= 0)
    order = np.argsort(np.asarray(arrays["started"])[rank, column], kind="stable")
    ends = zip(rank[order].tolist(), np.asarray(arrays["dst"])[rank, column][order].tolist(), strict=True)
    return list(dict.fromkeys((min(a, b), max(a, b)) for a, b in ends))


def slowed(run: Run, factors: Mapping[Pair, float], *, both: bool = True) -> Run:
    """The run in which these pairs take so many times their time."""
    (row,) = run.rows
    times, partner = np.array(row.arrays["time_median"]), np.asarray(row.arrays["dst"])
    for pair, factor in factors.items():
        for a, b in (pair, pair[::-1])[: 1 + both]:
            times[a, partner[a] == b] *= factor
    return replace(run, rows=(replace(row, arrays={**row.arrays, "time_median": times}),))


def moment_of(run: Run) -> dict[Pair, float]:
    return {in_order(run)[at]: factor for at, factor in zip(MOMENT, FACTORS, strict=True)}


def judged(run: Run) -> Diagnosis:
    return diagnose(run, SMALL.topology if len(run.hosts) == len(SMALL.hosts) else LARGE.topology)


def explained_by_time(diagnosis: Diagnosis) -> set[Pair]:
    """Pairs of ranks that the note on pairs names that were slow while others were."""
    notes = [
        note for note in diagnosis.verdict.notes if note.kind == "explained_pairs" and note.values["reason"] == "time"
    ]
    ends = [pair.replace(">", "=").split("=") for note in notes for pair in note.values["pairs"]]  # type: ignore[union-attr]
    return {(min(a, b), max(a, b)) for a, b in ((int(a[1:]), int(b[1:])) for a, b in ends)}


def routes(diagnosis: Diagnosis, *states: State) -> set[Pair]:
    """Pairs of ranks that the findings about routes in these states name; without states, in any."""
    found = [finding for finding in diagnosis.verdict.findings if not states or finding.state in states]
    ends = [pair for finding in found if finding.component == "route" for pair in finding.directions]
    return {(min(a, b), max(a, b)) for a, b in ((int(a[1:]), int(b[1:])) for a, b in ends)}


@pytest.mark.parametrize("kernel", ["latency", "bandwidth"])
def test_pairs_that_were_slow_one_after_the_other_are_a_note_and_are_measured_again(kernel: str) -> None:
    run = run_of(kernel)
    diagnosis = judged(slowed(run, moment_of(run)))
    assert routes(diagnosis) == set()
    assert explained_by_time(diagnosis) <= set(moment_of(run))
    assert explained_by_time(diagnosis)
    assert diagnosis.routes  # a check measures them again


def test_directions_that_were_slow_one_after_the_other_are_a_note() -> None:
    run = run_of("bandwidth")
    diagnosis = judged(slowed(run, moment_of(run), both=False))
    assert routes(diagnosis) == set()
    assert explained_by_time(diagnosis)


def test_the_same_losses_at_other_times_are_not_explained_by_time() -> None:
    """The times decide, not how many pairs are slow."""
    run = run_of("latency")
    order = in_order(run)
    spread = {order[12 * at]: factor for at, factor in enumerate(FACTORS)}
    diagnosis = judged(slowed(run, spread))
    found = routes(diagnosis, State.NOT_JUDGED)
    assert explained_by_time(diagnosis) == set()
    assert len(found) >= len(FACTORS) // 2
    assert found <= set(spread)


def test_a_route_far_slower_than_the_others_of_its_moment_is_not_explained_by_it() -> None:
    run = run_of("latency")
    factors = dict.fromkeys(moment_of(run), 1.3)
    slowest = in_order(run)[MOMENT[5]]
    assert routes(judged(slowed(run, factors | {slowest: 20.0})), State.NOT_JUDGED) == {slowest}


def test_a_slow_route_beside_a_slow_moment_is_not_explained_by_it() -> None:
    run = run_of("latency")
    other = in_order(run)[10]
    diagnosis = judged(slowed(run, moment_of(run) | {other: 3.0}))
    assert other in routes(diagnosis, State.NOT_JUDGED)
    assert other not in explained_by_time(diagnosis)


def test_without_times_no_moment_explains_a_slow_pair() -> None:
    run = run_of("latency")
    slow = slowed(run, moment_of(run))
    untimed = {name: values for name, values in slow.rows[0].arrays.items() if name != "started"}
    diagnosis = judged(replace(slow, rows=(replace(slow.rows[0], arrays=untimed),)))
    assert explained_by_time(diagnosis) == set()


def test_slow_routes_between_the_same_hosts_do_not_explain_each_other() -> None:
    """Those of four hosts on one switch to four on another are measured in the same rounds."""
    run = run_of("latency", "parallel")
    block = {(a, b): 2.0 for a in range(4) for b in range(32, 36)}
    diagnosis = judged(slowed(run, block))
    assert reported(diagnosis) == {("cable", "s0=s4", None)}
    assert explained_by_time(diagnosis) == set()
