"""Slow measurements of one time count as fewer independent ones."""

from __future__ import annotations

import numpy as np
import pytest

from fablint.analyse.observations.time_correlation import TimeCorrelation, TimedMeasurements

HOSTS, COUNT = 40, 4000


def measured(slow: np.ndarray, seed: int) -> TimedMeasurements:
    """Pairs of random hosts, one per second."""
    hosts = np.random.default_rng(seed).integers(HOSTS, size=(2, slow.size))
    hosts[1] = (hosts[0] + 1 + hosts[1] % (HOSTS - 1)) % HOSTS
    return TimedMeasurements(np.arange(slow.size, dtype=np.float64), slow, hosts, np.arange(slow.size) % 7)


def blocks(length: int, share: float, seed: int) -> np.ndarray:
    """Flags that are the same for `length` measurements in turn."""
    return np.repeat(np.random.default_rng(seed).random(COUNT // length) < share, length)


def effect(slow: np.ndarray, of: np.ndarray, seed: int = 1) -> float:
    measurements = measured(slow, seed)
    return TimeCorrelation.between(measurements).design_effect(measurements.of(of))


@pytest.mark.parametrize("share", [0.002, 0.05, 0.4])
def test_independent_slow_measurements_count_one_by_one(share: float) -> None:
    slow = np.random.default_rng(3).random(COUNT) < share
    assert effect(slow, np.arange(500, 510)) < 1.5


def test_measurements_of_one_moment_count_as_one_and_those_of_distant_moments_one_by_one() -> None:
    slow = blocks(40, 0.1, 5)
    begin = int(np.flatnonzero(slow)[0])
    assert 6 < effect(slow, np.arange(begin, begin + 10)) <= 10
    assert effect(slow, np.arange(0, 4000, 400)) < 1.5


def test_a_set_of_which_some_are_slow_at_each_time_did_not_have_the_load_of_its_time() -> None:
    """A path of which some pairs are slow, in a run with bursts: its measurements do not agree with each other."""
    measurements = measured(blocks(40, 0.1, 5), 1)
    begin = int(np.flatnonzero(measurements.slow)[0])
    own = measurements.of(np.arange(begin - 40, begin + 80))
    mixed = TimedMeasurements(own.started, np.random.default_rng(2).random(120) < 0.4, own.hosts, own.path)
    assert TimeCorrelation.between(measurements).design_effect(mixed) < 6
    assert TimeCorrelation.between(measurements).design_effect(own) > 20


def test_a_slow_host_is_no_load_of_its_time() -> None:
    measurements = measured(np.zeros(COUNT, dtype=bool), 4)
    slow = (measurements.hosts == 3).any(axis=0)
    measurements = TimedMeasurements(measurements.started, slow, measurements.hosts, measurements.path)
    assert TimeCorrelation.between(measurements).design_effect(measurements.of(np.arange(20))) < 1.5


def test_the_number_of_slow_ones_varies_by_the_design_effect() -> None:
    """The definition: variance of the number of slow ones of a set over many fabrics."""
    own = np.arange(1000, 1200)
    numbers = [int(blocks(8, 0.2, seed)[own].sum()) for seed in range(800)]
    observed = np.var(numbers) / (own.size * 0.2 * 0.8)
    estimated = np.median([effect(blocks(8, 0.2, seed), own, seed) for seed in range(20)])
    assert estimated == pytest.approx(observed, rel=0.25)


def test_without_times_and_without_slow_ones_nothing_is_correlated() -> None:
    assert effect(np.zeros(COUNT, dtype=bool), np.arange(10)) == 1.0
    unknown = measured(blocks(40, 0.1, 5), 1)
    unknown = TimedMeasurements(np.full(COUNT, np.nan), unknown.slow, unknown.hosts, unknown.path)
    assert TimeCorrelation.between(unknown).design_effect(unknown) == 1.0
