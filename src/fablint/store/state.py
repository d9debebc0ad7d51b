"""The state of a run, set from outside when its engine can no longer do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fablint.errors import IncompleteError, UsageError
from fablint.store.layout import STATES
from fablint.store.metadata import read_root, read_row, replace_node


def set_state(path: Path, state: str, lost: Sequence[Mapping[str, Any]] = ()) -> None:
    """Seal a run whose engine died.

    Everything else in the metadata stays. Rows that are still `measuring` follow the run. Metadata files are
    replaced one by one, rows first, each in one step; doing it twice is the same as once.

    Args:
        path: the run directory.
        state: `interrupted` or `complete`.
        lost: ranks that hung or died ({rank, host, round, partner, reason}), added to those known.

    Raises:
        UsageError: no run at `path`, or no such state.
        BrokenRunError: its metadata is damaged.
        IncompleteError: it cannot be written.
    """
    path = Path(path)
    if state not in STATES:
        raise UsageError(f"state '{state}' is unknown", f"choose one of {', '.join(STATES)}")
    node = read_root(path)
    attributes = node["attributes"]
    attributes["state"] = state
    if lost:
        known = attributes.get("lost", [])
        attributes["lost"] = known + [dict(entry) for entry in lost if dict(entry) not in known]
    try:
        for name in attributes["rows"]:
            _set_row(path / name, state)
        replace_node(path, node)
    except OSError as error:
        raise IncompleteError(
            f"{path}: its state cannot be written ({error.strerror})",
            f"what was measured is kept: free space, then go on with fablint resume {path}",
        ) from None


def _set_row(folder: Path, state: str) -> None:
    if not (folder / "zarr.json").is_file():
        return  # never started
    node = read_row(folder)
    if node["attributes"]["state"] == "measuring":
        node["attributes"]["state"] = state
        replace_node(folder, node)
