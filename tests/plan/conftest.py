from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def engine_page() -> str:
    """docs/reference/engine.md, the contract that the grammar follows."""
    return (Path(__file__).parents[2] / "docs/reference/engine.md").read_text()
