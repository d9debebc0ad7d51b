"""What the NICs counted while a row was measured: packets, and error counters that moved."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fablint.model import Row, Run
from fablint.model.facts.run_attributes import CountersOfHosts
from fablint.model.figures.nic_traffic import packets
from fablint.model.names import natural
from fablint.report.tables.table import Rendered, TableKind, program

_CONGESTION = re.compile(r"wait|pause|stall|ecn|cnp|fgfc|rnr", re.IGNORECASE)
_ERRORS = re.compile(
    r"err|drop|discard|bad|crc|fail|fifo|missed|overrun|oflw|uncorrected|poison|replay|retry|retrans|time_?out|nak|nack"
    r"|link_downed|recovery|carrier_changes|collision|abort|cancelled|out_of_(sequence|buffer)|constraint",
    re.IGNORECASE,
)
_Readings = tuple[str, CountersOfHosts, CountersOfHosts]  # of what, before and after


def _parts(run: Run, rows: Sequence[Row]) -> list[_Readings]:
    """Readings of the rows measured with --counters; else those of the whole run."""
    row_counters = [(f"row {row.name}", row.facts.result.counters) for row in rows]
    for read in (row_counters, [("the whole run", run.facts.counters)]):
        if kept := [(what, both.before, both.after) for what, both in read if both.before and both.after]:
            return kept
    return []


# A section for each row, or for the whole run.
counters = TableKind[_Readings](
    "counters",
    options=(),
    needs="port counters from before and after",
    measure="measure it with --counters",
    parts=_parts,
    section=lambda _, part, __: _section(*part),
)


def _section(what: str, before: CountersOfHosts, after: CountersOfHosts) -> Rendered:
    lines = [f"# {program()}: packets that the NICs counted during {what}, and errors that moved"]
    facts: dict[str, Any] = {}
    for host in sorted({*before, *after}, key=natural):
        lines.append(f"# host {host}")
        facts[host] = {}
        first, last = before.get(host, {}), after.get(host, {})
        for nic in sorted({*first, *last}, key=natural):
            moved = difference(first.get(nic, {}), last.get(nic, {}))
            lines += _nic_lines(nic, moved)
            facts[host][nic] = {"tx": packets(moved, 0), "rx": packets(moved, 1), **_moved_by_kind(moved)}
    return Rendered(tuple(lines), {"table": "counters", "of": what, "hosts": facts})


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return after minus before of the counters in both readings; negative where one was reset in between."""
    return {name: int(after[name]) - int(before[name]) for name in after if name in before}


def _moved_by_kind(moved: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Counters of errors and of congestion that are no longer what they were."""
    kinds: dict[str, dict[str, int]] = {"errors": {}, "congestion": {}, "reset": {}}
    for name in sorted(moved, key=natural):
        if moved[name] < 0:
            kinds["reset"][name] = moved[name]
        elif moved[name] and _CONGESTION.search(name):
            kinds["congestion"][name] = moved[name]
        elif moved[name] and _ERRORS.search(name):
            kinds["errors"][name] = moved[name]
    return kinds


def _nic_lines(nic: str, moved: Mapping[str, int]) -> list[str]:
    lines = []
    for side, word in enumerate(("tx", "rx")):
        count = packets(moved, side)
        lines.append(f"{nic} {word} {'unknown' if count is None else count}")
    words = {"errors": "ERROR", "congestion": "congestion", "reset": "reset or overflow"}
    for kind, names in _moved_by_kind(moved).items():
        signs = "" if kind == "reset" else "+"
        lines += [f"{nic} {words[kind]} {name} {signs}{count}" for name, count in names.items()]
    return lines
