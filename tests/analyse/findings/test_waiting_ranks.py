"""A pair whose ranks waited for a CPU is explained by that, as far as the waits are long enough and its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import named
from test_slow_moments import in_order, judged, routes, run_of, slowed

from fablint.model import Run, State
from fablint.text.evidence_sentences import sentences


def with_waits(run: Run, share: float, *pairs: tuple[int, int], usual: float = 0.01) -> Run:
    """The run in which the ranks of these pairs waited for a share of their time, and all others for the usual one."""
    (row,) = run.rows
    waits, partner = np.full(row.arrays["time_median"].shape, usual, np.float32), np.asarray(row.arrays["dst"])
    waits[partner < 0] = np.nan
    for a, b in pairs:
        waits[a, partner[a] == b] = share
    return replace(run, rows=(replace(row, arrays={**row.arrays, "cpu_wait": waits}),))


@pytest.fixture(scope="module", params=["latency", "bandwidth"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_of(request.param)


def test_a_pair_is_confounded_by_the_waits_of_its_ranks(run: Run) -> None:
    pair = in_order(run)[40]
    diagnosis = judged(with_waits(slowed(run, {pair: 3.0}), 0.6, pair, pair[::-1]))
    assert named(diagnosis, State.FAULT, State.SUSPECT) == set()
    assert routes(diagnosis, State.CONFOUNDED) == {pair}
    (finding,) = [one for one in diagnosis.verdict.findings if one.component == "route"]
    assert "waited 60% of that time for a CPU that other processes used, those of other pairs 1%" in sentences(
        finding.evidence
    )
    assert [cause.label for cause in finding.ambiguity_group] == ["other processes on the CPUs of its ranks"]
    assert diagnosis.routes  # a check measures it again


@pytest.mark.parametrize(
    ("factor", "share", "usual", "directions"),
    [
        (20.0, 0.6, 0.01, 2),  # slower than the waits make it
        (3.0, 0.6, 0.6, 2),  # all pairs waited as long
        (3.0, 0.6, 0.01, 1),  # slow in the other direction as well, without a wait
        (3.0, np.nan, np.nan, 2),  # a kernel that does not count
    ],
)
def test_a_route_that_waits_do_not_explain_is_suspect(
    run: Run, factor: float, share: float, usual: float, directions: int
) -> None:
    pair = in_order(run)[40]
    waiting = (pair, pair[::-1])[:directions]
    diagnosis = judged(with_waits(slowed(run, {pair: factor}), share, *waiting, usual=usual))
    assert routes(diagnosis, State.SUSPECT) == {pair}
    assert routes(diagnosis, State.CONFOUNDED) == set()


def test_waits_of_another_pair_explain_nothing(run: Run) -> None:
    pair, other = in_order(run)[40], in_order(run)[80]
    diagnosis = judged(with_waits(slowed(run, {pair: 3.0}), 0.6, other, other[::-1]))
    assert routes(diagnosis, State.SUSPECT) == {pair}
