"""Does the host that writes a run see the folder of the run? Rank 0 reads the rounds there and creates the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from fablint.errors import IncompleteError, UsageError
from fablint.model import Allocation, Slots
from fablint.system import System, is_here

_ANSWER_S = 8.0
_UNSEEN = "fablint: unseen"
# A file server may show a new file late.
_LOOK = f"for i in 1 2 3; do if [ -e \"$0\" ]; then exit 0; fi; sleep 1; done; echo '{_UNSEEN}'"


def refuse_unshared(system: System, folder: Path, slots: Sequence[Slots]) -> None:
    """Raise UsageError where the first host of `slots`, that of rank 0, does not see `folder` of this machine.

    Takes one connection, none where rank 0 is on this machine. A host that does not answer is not refused.
    """
    if why := _unshared(system, folder, slots):
        raise UsageError(*why)


def explain_unshared(system: System, folder: Path, slots: Sequence[Slots]) -> None:
    """Raise IncompleteError after a launch that wrote nothing, where the cause is a folder that is not shared."""
    if why := _unshared(system, folder, slots):
        raise IncompleteError(*why)


def _unshared(system: System, folder: Path, slots: Sequence[Slots]) -> tuple[str, str] | None:
    """Return what is wrong and what to do about it; None where the folder is shared."""
    from fablint.cluster import current_job, everywhere

    if not slots or is_here(slots[0].host):
        return None
    host, folder = slots[0].host, folder.absolute()
    where = replace(current_job(system) or Allocation((), "hosts that were named"), hosts=(host,))
    try:
        with NamedTemporaryFile(prefix=".fablint-", dir=folder) as token:
            (answer,) = everywhere(system, where, ("/bin/sh", "-c", _LOOK, token.name), timeout_s=_ANSWER_S)
    except OSError:
        return None  # a folder that cannot be written is another error, and said where the run is written
    if _UNSEEN not in answer.output:
        return None
    return (
        f"{host} does not see {folder} of this machine, and its rank writes the run",
        f"give -o in a folder that all hosts share, or start fablint on {host}",
    )
