"""Diagnoses that are kept in a run directory: they say what the judgement said, and serve until a file changes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fablint
from fablint import analyse
from fablint.errors import UsageError
from fablint.history.diagnosis_document import diagnosis_document, diagnosis_of
from fablint.report.html.page import render
from fablint.simulate.fabrics.kinds import build
from fablint.store import read_run, write_run
from fablint.workflows import analysis
from fablint.workflows.run_files import DIAGNOSIS

SITE = """format = 1
[[threshold]]
scope = "any"
kernel = "bandwidth"
size = "1M"
value = "30 GB/s"
lower = "1%"
"""
TOPOLOGY = """format: 1
switches: {"s[0-3]": {}}
hosts: {"h[00-03]": s0, "h[04-07]": s1, "h[08-11]": s2, "h[12-15]": s3}
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with a slow host."""
    write_run(tmp_path / "x.run", fablint.simulate_run("mesh", "4x4", faults=["host:h03:tx:-30%"]))
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    (tmp_path / "site.toml").write_text(SITE)
    return tmp_path / "x.run"


@pytest.fixture
def judgements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each judgement."""
    judged, diagnose = [], analyse.diagnose

    def counted(*values: Any, **named: Any) -> Any:
        judged.append("run")
        return diagnose(*values, **named)

    monkeypatch.setattr("fablint.analyse.diagnose", counted)
    return judged


def text(diagnosis: fablint.Diagnosis) -> str:
    return json.dumps(diagnosis_document(diagnosis))


@pytest.mark.parametrize(
    ("kind", "shape", "fault", "is_declared"),
    [
        ("mesh", "4x4", "host:h03:tx:-30%", False),  # switches are inferred
        ("mesh", "4x4", "link:s0>s1:-30%", True),
        ("dragonfly", "5x2x2", "host:h03:+2us", True),
        ("fat-tree", "8x2", "host:h03:on=leaf2", True),  # a host that is connected elsewhere
    ],
)
def test_a_kept_diagnosis_says_what_the_judgement_said(
    run: Path, kind: str, shape: str, fault: str, is_declared: bool
) -> None:
    measured = fablint.simulate_run(kind, shape, faults=[fault])
    topology = build(kind, None, shape).topology if is_declared else None
    judged = analysis.diagnose(measured, topology, site=run.parent / "site.toml")
    read = diagnosis_of(json.loads(text(judged)))
    assert text(read) == text(judged)
    assert (read.topology, read.comparison) == (judged.topology, judged.comparison)
    assert fablint.verdict_json(read) == fablint.verdict_json(judged)
    assert fablint.summary(measured, read) == fablint.summary(measured, judged)
    assert render(measured, read) == render(measured, judged)


def test_a_run_is_judged_once_and_again_with_other_files(run: Path, judgements: list[str]) -> None:
    first = analysis.judge(read_run(run))
    assert text(analysis.judge(read_run(run))) == text(first)
    assert len(judgements) == 1
    with_topology = analysis.judge(read_run(run), run.parent / "topology.yaml")
    assert len(judgements) == 2
    assert with_topology.topology == fablint.load_topology(run.parent / "topology.yaml")
    assert analysis.judge(read_run(run), run.parent / "topology.yaml").topology == with_topology.topology
    assert len(judgements) == 2
    assert analysis.judge(read_run(run), site=run.parent / "site.toml").comparison is not None
    assert len(judgements) == 3


def _copy_topology(run: Path) -> None:
    (run / "topology.yaml").write_text(TOPOLOGY)


def _change_metadata_within_its_times(run: Path) -> None:
    before = (run / "bandwidth/zarr.json").stat()
    content = (run / "bandwidth/zarr.json").read_bytes()
    (run / "bandwidth/zarr.json").write_bytes(content)
    os.utime(run / "bandwidth/zarr.json", ns=(before.st_atime_ns, before.st_mtime_ns))


def _remove_a_chunk(run: Path) -> None:
    next((run / "bandwidth/count").glob("c.*")).unlink()


def _cut_the_diagnosis(run: Path) -> None:
    (run / DIAGNOSIS).write_text((run / DIAGNOSIS).read_text()[:1000])


def _empty_the_diagnosis(run: Path) -> None:
    (run / DIAGNOSIS).write_text(json.dumps({**json.loads((run / DIAGNOSIS).read_text()), "diagnosis": {}}))


@pytest.mark.parametrize(
    "change",
    [_copy_topology, _change_metadata_within_its_times, _remove_a_chunk, _cut_the_diagnosis, _empty_the_diagnosis],
)
def test_a_changed_file_is_judged(run: Path, judgements: list[str], change: Callable[[Path], None]) -> None:
    analysis.judge(read_run(run))
    change(run)
    changed = analysis.judge(read_run(run))
    assert len(judgements) == 2
    assert text(changed) == text(
        analysis.diagnose(read_run(run), changed.topology if change is _copy_topology else None)
    )


def test_changed_contents_of_a_users_file_are_judged_and_a_missing_file_is_refused(
    run: Path, judgements: list[str]
) -> None:
    site = run.parent / "site.toml"
    missed = analysis.judge(read_run(run), site=site).comparison
    site.write_text(SITE.replace("30 GB", "1 GB"))
    met = analysis.judge(read_run(run), site=site).comparison
    assert missed is not None and met is not None
    assert [{entry.verdict for entry in compared.compared} for compared in (missed, met)] == [{"missed"}, {"met"}]
    analysis.judge(read_run(run))
    with pytest.raises(UsageError):
        analysis.judge(read_run(run), findings=run.parent / "missing.json")


def test_a_run_that_cannot_be_written_is_judged_each_time(run: Path, judgements: list[str]) -> None:
    (run / "report").write_text("")  # no folder can be made there, also by root
    analysis.judge(read_run(run))
    analysis.judge(read_run(run))
    assert len(judgements) == 2


def test_a_run_that_is_not_complete_is_judged_each_time(run: Path, judgements: list[str]) -> None:
    document = json.loads((run / "zarr.json").read_text())
    document["attributes"]["state"] = "interrupted"
    (run / "zarr.json").write_text(json.dumps(document))
    (run / "checksums/zarr.json.sha256").unlink()
    analysis.judge(read_run(run))
    assert not (run / DIAGNOSIS).exists()
    analysis.judge(read_run(run))
    assert len(judgements) == 2
