"""fablint as a user calls it: a program of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from fablint_command import COMMAND, Fablint


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
