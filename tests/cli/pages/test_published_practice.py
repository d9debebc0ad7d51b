"""The page of published health checks: every check that it names exists, and every row says something."""

from __future__ import annotations

import re
from pathlib import Path

from fablint.preflight.check_registry import CHECKS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "published-practice.md"
FAMILIES = "|".join(sorted({check.id.partition(".")[0] for check in CHECKS}))
NAMED = re.compile(rf"`((?:{FAMILIES})\.[a-z0-9.]+)`")


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("---", "published check")]


def test_every_check_that_is_named_exists() -> None:
    named = set(NAMED.findall(PAGE.read_text()))
    assert len(named) > 50
    assert named - {check.id for check in CHECKS} == set()


def test_every_row_names_a_check_or_the_reason_why_there_is_none() -> None:
    assert len(rows()) > 50
    for published, answer in rows():
        assert NAMED.search(answer) or answer.startswith(("none: ", "`fablint ")), published
