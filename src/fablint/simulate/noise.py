"""Noise: what healthy measurements scatter like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Noise:
    """Multiplicative noise of one measured pair, and the healthy variation between hosts.

    The defaults are those of real small-message runs: 2.5 % from launch to launch, one pair in a hundred hit by
    something else and a third slower on average.
    """

    kind: Literal["normal", "student3", "lognormal"] = "normal"
    scale: float = 0.025  # of log(time)
    spike_share: float = 0.01
    spike_mean: float = 0.35  # exponential, added to log(time)
    host_spread: float = 0.005  # standard deviation of the hosts' own log-effects, sending and receiving

    def pairs(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """Log-factors of single measurements, float32."""
        match self.kind:
            case "normal":
                draws = rng.standard_normal(shape, dtype=np.float32)
            case "student3":
                draws = rng.standard_normal(shape, dtype=np.float32)
                draws /= np.sqrt(rng.standard_gamma(1.5, shape, dtype=np.float32) / np.float32(1.5))
            case "lognormal":
                draws = np.expm1(rng.standard_normal(shape, dtype=np.float32))
        draws *= np.float32(self.scale)
        cells = int(np.prod(shape))
        hit = rng.integers(0, cells, rng.binomial(cells, self.spike_share))
        draws.reshape(-1)[hit] += rng.exponential(self.spike_mean, hit.size).astype(np.float32)
        return draws

    def hosts(self, rng: np.random.Generator, hosts: int) -> npt.NDArray[np.float32]:
        """(hosts,) log-factors that every measurement of a host shares."""
        return np.float32(self.host_spread) * rng.standard_normal(hosts, dtype=np.float32)
