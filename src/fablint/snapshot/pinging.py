"""Command that runs the pinger on hosts, and the merge of its output into snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fablint.model import Answer
from fablint.snapshot.collecting import PYTHON, CollectedSnapshots, program, snapshot_of, unpack
from fablint.snapshot.nics import ip_documents
from fablint.snapshot.parsers.documents import dicts

LIMITS_S = {"quick": 10.0, "full": 60.0}  # of a host and a pass, by level; 1 s and 10 s if all peers answer
PAUSE_S = 2.0  # before the second pass: longer than hosts and switches usually lose pings for a passing reason

_CONFIRMED = ("REACHABLE", "DELAY", "PROBE")  # recently


def pinger(
    table: Sequence[dict[str, Any]],
    offsets: Sequence[int],
    count: int,
    level: str,
    lossy: Sequence[tuple[str, str]] = (),
) -> tuple[list[str], str]:
    """Return the command that pings on a host.

    Parameters
    ----------
    table
        A row for every host: `host`, `own` (its own host name) and `rails`: address and MTU by label.
    offsets
        Distances in the table to the peers of a host.
    count
        Number of pings to every peer that answers.
    level
        Level of preflight.
    lossy
        Hosts and rails of the ends that lost pings, in the second pass.

    Returns
    -------
    tuple of (list of str, str)
        Words of the command, and its standard input: the program with its instructions.
    """
    times = {"limit_s": LIMITS_S[level], "pause_s": PAUSE_S if lossy else 0.0}
    instructions = {"hosts": table, "offsets": offsets, "count": count, "lossy": lossy, **times}
    return [*PYTHON], f"{program('pinger')}\n\nmain({instructions!a})\n"


def with_reach(collected: CollectedSnapshots, answers: Iterable[Answer], *, second: bool = False) -> CollectedSnapshots:
    """Return the snapshots with the outputs of the pingers, or the reasons why there are none.

    Parameters
    ----------
    collected
        Snapshots. Their neighbour entries of pinged addresses are replaced by those after the pings.
    answers
        Outputs of the pingers.
    second
        Whether the outputs are added to those of the first pass.
    """
    documents = dict(collected.documents)
    for answer in answers:
        if answer.host in documents:
            output = unpack(answer.output, "fablint_reach") or {"error": _reason(answer)}
            document = documents[answer.host]
            documents[answer.host] = (
                {**document, "reach": {**document["reach"], "second": output}}
                if second
                else _with_new_entries({**document, "reach": output})
            )
    snapshots = {host: snapshot_of(document) for host, document in documents.items()}
    return replace(collected, documents=documents, snapshots=snapshots)


def _with_new_entries(document: dict[str, Any]) -> dict[str, Any]:
    """Replace neighbour entries by those after the pings.

    A confirmed older entry with another MAC is kept, since two NICs answer for its address.
    """
    fresh, commands = dicts(document["reach"].get("neighbours")), document.get("commands")
    if not fresh or not isinstance(commands, dict):
        return document
    macs = {str(one.get("dst")): one.get("lladdr") for one in fresh}
    kept = [
        ip_document for ip_document in ip_documents(snapshot_of(document), "ip-neigh") if _is_kept(ip_document, macs)
    ]
    entries = {"output": json.dumps([*kept, *fresh]), "status": 0}
    return {**document, "commands": {**commands, "ip-neigh": entries}}


def _is_kept(entry: dict[str, Any], macs: Mapping[str, Any]) -> bool:
    address = str(entry.get("dst"))
    confirmed = any(state in str(entry.get("state")) for state in _CONFIRMED)
    return address not in macs or (confirmed and entry.get("lladdr") != macs[address])


def _reason(answer: Answer) -> str:
    return answer.error or "its output cannot be parsed"
