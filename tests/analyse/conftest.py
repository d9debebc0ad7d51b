"""Seeds and noises on which claims about the analysis are tested: a few in `make test`, all in `make test-long`."""

from __future__ import annotations

import pytest
from fabric_cases import NOISES


@pytest.fixture(params=[pytest.param(range(4), id="few"), pytest.param(range(20), id="all", marks=pytest.mark.long)])
def seeds(request: pytest.FixtureRequest) -> range:
    """Seeds of the simulated runs of a statistical claim."""
    seeds: range = request.param
    return seeds


@pytest.fixture(params=[pytest.param(noise, marks=[pytest.mark.long] * (noise != "student3")) for noise in NOISES])
def noise(request: pytest.FixtureRequest) -> str:
    """Noise of the measurements: the one with heavy tails on both sides in `make test`."""
    noise: str = request.param
    return noise
