"""Verdicts that are read from files: findings of other tools, and those that a check keeps in its run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fablint.errors import UsageError
from fablint.text import notes as noted
from fablint.workflows.run_files import load_verdict

HOST = {"kind": "host", "ends": [{"nodes": "h03"}]}
FINDING = {"state": "SUSPECT", "components": [HOST]}
COVERAGE = {"pairs_planned": 1, "pairs_measured": 1, "hosts": 1, "hosts_judged": 1}
VERDICT = {"format": 3, "verdict": "fault", "exit_code": 1, "findings": [FINDING], "coverage": COVERAGE}


def written(folder: Path, **parts: Any) -> Path:
    """File of a verdict whose finding has evidence or actions, or that has notes."""
    of_finding = {name: part for name, part in parts.items() if name != "notes"}
    document = {**VERDICT, "findings": [{**FINDING, **of_finding}], "notes": parts.get("notes", [])}
    (folder / "verdict.json").write_text(json.dumps(document))
    return folder / "verdict.json"


@pytest.mark.parametrize(
    "parts",
    [
        {"evidence": [{"kind": "of_a_later_version"}]},
        {"evidence": [{"kind": "few_hosts", "values": {"other": 3}}]},
        {"evidence": [{"kind": "hidden_loss", "values": {"limit": "wide"}}]},
        {"next_step": [{"kind": "of_a_later_version"}]},
        {"next_step": [{"kind": "inspect_host"}]},
        {"notes": [{"kind": "of_a_later_version"}]},
        {"notes": [{"kind": "contention", "values": {"low": 1.5}}]},
    ],
    ids=str,
)
def test_a_kind_or_field_that_no_sentence_has_is_refused_by_name(tmp_path: Path, parts: dict[str, Any]) -> None:
    path = written(tmp_path, **parts)
    ((entry,),) = parts.values()
    with pytest.raises(UsageError) as refused:
        load_verdict(path)
    assert refused.value.message == f"{path}: this fablint has no sentence for {entry['kind']}"


def test_notes_of_format_2_are_read(tmp_path: Path) -> None:
    read = load_verdict(written(tmp_path, notes=["the run was interrupted"]))
    assert read is not None
    assert read.notes == (noted.message("the run was interrupted"),)
