"""So much more per message, or per byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fablint.analyse.findings.alpha_beta import Slope, explain
from fablint.text.evidence_sentences import sentences
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

SIZES = 2.0 ** np.arange(3, 23, 2)
PER_BYTE = 40e-12  # 25 GB/s
EAGER = 1.1e-6 + 2 * PER_BYTE * SIZES  # copied once more
RENDEZVOUS = 2.9e-6 + PER_BYTE * SIZES
HEALTHY = np.where(SIZES <= 8192, EAGER, RENDEZVOUS)


def explained(
    alpha: float, factor: float, *, noise: float = 0.01, seed: int = 1, sizes: slice = slice(None), tail: float = 0.0
) -> Slope | None:
    healthy, size = HEALTHY[sizes], SIZES[sizes]
    slow = healthy + alpha + (factor - 1) * PER_BYTE * size
    loss = np.log(slow / healthy) + noise * np.random.default_rng(seed).standard_normal(size.size)
    return explain(size, healthy, loss, (loss - 1.96 * noise, loss + 1.96 * noise), loss + tail)


@pytest.mark.parametrize("seed", range(20))
def test_a_constant_per_message_is_alpha(seed: int) -> None:
    slope = explained(1.1e-6, 1.0, seed=seed)
    assert slope is not None
    assert slope.kind == "alpha"
    assert slope.alpha_s == pytest.approx(1.1e-6, rel=0.05)
    assert (slope.beta_s, slope.factor) == (0, 1)
    assert PINNED["+1.1 us a message at every"].begins(sentences([slope.evidence("")]))


@pytest.mark.parametrize("seed", range(20))
def test_so_much_more_per_byte_is_beta(seed: int) -> None:
    slope = explained(0, 1.25, seed=seed)
    assert slope is not None
    assert slope.kind == "beta"
    assert slope.alpha_s == 0
    assert slope.factor == pytest.approx(1.25, abs=0.03)
    assert sentences([slope.evidence("")]) == PINNED["time per byte x factor"].filled(factor=f"{slope.factor:.2f}")


@pytest.mark.parametrize("seed", range(20))
def test_both_at_once_are_distinguished(seed: int) -> None:
    slope = explained(2e-6, 1.5, seed=seed)
    assert slope is not None
    assert slope.kind == "both"
    assert slope.alpha_s == pytest.approx(2e-6, rel=0.1)
    assert slope.factor == pytest.approx(1.5, abs=0.05)
    assert sentences([slope.evidence("")]).startswith(f"+2 us a message and time per byte x{slope.factor:.2f}: ")


def test_a_long_tail_means_retries() -> None:
    slope = explained(2e-6, 1.5, tail=1.0)
    assert slope is not None
    assert slope.retries
    assert "messages are sent again" in sentences([slope.evidence("")])
    without = explained(2e-6, 1.5, tail=0.1)
    assert without is not None
    assert not without.retries


def test_three_sizes_are_needed_and_they_must_differ() -> None:
    assert explained(1e-6, 1.0, sizes=slice(0, 10, 4)) is not None
    assert explained(1e-6, 1.0, sizes=slice(0, 10, 6)) is None
    assert explain([8, 9, 10], [1e-6] * 3, [0.5] * 3, ([0.4] * 3, [0.6] * 3)) is None


def test_a_size_of_which_nothing_is_known_is_left_out() -> None:
    loss = np.log1p(1e-6 / HEALTHY)
    loss[2] = np.nan
    slope = explain(SIZES, HEALTHY, loss, (loss - 0.01, loss + 0.01))
    assert slope is not None
    assert slope.kind == "alpha"
    assert explain(SIZES, HEALTHY, np.full(10, np.nan), np.full((2, 10), np.nan)) is None


def test_one_odd_size_changes_nothing() -> None:
    loss = np.log1p(1e-6 / HEALTHY)
    loss[4] += 0.3
    slope = explain(SIZES, HEALTHY, loss, (loss - 0.02, loss + 0.02))
    assert slope is not None
    assert slope.kind == "alpha"
    assert slope.alpha_s == pytest.approx(1e-6, rel=0.1)


@given(seed=st.integers(0, 2**32))
def test_a_part_that_is_not_slow_has_no_slope_to_speak_of(seed: int) -> None:
    slope = explained(0, 1.0, seed=seed)
    assert slope is None or (slope.alpha_s < 0.1e-6 and slope.factor < 1.05)


@given(unit=st.floats(1e-3, 1e3), alpha=st.floats(0.5e-6, 5e-6), factor=st.floats(1.2, 2))
def test_the_unit_of_time_changes_nothing(unit: float, alpha: float, factor: float) -> None:
    loss = np.log1p((alpha + (factor - 1) * PER_BYTE * SIZES) / HEALTHY)
    here, there = (explain(SIZES, HEALTHY * scale, loss, (loss - 0.01, loss + 0.01)) for scale in (1.0, unit))
    assert here is not None
    assert there is not None
    assert there.kind == here.kind
    assert there.alpha_s == pytest.approx(here.alpha_s * unit)
