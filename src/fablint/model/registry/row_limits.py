"""Limits of the options of a row, and values that hold where an option is absent: engine/registry/row_limits.inc."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fablint.errors import InternalError
from fablint.model.registry.engine_tables import registry_table


@dataclass(frozen=True)
class RowLimits:
    """The constants of the table, which explains them. The engine has the same names."""

    default_budget_s: float
    default_precision: float
    longest_round_s: float
    longest_counted_round_s: float
    default_window: int
    window_bytes_to_one: int
    window_bytes_to_all: int
    largest_small_message: int
    largest_message: int
    largest_count: int
    most_workers: int


def _read_limits() -> RowLimits:
    values = {
        row["name"]: float(row["value"]) if row["type"] == "double" else int(row["value"])
        for row in registry_table("row_limits.inc", "ROW_LIMIT", "name type value description")
    }
    if set(values) != {field.name for field in fields(RowLimits)}:
        raise InternalError("row_limits.inc is of another version of fablint", "reinstall fablint")
    return RowLimits(**values)  # type: ignore[arg-type]  # integers where the table declares them


ROW_LIMITS = _read_limits()
