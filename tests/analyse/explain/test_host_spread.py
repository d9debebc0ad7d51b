"""A slow host is a fault only where it differs by more than healthy hosts of the same fabric do."""

from __future__ import annotations

import numpy as np
import pytest

from fablint.analyse.null_model.host_spread import MeasuredEffects, are_within_spread

ALPHA = 0.0055
SEEDS = 200


def within(losses: list[float], effects: np.ndarray, error: float = 0.0) -> list[bool]:
    return are_within_spread(losses, MeasuredEffects(effects, np.full_like(effects, error)), ALPHA)


@pytest.mark.parametrize("hosts", [16, 64])
def test_a_loss_of_ten_times_the_normal_spread_is_beyond_it(hosts: int) -> None:
    beyond = 0
    for seed in range(SEEDS):
        healthy = 0.01 * np.random.default_rng(seed).standard_normal(2 * hosts)
        beyond += within([0.10], healthy) == [False]
    assert beyond >= 0.95 * SEEDS


@pytest.mark.parametrize("hosts", [64, 256])
def test_the_slowest_hosts_of_a_spread_with_heavy_tails_are_within_it(hosts: int) -> None:
    """Those beyond 10 % are what the search for components finds, and they are not in the sample."""
    wrong = found = 0
    for seed in range(SEEDS):
        effects = 0.02 * np.random.default_rng(seed).standard_t(3, 2 * hosts)
        slow = effects > 0.10
        found += bool(slow.any())
        wrong += not all(within(effects[slow].tolist(), np.where(slow, np.nan, effects)))
    assert found > SEEDS / 2
    assert wrong <= 0.04 * SEEDS


def test_hosts_within_the_spread_count_as_healthy_for_those_that_are_slower() -> None:
    effects = 0.02 * np.random.default_rng(1).standard_t(3, 128)
    assert within([5.0, 0.12], effects) == [False, True]


def test_of_few_hosts_no_spread_is_known() -> None:
    assert within([0.10], np.full(7, 0.09)) == [False]
    assert within([0.10], np.full(200, np.nan)) == [False]


def test_the_unit_of_the_effects_changes_nothing() -> None:
    effects = 0.02 * np.random.default_rng(2).standard_t(4, 128)
    losses = [0.08, 0.2, 0.9]
    assert within(losses, effects) == within([3 * loss for loss in losses], 3 * effects)


@pytest.mark.parametrize("hosts", [16, 200])
def test_what_noisy_measurements_add_is_not_what_hosts_differ_by(hosts: int) -> None:
    """The tail of the noise of few measurements does not make a host as slow likely among healthy ones."""
    errors = 0.01 * np.random.default_rng(4).standard_t(3, 2 * hosts)
    assert within([0.15], errors) == [True]
    assert within([0.15], errors, 0.01) == [False]


def test_a_spread_beyond_the_noise_of_the_measurements_stays() -> None:
    rng = np.random.default_rng(5)
    effects = 0.02 * rng.standard_t(3, 128) + 0.01 * rng.standard_normal(128)
    assert within([0.12], effects, 0.01) == [True]


def test_slower_hosts_of_which_too_little_was_measured_are_no_part_of_the_spread() -> None:
    effects = 0.01 * np.random.default_rng(6).standard_normal(200)
    effects[:3] = 0.3, 0.5, 0.6
    assert within([0.2], effects) == [False]


def test_a_loss_of_which_nearly_all_hosts_have_more_is_within_the_spread() -> None:
    effects = np.linspace(0.3, 0.4, 20)
    assert within([0.05], effects) == [True]
    effects[:3] = 0.01
    assert within([0.05], effects) == [True]
