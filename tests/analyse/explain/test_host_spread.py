"""A slow host is a fault only where it differs by more than healthy hosts of the same fabric do."""

from __future__ import annotations

import numpy as np
import pytest

from fablint.analyse.null_model.host_spread import are_within_spread

ALPHA = 0.0055
SEEDS = 200


@pytest.mark.parametrize("hosts", [16, 64])
def test_a_loss_of_ten_times_the_normal_spread_is_beyond_it(hosts: int) -> None:
    beyond = 0
    for seed in range(SEEDS):
        healthy = 0.01 * np.random.default_rng(seed).standard_normal(2 * hosts)
        beyond += are_within_spread([0.10], healthy, ALPHA) == [False]
    assert beyond >= 0.95 * SEEDS


@pytest.mark.parametrize("hosts", [64, 256])
def test_the_slowest_hosts_of_a_spread_with_heavy_tails_are_within_it(hosts: int) -> None:
    """Those beyond 10 % are what the search for components finds, and they are not in the sample."""
    wrong = found = 0
    for seed in range(SEEDS):
        effects = 0.02 * np.random.default_rng(seed).standard_t(3, 2 * hosts)
        slow = effects > 0.10
        found += bool(slow.any())
        wrong += not all(are_within_spread(effects[slow].tolist(), np.where(slow, np.nan, effects), ALPHA))
    assert found > SEEDS / 2
    assert wrong <= 0.04 * SEEDS


def test_hosts_within_the_spread_count_as_healthy_for_those_that_are_slower() -> None:
    effects = 0.02 * np.random.default_rng(1).standard_t(3, 128)
    assert are_within_spread([5.0, 0.12], effects, ALPHA) == [False, True]


def test_of_few_hosts_no_spread_is_known() -> None:
    assert are_within_spread([0.10], np.full(7, 0.09), ALPHA) == [False]
    assert are_within_spread([0.10], np.full(200, np.nan), ALPHA) == [False]


def test_the_unit_of_the_effects_changes_nothing() -> None:
    effects = 0.02 * np.random.default_rng(2).standard_t(4, 128)
    losses = [0.08, 0.2, 0.9]
    assert are_within_spread(losses, effects, ALPHA) == are_within_spread(
        [3 * loss for loss in losses], 3 * effects, ALPHA
    )
