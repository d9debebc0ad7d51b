"""Populations among effects, steps between figures, and what time adds."""

import numpy as np
import pytest

from fablint.analyse.null_model.modes import find_modes
from fablint.analyse.observations.resolution import find_step


def effects(*sizes: tuple[int, float], spread: float = 0.003, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([centre + spread * rng.standard_normal(size) for size, centre in sizes])


@pytest.mark.parametrize("older", [6, 16, 26])
def test_two_populations_are_two_modes(older: int) -> None:
    modes = find_modes(effects((64 - older, 0.0), (older, 0.08)), error=0.001, least=0.05)
    assert modes.count == 2
    assert (modes.label == 1).sum() == older
    assert modes.centre[1] - modes.centre[0] == pytest.approx(0.08, abs=0.005)


def test_faulty_hosts_that_differ_are_no_population() -> None:
    values = np.concatenate([effects((60, 0.0)), [0.1, 0.2, 0.3, 0.4]])
    assert find_modes(values, error=0.001, least=0.05).count == 1


def test_an_outlier_beside_a_population_does_not_hide_it() -> None:
    values = np.concatenate([effects((50, 0.0), (12, 0.08)), [0.5]])
    modes = find_modes(values, error=0.001, least=0.05)
    assert modes.count == 2
    assert (modes.label == 1).sum() == 13


@pytest.mark.parametrize("slow", [(0.21, 0.23, 0.234, 0.238), (0.15, 0.17, 0.174, 0.178), (0.3, 0.33, 0.334, 0.338)])
def test_a_slow_host_is_in_no_mode_of_fast_ones(slow: tuple[float, ...]) -> None:
    """The slow hosts are no mode, or one of all four."""
    modes = find_modes(np.array([*effects((32, 0.0)), *slow]), error=0.001, least=0.05)
    assert len(set(modes.label[-4:].tolist())) == 1


def test_normal_effects_are_one_mode_whatever_the_seed() -> None:
    found = [
        find_modes(effects((64, 0.0), spread=0.02, seed=seed), error=0.001, least=0.05).count for seed in range(200)
    ]
    assert set(found) == {1}


def test_unknown_effects_have_no_mode() -> None:
    values = effects((20, 0.0), (10, 0.1))
    values[[0, 25]] = np.nan
    modes = find_modes(values, error=0.001, least=0.05)
    assert set(np.flatnonzero(modes.label < 0)) == {0, 25}


def test_the_step_of_rounded_figures() -> None:
    exact = 1.2 * np.exp(0.05 * np.random.default_rng(1).standard_normal(500))
    rounded = np.log(np.round(exact, 1)).astype(np.float32)
    assert 0.06 < find_step(rounded) < 0.1  # 0.1 of 1.1 to 1.4
    assert find_step(np.log(exact).astype(np.float32)) == 0.0
