from __future__ import annotations

from pathlib import Path

import pytest

from fablint.plan.rows.benchmarks import Benchmark, read_benchmarks


@pytest.fixture(scope="session")
def engine_page() -> str:
    """docs/reference/engine.md, the contract that the grammar follows."""
    return (Path(__file__).parents[2] / "docs/reference/engine.md").read_text()


@pytest.fixture(scope="session")
def registry_folder() -> Path:
    """engine/registry, the tables that the engine and the front end share."""
    return Path(__file__).parents[2] / "engine" / "registry"


@pytest.fixture(scope="session")
def registry(registry_folder: Path) -> dict[str, Benchmark]:
    """engine/registry/benchmarks.inc, the benchmarks that travel with the engine."""
    path = registry_folder / "benchmarks.inc"
    return read_benchmarks(path.read_text(), path.name)
