"""Pages of preflight: checks are made from the table, and all of them are there; so is every key of a snapshot."""

from __future__ import annotations

import json
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from fablint.preflight.check_registry import CHECKS

ROOT = Path(__file__).parents[3]
SNAPSHOT = ROOT / "docs" / "reference" / "snapshot.md"
REFERENCE = runpy.run_path(str(ROOT / "docs" / "preflight_reference.py"))


def test_the_page_is_fresh():
    assert REFERENCE["PAGE"].read_text() == REFERENCE["render"](), "run docs/preflight_reference.py"


def test_every_check_is_there():
    text = REFERENCE["render"]()
    assert [check.id for check in CHECKS if f"\n| `{check.id}` |" not in text] == []


def test_a_family_without_a_title_is_refused(monkeypatch):
    monkeypatch.setitem(REFERENCE["render"].__globals__, "CHECKS", [replace(CHECKS[0], id="mem.overcommit")])
    with pytest.raises(SystemExit, match=r"no title for checks called mem\.\*"):
        REFERENCE["render"]()


def test_no_two_checks_have_one_id_and_none_is_longer_than_sinfo_shows():
    ids = [check.id for check in CHECKS]
    assert len(ids) == len(set(ids)) >= 50
    assert [one for one in ids if len(one) > 20] == []


def test_every_key_of_a_snapshot_is_described(fablint, tmp_path):
    (tmp_path / "machine").mkdir()
    fablint("preflight", "--sysroot", "machine", "--save", "x.json")
    table = [line.split("|")[1] for line in SNAPSHOT.read_text().splitlines() if line.startswith("| `")]
    described = {key for cell in table for key in re.findall("`([a-z_]+)`", cell)}
    assert set(json.loads((tmp_path / "x.json").read_text())) == described - {"reach"}  # of hosts that are several
