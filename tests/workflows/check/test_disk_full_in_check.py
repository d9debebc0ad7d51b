"""A disk that is full from some file of a check on: a verdict of what was measured, and `resume` measures the rest."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from fake_launches import FakeCluster, fabric, launches_of, request_of

from fablint.discover import write_topology
from fablint.errors import FullDiskError
from fablint.plan.check.suites import find_suite
from fablint.system import DISK_FULL
from fablint.text import notes as noted
from fablint.workflows import run_files
from fablint.workflows.check.check_record import CheckRecord, load_check
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.level_runs import LevelRuns
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.run_formats import read
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

FABRIC = fabric()
RECORD = CheckRecord(CheckRequest(), topology=write_topology(FABRIC))
NOTE = noted.message("hsn1 was not looked at")


class FullDisk:
    """`replace_octets` of a disk that has room for so many files."""

    def __init__(self, room: int, number: int) -> None:
        self.room, self.number, self.written = room, number, 0
        self.real = run_files.replace_octets

    def __call__(self, path: Path, octets: bytes) -> None:
        self.written += 1
        if self.written > self.room:
            raise OSError(self.number, os.strerror(self.number), str(path))
        self.real(path, octets)


def checked(cluster: FakeCluster, output: Path, record: CheckRecord) -> CheckOutcome:
    launches, _ = launches_of(cluster, request_of(list(FABRIC.host_switch), FABRIC), output)
    run = read(output) if (output / "zarr.json").exists() else None
    planned = list(run_files.load_levels(run)) if run is not None else []
    runs = LevelRuns(launches, find_suite("quick"), record=record, planned=planned, preflight_notes=[NOTE])
    return runs.check(run)


@pytest.mark.parametrize(("room", "number"), [(0, errno.ENOSPC), (6, errno.ENOSPC), (13, errno.EDQUOT)])
def test_what_was_measured_is_judged_and_the_rest_measured_later(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, number: int
) -> None:
    assert number in DISK_FULL
    output, disk = tmp_path / "a.run", FullDisk(room, number)
    monkeypatch.setattr(run_files, "replace_octets", disk)
    searches = len(cluster.trials)
    if room == 0:
        with pytest.raises(FullDiskError, match="free space, or choose another -o"):
            checked(cluster, output, RECORD)
    else:
        outcome = checked(cluster, output, RECORD)
        verdict = outcome.diagnosis.verdict
        assert (verdict.verdict, verdict.exit_code) == ("incomplete", 3)
        assert outcome.error.startswith(f"cannot write {output}/")
        assert PINNED["number free space: go"].filled(number=os.strerror(number), output=output).ends(outcome.error)
        assert NOTE in verdict.notes
        assert outcome.run.rows
    assert len(cluster.trials) == searches  # no host is looked for
    disk.room = 10**6
    record = load_check(output) if output.exists() else None
    outcome = checked(cluster, output, record or RECORD)
    assert (outcome.diagnosis.verdict.verdict, outcome.error) == ("pass", "")


def test_a_report_that_does_not_fit_is_not_a_pass_without_a_word(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "a.run"
    real = run_files.replace_octets

    def replace(path: Path, octets: bytes) -> None:
        if path.parent.name == "report":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, octets)

    monkeypatch.setattr(run_files, "replace_octets", replace)
    outcome = checked(cluster, output, RECORD)
    assert (outcome.diagnosis.verdict.verdict, outcome.exit_code, outcome.page) == ("pass", 3, None)
    assert outcome.error == PINNED["cannot write output"].filled(output=output)
