"""State of a run, set from outside after its engine died."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fablint.errors import FullDiskError, IncompleteError, UsageError
from fablint.store.checksums import ROOT, remove_checksums, write_checksums
from fablint.store.layout import STATES
from fablint.store.metadata import read_root, read_row, replace_node
from fablint.system import DISK_FULL


def set_state(path: Path, state: str, lost: Sequence[Mapping[str, Any]] = ()) -> None:
    """Set the state of a run whose engine died.

    The rest of the metadata is kept. Rows that are still `measuring` get the same state. Metadata files are replaced
    one by one, rows first, each in one step; repeated calls have no further effect.

    Parameters
    ----------
    path
        The run directory.
    state
        `interrupted` or `complete`.
    lost
        Ranks that stalled or died ({rank, host, round, partner, reason}), added to those in the run.

    Raises
    ------
    UsageError
        There is no run at `path`, or no such state.
    BrokenRunError
        Its metadata is damaged.
    IncompleteError
        It cannot be written.
    """
    path = Path(path)
    if state not in STATES:
        raise UsageError(f"state '{state}' is unknown", f"choose one of {', '.join(STATES)}")
    node = read_root(path)
    attributes = node["attributes"]
    attributes["state"] = state
    if lost:
        failed = attributes.get("lost", [])
        attributes["lost"] = failed + [dict(entry) for entry in lost if dict(entry) not in failed]
    try:
        for name in attributes["rows"]:
            _set_row(path / name, state)
        remove_checksums(path, ROOT)
        replace_node(path, node)
        write_checksums(path, ())
    except OSError as error:
        kind = FullDiskError if error.errno in DISK_FULL else IncompleteError
        raise kind(
            f"{path}: its state cannot be written ({error.strerror})",
            f"measured cells are kept: free space, then run fablint resume {path}",
        ) from None


def _set_row(folder: Path, state: str) -> None:
    if not (folder / "zarr.json").is_file():
        return  # never started
    node = read_row(folder)
    if node["attributes"]["state"] == "measuring":
        node["attributes"]["state"] = state
        replace_node(folder, node)
