from __future__ import annotations

from pathlib import Path

import pytest
from run_cases import list_row, matrix_row, run_of, write_like_the_engine


@pytest.fixture
def engine_run(tmp_path: Path) -> Path:
    """A complete run as the engine writes it: an all-pairs row `latency` and a row `pairs` of matchings, 6 ranks."""
    path = tmp_path / "night.run"
    write_like_the_engine(path, run_of(matrix_row(), list_row()))
    return path
