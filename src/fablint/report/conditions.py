"""A row measured under several conditions, as one row per condition: what must never share a distribution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fablint.model import Row

ALONE, LOADED = "alone", "loaded"


def conditions(row: Row) -> list[Row]:
    """The row itself; of a victim-aggressor row one for the rounds alone and one for those under load."""
    return [row] if row.pattern != "victim-aggressor" or row.facts.condition else [alone(row), loaded(row)]


def alone(row: Row) -> Row:
    """The victims by themselves: the even rounds."""
    return _every_second(row, 0, ALONE)


def loaded(row: Row) -> Row:
    """The victims while the aggressors send: the odd rounds."""
    return _every_second(row, 1, LOADED)


def part_name(row: str, condition: str) -> str:
    """Return the name of the part of a row that was measured under a condition; that of the row without one."""
    return f"{row} ({condition})" if condition else row


def _every_second(row: Row, first: int, condition: str) -> Row:
    """Read at once: a row of victims has few rounds. Round c of the part is round 2 c + `first` of the row."""
    rounds = row.facts.schedule.rounds
    arrays = {
        name: array if name in ("size", "bucket") else np.asarray(array[:, first:rounds:2])
        for name, array in row.arrays.items()
    }
    cells = row.facts.schedule.planned_cells[first::2]
    schedule = replace(row.facts.schedule, rounds=len(cells), cells_per_round=cells)
    facts = replace(row.facts, condition=condition, schedule=schedule)
    return replace(row, name=part_name(row.name, condition), facts=facts, arrays=arrays)
