"""Calls of `fablint check` that end before anything is measured."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from check_calls import Call, Called, FakeScheduler
from fablint import cluster
from fablint.cli import main
from fablint.errors import IncompleteError
from fablint.system import System
from fablint.workflows.check import cluster_check, local_check
from fablint.workflows.check.request import CheckRequest


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call fablint in an empty directory outside of any job, where nothing can be measured or asked."""
    for name in ("SLURM_JOB_ID", "PBS_NODEFILE", "LSB_JOBID", "FLUX_URI", "PE_HOSTFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("FABLINT_HOME", str(tmp_path / "home"))
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def fake_work(*_: object, **__: object) -> NoReturn:
        raise AssertionError("hosts were asked, or something was measured")

    monkeypatch.setattr(local_check, "check_local", fake_work)
    monkeypatch.setattr(cluster, "everywhere", fake_work)
    monkeypatch.setattr(System, "resolves", lambda _, host: host in ("n1", "n2", "n3", "n4"))

    def run(*words: str) -> Called:
        with pytest.raises(SystemExit) as ended:
            main(words)
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Called(ended.value.code, said.out, said.err)

    return run


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> FakeScheduler:
    fake = FakeScheduler()
    monkeypatch.setattr(cluster, "find_scheduler", lambda _: fake)
    return fake


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[CheckRequest]:
    """What `check_cluster` was asked for: it ends there."""
    found: list[CheckRequest] = []

    def fake_check(_: object, wanted: CheckRequest, output: Path) -> NoReturn:
        found.append(wanted)
        raise IncompleteError("nothing is measured here")

    monkeypatch.setattr(cluster_check, "check_cluster", fake_check)
    return found
