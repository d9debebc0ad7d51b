"""Checks of the fabric of level_cases.py, for the tests of levels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_launches import (
    Done,
    FakeCluster,
    launches_of,
    no_answer,
    request_of,
    whole_check,
)
from level_cases import CHECK, FABRIC, HOSTS

from fablint.model import Finding
from fablint.plan.check.suites import find_suite
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.level_runs import LevelRuns


@pytest.fixture
def check(cluster: FakeCluster, tmp_path: Path) -> CHECK:
    """Check the hosts of the fabric; `said` of what comes back is what was noted meanwhile."""

    def run(
        suite: str = "quick", known: Sequence[Finding] = (), lost: Collection[str] = (), **more: Any
    ) -> tuple[CheckOutcome, LevelRuns]:
        hosts = [host for host in HOSTS if host not in lost]
        launches, _ = launches_of(cluster, request_of(hosts, FABRIC), tmp_path / "a.run")
        launches.recovery.triage.failed_hosts.update({host: no_answer(host) for host in lost})
        level_runs = LevelRuns(launches, find_suite(suite), known, **more)
        return level_runs.check(), level_runs

    return run


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Done:
    return whole_check(tmp_path_factory.mktemp("healthy"), FABRIC)


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Two hosts are slow, on a slow network."""
    return whole_check(tmp_path_factory.mktemp("faulty"), FABRIC, slow={"h03": 1.5, "h09": 2.0}, rate=6.25e6)
