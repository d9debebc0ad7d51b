"""Do hosts see the files of this machine that a launch needs: the folder of the run, and the engine?

Rank 0 reads the rounds in the folder of the run and creates the files; all ranks execute the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from fablint.errors import IncompleteError, UsageError
from fablint.model import Allocation, Slots
from fablint.model.names import fold
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


def explain_unshared(system: System, folder: Path, engine: Path, slots: Sequence[Slots]) -> None:
    """Raise IncompleteError after a launch that wrote nothing, where the cause is a folder that is not shared.

    UsageError where a host of `slots` does not see the engine of this machine. Takes a connection to each host at the
    same time. Hosts that do not answer are not the cause.
    """
    if why := _unshared(system, folder, slots):
        raise IncompleteError(*why)
    hosts = list(dict.fromkeys(slot.host for slot in slots))
    if not (unseeing := _unseeing(system, engine, hosts)):
        return
    names, verb = fold(unseeing), "do" if len(unseeing) > 1 else "does"
    exclude = "" if len(unseeing) == len(hosts) else f", or exclude {names} with -x"
    raise UsageError(
        f"{names} {verb} not see {engine} of this machine, the engine that ranks execute",
        f"set FABLINT_HOME to a folder that all hosts share (it is {system.home}){exclude}",
    )


def _unshared(system: System, folder: Path, slots: Sequence[Slots]) -> tuple[str, str] | None:
    """Return what is wrong and what to do about it; None where the folder is shared."""
    host, folder = slots[0].host if slots else "", folder.absolute()
    try:
        with NamedTemporaryFile(prefix=".fablint-", dir=folder) as token:
            unseeing = _unseeing(system, Path(token.name), [host] if host else [])
    except OSError:
        return None  # a folder that cannot be written is another error, and said where the run is written
    if not unseeing:
        return None
    return (
        f"{host} does not see {folder} of this machine, and its rank writes the run",
        f"give -o in a folder that all hosts share, or start fablint on {host}",
    )


def _unseeing(system: System, path: Path, hosts: Sequence[str]) -> list[str]:
    """Return the hosts that answer and do not see a file of this machine; no connection is made to this machine."""
    from fablint.cluster import current_job, everywhere

    others = tuple(host for host in hosts if not is_here(host))
    if not others:
        return []
    where = replace(current_job(system) or Allocation((), "hosts that were named"), hosts=others)
    answers = everywhere(system, where, ("/bin/sh", "-c", _LOOK, str(path.absolute())), timeout_s=_ANSWER_S)
    return [answer.host for answer in answers if _UNSEEN in answer.output]
