"""Noise: scatter of healthy measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Values

KINDS = ("normal", "student3", "lognormal", "replay")


@dataclass(frozen=True)
class Noise:
    """Multiplicative noise of one measured pair, and the healthy variation between hosts and between links.

    The defaults are those of real small-message runs: 2.5 % from launch to launch, one pair in a hundred disturbed and
    a third slower on average. `replay` samples from `residuals`, or from those of Comet if there are none: `scale` and
    the spikes are then not used, because real residuals contain both.
    """

    kind: Literal["normal", "student3", "lognormal", "replay"] = "normal"
    scale: float = 0.025  # of log(time)
    spike_share: float = 0.01
    spike_mean: float = 0.35  # exponential, added to log(time)
    host_spread: float = 0.005  # standard deviation of the hosts' own log-effects, sending and receiving
    link_spread: float = 0.001  # of the directed links' own log-effects
    message_scale: float = 0.05  # of log(time) from message to message of a pair
    residuals: Values | None = field(default=None, repr=False, compare=False)  # log-factors to replay

    def pairs(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
        """(shape) log-factors of single measurements, float32.

        Raises
        ------
        UsageError
            There are no residuals to replay.
        """
        match self.kind:
            case "normal":
                draws = rng.standard_normal(shape, dtype=np.float32)
            case "student3":
                draws = rng.standard_normal(shape, dtype=np.float32)
                draws /= np.sqrt(rng.standard_gamma(1.5, shape, dtype=np.float32) / np.float32(1.5))
            case "lognormal":
                draws = np.expm1(rng.standard_normal(shape, dtype=np.float32))
            case "replay":
                residuals = (
                    comet_residuals() if self.residuals is None else np.asarray(self.residuals, dtype=np.float32)
                )
                if not residuals.size:
                    raise UsageError("noise: no residuals to replay", "give residuals, or None for those of Comet")
                return residuals[rng.integers(0, residuals.size, shape)]
        draws *= np.float32(self.scale)
        cells = int(np.prod(shape))
        hit = rng.integers(0, cells, rng.binomial(cells, self.spike_share)) if cells else np.zeros(0, np.int64)
        draws.reshape(-1)[hit] += rng.exponential(self.spike_mean, hit.size).astype(np.float32)
        return draws

    def hosts(self, rng: np.random.Generator, hosts: int) -> Values:
        """(hosts,) log-factors that every measurement of a host shares."""
        return np.float32(self.host_spread) * rng.standard_normal(hosts, dtype=np.float32)

    def links(self, rng: np.random.Generator, links: int) -> Values:
        """(links,) log-factors of the directed links."""
        return np.float32(self.link_spread) * rng.standard_normal(links, dtype=np.float32)

    def facts(self) -> dict[str, Any]:
        """Attributes that are written into a run."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "residuals"}
        if self.kind == "replay":
            facts["residuals"] = "comet" if self.residuals is None else f"{len(self.residuals)} of the caller's"
        return facts


@lru_cache
def comet_residuals() -> Values:
    """log(time / median of its size and switch) of SDSC Comet's pairs, 1 B to 1 KiB; see the head of comet.txt."""
    text = (resources.files("fablint.simulate") / "comet.txt").read_text()
    return np.array([float(line) for line in text.splitlines() if not line.startswith("#")], dtype=np.float32)
