"""A second mode needs more than a few values in the tail of the noise that happen to leave a gap."""

from __future__ import annotations

import numpy as np
import pytest
from analyse_cases import named

from fablint.analyse import diagnose
from fablint.analyse.explain.second_mode import _second_mode
from fablint.analyse.settings import CHANCE
from fablint.model import State
from fablint.simulate import Noise, SimulatedFabric, SimulatedRow, full_mesh
from fablint.simulate.rounds import all_rounds

MESH = full_mesh(4, 4)
SIGMA, LIMIT = 0.01, 0.05  # standard deviation of the noise and the value from which a pair is slow, log-effects


@pytest.mark.parametrize("seed", [5, 13, 27])
def test_the_tail_of_a_skewed_noise_is_no_finding(seed: int) -> None:
    rows = [SimulatedRow("latency", (8,), "serial"), SimulatedRow("bandwidth", (1 << 20,), "serial")]
    noise = Noise("lognormal", spike_share=0.0)
    run = SimulatedFabric(MESH, noise=noise, seed=seed).measure(all_rounds(len(MESH.hosts)), rows)
    assert named(diagnose(run, MESH.topology), State.FAULT, State.SUSPECT) == set()


def values(tail: int, mode: int, at: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Residuals of normal noise with an exponential tail and a mode at `at`; of all pairs, and of the slow ones."""
    draw = np.random.default_rng(seed)
    bulk = draw.normal(0, SIGMA, 2000)
    far = np.concatenate([LIMIT + draw.exponential(2 * SIGMA, tail), draw.normal(at, SIGMA, mode)])
    return np.concatenate([bulk, far]).astype(np.float32), far.astype(np.float32)


def test_few_tails_of_noise_are_modes() -> None:
    modes = [_second_mode(*values(15, 0, 0.0, seed), LIMIT, 1.0, CHANCE) for seed in range(500)]
    assert sum(mode is not None for mode in modes) <= 5


@pytest.mark.parametrize("repeats", [1, 2])
def test_pairs_of_a_second_mode_are_found_and_several_measurements_of_one_pair_count_once(repeats: int) -> None:
    found = [_second_mode(*values(2, 30, 0.13, seed), LIMIT, repeats, CHANCE) for seed in range(100)]
    assert sum(mode is not None for mode in found) >= 95
    few = [_second_mode(*values(2, 10 * repeats, 0.085, seed), LIMIT, repeats, CHANCE) for seed in range(100)]
    assert sum(mode is not None for mode in few) <= 5
