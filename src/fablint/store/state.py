"""State of a run, set from outside after its engine died."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fablint.errors import FullDiskError, IncompleteError, UsageError
from fablint.model.facts.failed_rank import FailedRank
from fablint.model.facts.json_objects import document_of
from fablint.model.facts.run_attributes import RunState
from fablint.store.checksums import ROOT, remove_checksums, write_checksums
from fablint.store.facts.stored_facts import read_row_facts, read_run_facts
from fablint.store.layout import STATES
from fablint.store.metadata import change_attributes
from fablint.system import DISK_FULL


def set_state(path: Path, state: RunState, lost: Sequence[FailedRank] = ()) -> None:
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
        Ranks that stalled or died, added to those in the run.

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
    facts = read_run_facts(path)
    lost = [*facts.lost, *(entry for entry in lost if entry not in facts.lost)]
    try:
        for name in facts.rows:
            _set_row(path / name, state)
        remove_checksums(path, ROOT)
        change_attributes(path, state=state, **({"lost": [document_of(entry) for entry in lost]} if lost else {}))
        write_checksums(path, ())
    except OSError as error:
        kind = FullDiskError if error.errno in DISK_FULL else IncompleteError
        raise kind(
            f"{path}: its state cannot be written ({error.strerror})",
            f"measured cells are kept: free space, then run fablint resume {path}",
        ) from None


def _set_row(folder: Path, state: RunState) -> None:
    if not (folder / "zarr.json").is_file():
        return  # never started
    if read_row_facts(folder).state == "measuring":
        change_attributes(folder, state=state)
