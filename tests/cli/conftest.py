"""fablint as a user calls it: a program of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from fablint_command import COMMAND, Fablint
from fake_launches import FakeCluster, FakeSystem

from fablint.workflows import flow


@pytest.fixture
def fablint(tmp_path: Path) -> Fablint:
    """Call fablint in an empty directory; returns status, stdout and stderr."""

    def call(*words: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *map(str, words)],
            cwd=tmp_path,
            env=os.environ | {"COLUMNS": "80"} | environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return call


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster whose launches are fakes: `flow.measure` measures nothing."""
    fake = FakeCluster(FakeSystem(tmp_path / "home"))
    monkeypatch.setattr(flow, "measure", fake.measure)
    return fake
