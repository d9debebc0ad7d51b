"""The interval of a median whose values share partners, hosts at both ends, or a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fablint.analyse.observations.clustered_median import RelatedValues

RUNS, PARTNERS = 300, 31
Draw = Callable[[np.random.Generator, np.ndarray, np.ndarray], np.ndarray]


def of_load(rng: np.random.Generator, rounds: np.ndarray) -> np.ndarray:
    """Values of rounds that are related over a twentieth of the time."""
    load = rng.standard_normal(rounds.size)
    for at in range(1, load.size):
        load[at] = 0.5 * load[at - 1] + np.sqrt(0.75) * load[at]
    return load[rounds]


DRAWS: dict[str, Draw] = {
    "independent": lambda rng, partner, rounds: rng.standard_normal(partner.size),
    "heavy tails": lambda rng, partner, rounds: rng.standard_t(3, partner.size),
    "partners": lambda rng, partner, rounds: rng.standard_normal(PARTNERS)[partner],
    "time": lambda rng, partner, rounds: of_load(rng, rounds) + rng.standard_normal(partner.size),
}


def drawn(draw: Draw, seed: int) -> RelatedValues:
    """Two values with each partner, in one round."""
    rng = np.random.default_rng(seed)
    partner = np.repeat(np.arange(PARTNERS), 2)
    rounds = np.repeat(rng.permutation(PARTNERS), 2)
    hosts = np.stack([np.full(partner.size, -1), partner])
    return RelatedValues(draw(rng, partner, rounds), hosts, rounds.astype(float))


@pytest.mark.parametrize("name", DRAWS)
def test_contains_the_truth_in_95_percent(name: str) -> None:
    intervals = [drawn(DRAWS[name], seed).median_interval() for seed in range(RUNS)]
    covered = sum(lower <= 0 <= upper for lower, _, upper in intervals)
    assert 0.92 <= covered / RUNS <= 0.985


def test_hosts_at_both_ends_of_a_link_are_clusters() -> None:
    """Hosts differ, their pairs do not: pairs as clusters would make the interval a third as wide."""
    covered = 0
    for seed in range(RUNS):
        own = np.random.default_rng(seed).standard_normal((2, 8))
        a, b = (ends.ravel() for ends in np.indices((8, 8)))
        lower, _, upper = RelatedValues(own[0][a] + own[1][b], np.stack([a, 8 + b])).median_interval()
        covered += lower <= 0 <= upper
    assert covered / RUNS >= 0.92


def test_bounds_are_at_most_the_extremes() -> None:
    values = RelatedValues(np.array([3.0, 1.0, 2.0]), np.array([[-1, -1, -1], [1, 2, 3]]))
    assert values.median_interval() == (1.0, 2.0, 3.0)


def test_one_partner_shows_nothing() -> None:
    values = RelatedValues(np.linspace(0, 1, 21), np.stack([np.full(21, -1), np.full(21, 4)]))
    assert values.median_interval() == (0.0, 0.5, 1.0)


def test_directions_that_differ_leave_the_median_open() -> None:
    """The signs of both directions of a pair add up to 0."""
    hosts = np.stack([np.full(20, -1), np.repeat(np.arange(10), 2)])
    lower, middle, upper = RelatedValues(np.tile([0.2, 0.3], 10), hosts).median_interval()
    assert (lower, upper) == pytest.approx((0.2, 0.3)) and middle == pytest.approx(0.25)
