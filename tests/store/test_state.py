"""Sealing a run whose engine died."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from run_cases import edit_json

from fablint.errors import BrokenRunError, IncompleteError, UsageError
from fablint.model.facts.failed_rank import FailedRank
from fablint.store import read_run, set_state

LOST = FailedRank(5, "nid002", 3, 1, "no message for 60 s")


def test_the_state_changes_and_nothing_else(engine_run):
    edit_json(engine_run / "zarr.json", state="measuring", later={"deep": [1, None]})
    edit_json(engine_run / "pairs/zarr.json", state="measuring")
    before = {path: json.loads(path.read_text()) for path in engine_run.rglob("zarr.json")}
    set_state(engine_run, "interrupted")
    for path, node in before.items():
        if path.parent in (engine_run, engine_run / "pairs"):
            node["attributes"]["state"] = "interrupted"
        assert json.loads(path.read_text()) == node
    assert {path.name for path in engine_run.iterdir()} == {"zarr.json", "latency", "pairs", "checksums", "tables"}
    assert [row.facts.state for row in read_run(engine_run).rows] == ["complete", "interrupted"]


def test_lost_ranks_are_added_once(engine_run):
    other = replace(LOST, rank=2)
    set_state(engine_run, "interrupted", lost=[LOST])
    set_state(engine_run, "interrupted", lost=[LOST, other])
    assert read_run(engine_run).facts.lost == [LOST, other]


def test_a_row_that_was_not_started_stays_so(engine_run):
    shutil.rmtree(engine_run / "pairs")
    set_state(engine_run, "interrupted")
    assert not (engine_run / "pairs").exists()


def test_wrong_use(engine_run, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="state 'dead' is unknown: choose one of measuring"):
        set_state(engine_run, "dead")
    with pytest.raises(UsageError, match="no such run"):
        set_state(tmp_path / "nowhere", "interrupted")
    monkeypatch.setattr("pathlib.Path.replace", _no_space)
    with pytest.raises(IncompleteError, match="No space left"):
        set_state(engine_run, "interrupted")
    (engine_run / "zarr.json").write_text("{")
    with pytest.raises(BrokenRunError, match="is not JSON"):
        set_state(engine_run, "interrupted")


def _no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")
