"""What tests of workflows share."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_launches import FakeCluster, FakeSystem

from fablint.workflows import measurement
from fablint_command import Fablint


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster whose launches are fakes: `measurement.measure` measures nothing."""
    fake = FakeCluster(FakeSystem(tmp_path / "home"))
    monkeypatch.setattr(measurement, "measure", fake.measure)
    return fake


@pytest.fixture
def fablint(fablint_in_process: Fablint) -> Fablint:
    return fablint_in_process
