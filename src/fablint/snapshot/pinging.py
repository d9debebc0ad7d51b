"""How the pinger is started on hosts, and how what it says is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fablint.model import Answer
from fablint.snapshot.collecting import PYTHON, CollectedSnapshots, program, snapshot_of, unpack
from fablint.snapshot.nics import ip_documents
from fablint.snapshot.parsers.documents import dicts

LIMITS_S = {"quick": 10.0, "full": 60.0}  # of a host, by level; 1 s and 10 s where all answer

_CONFIRMED = ("REACHABLE", "DELAY", "PROBE")  # not long ago


def pinger(table: Sequence[dict[str, Any]], offsets: Sequence[int], count: int, level: str) -> tuple[list[str], str]:
    """The command that pings on a host, and what it wants on its stdin: the program with its instructions.

    The table has a row for every host: `host`, `own` (the name that it gives itself) and `rails`: by label its
    address and its MTU. `count` pings are sent to every peer that answers.
    """
    asked = {"hosts": table, "offsets": offsets, "count": count, "limit_s": LIMITS_S[level]}
    return [*PYTHON], f"{program('pinger')}\n\nmain({asked!a})\n"


def with_reach(collected: CollectedSnapshots, answers: Iterable[Answer]) -> CollectedSnapshots:
    """Snapshots to which is added what their hosts' pingers said, or why they said nothing.

    Neighbour tables are those after the pings, as far as these went.
    """
    documents = dict(collected.documents)
    for one in answers:
        if one.host in documents:
            said = unpack(one.output, "fablint_reach") or {"error": _why(one)}
            documents[one.host] = _renewed({**documents[one.host], "reach": said})
    return CollectedSnapshots(
        documents, {host: snapshot_of(document) for host, document in documents.items()}, collected.silent
    )


def _renewed(document: dict[str, Any]) -> dict[str, Any]:
    """With the entries of the neighbour table that the pinger saw; of older ones for the same addresses only those that
    were confirmed and have another MAC, for then two answer.
    """
    fresh, commands = dicts(document["reach"].get("neighbours")), document.get("commands")
    if not fresh or not isinstance(commands, dict):
        return document
    macs = {str(one.get("dst")): one.get("lladdr") for one in fresh}
    kept = [one for one in ip_documents(snapshot_of(document), "ip-neigh") if _still_tells(one, macs)]
    said = {"output": json.dumps([*kept, *fresh]), "status": 0}
    return {**document, "commands": {**commands, "ip-neigh": said}}


def _still_tells(entry: dict[str, Any], macs: Mapping[str, Any]) -> bool:
    address = str(entry.get("dst"))
    confirmed = any(state in str(entry.get("state")) for state in _CONFIRMED)
    return address not in macs or (confirmed and entry.get("lladdr") != macs[address])


def _why(answer: Answer) -> str:
    return answer.error or "it printed nothing that can be understood"
