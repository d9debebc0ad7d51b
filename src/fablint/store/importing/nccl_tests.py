"""Output of nccl-tests and rccl-tests -> numbers. All ranks take part in every figure, so that none is of one pair."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fablint.errors import UsageError
from fablint.model.registry import KERNELS
from fablint.store.importing.cells import (
    Body,
    Imported,
    Kernel,
    LeftOut,
    RankName,
    left_out,
    measurable,
    ranks_named,
    refuse_hosts,
    world_body,
)
from fablint.store.importing.lines import INTEGER, Foreign, figure, marked, numbered, text_of

MARK = marked(rb"# nThread [0-9]+ nGpus [0-9]+ minBytes |# +size +count +type .*algbw +busbw")

_DEVICE = re.compile(rf"# +Rank +({INTEGER}) +(?:Group +[0-9]+ +)?(?:Pid +[0-9]+ +)?on +(\S+) device +(\S+)")
_NAME = re.compile(r"# (?:Collective test starting: |Running |)(\w+)_perf\b")
_HEADER = re.compile(r"# +size +count +type +(?:redop +)?(?:root +)?time +algbw +busbw .*")
_BANDWIDTH = re.compile(r"# Avg bus bandwidth")
_KERNELS = {
    kernel.nccl_test: Kernel(kernel.name, kernel.quantity, kernel.payload)
    for kernel in KERNELS.values()
    if kernel.nccl_test
}
_OTHER = Kernel("collective", "latency", "both")  # reduce, sendrecv, ..., or not stated


@dataclass(frozen=True)
class NcclRow:
    """One size: us out of place and in place, None where the program skipped it."""

    line: int
    size: int
    out_of_place: float | None
    in_place: float | None


@dataclass
class NcclText:
    """Printed text. `test` is `all_reduce` and so on; releases before 2.13 do not print it."""

    test: str = ""
    hosts: dict[int, tuple[str, str]] = field(default_factory=dict)  # host and device of each rank
    rows: list[NcclRow] = field(default_factory=list)
    ended: bool = False
    foreign: list[Foreign] = field(default_factory=list)


def parse_nccl_tests(text: str) -> NcclText:
    """Read the output of a program of nccl-tests.

    Raises
    ------
    UsageError
        The text has no table of nccl-tests.
    """
    parsed, table = NcclText(), False
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    for number, line in numbered(text):
        line = line.rstrip()
        if device := _DEVICE.match(line):
            parsed.hosts[int(device[1])] = (device[2], device[3])
        elif line.startswith("#"):
            table = table or bool(_HEADER.match(line))
            parsed.ended = parsed.ended or bool(_BANDWIDTH.match(line))
            if name := _NAME.match(line):
                parsed.test = name[1]
        elif line and ((cut and number == last) or not (table and _row(parsed, number, line))):
            parsed.foreign.append(Foreign(number, line))
    if not table:
        raise UsageError("the text has no table of nccl-tests", "give the complete output of the program")
    return parsed


def _row(parsed: NcclText, number: int, line: str) -> bool:
    """`size count type [redop [root]]` and then two times `time algbw busbw errors`."""
    words = line.split()
    if len(words) < 7 or not all(re.fullmatch(INTEGER, word) for word in words[:2]):
        return False
    halves = words[-8:] if len(words) >= 11 else words[-4:]
    first, second = halves[:4], halves[4:]
    good = all(figure(word) is not None for word in first[:3])
    if not good or re.fullmatch(r"[\d.]+", words[2]):
        return False
    again = figure(second[0]) if second and figure(second[1]) is not None else None
    parsed.rows.append(NcclRow(number, int(words[0]), figure(first[0]), again))
    return True


def read_nccl_tests(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the table as two rows of the whole fabric: out of place and in place."""
    parsed = parse_nccl_tests(text_of(data))
    rank_names = _rank_names(parsed, hosts)
    kernel = _KERNELS.get(parsed.test, _OTHER)
    share = len(rank_names) if kernel.name in KERNELS and KERNELS[kernel.name].is_of_parts else 1
    facts = {"transport": "nccl", "memory": "device", "variant": parsed.test or "unknown"}
    bodies: list[Body] = []
    for name, times in (
        (kernel.name, [(row, row.out_of_place) for row in parsed.rows]),
        (f"{kernel.name}-in-place", [(row, row.in_place) for row in parsed.rows]),
    ):
        usable = [(row, us * 1e-6) for row, us in times if us is not None and measurable(us * 1e-6)]
        entries = [(row.size // share, {"mean": seconds}) for row, seconds in usable]
        in_place = name != kernel.name
        bodies += [world_body(name, kernel, entries, in_place=in_place, **facts)] if entries else []
    return Imported(
        tool="nccl-tests",
        rank_names=rank_names,
        bodies=tuple(bodies),
        left_out=(*left_out(parsed.foreign), *_unknown(parsed)),
        missing="" if parsed.ended else "its end is missing",
    )


def _unknown(parsed: NcclText) -> tuple[LeftOut, ...]:
    is_complete = bool(parsed.hosts) and sorted(parsed.hosts) == list(range(len(parsed.hosts)))
    return () if is_complete else (LeftOut(0, "# Using devices", "it does not name all ranks and their hosts"),)


def _rank_names(parsed: NcclText, hosts: Sequence[str]) -> tuple[RankName, ...]:
    if not parsed.hosts or sorted(parsed.hosts) != list(range(len(parsed.hosts))):
        return ranks_named(max(2, len(hosts)), hosts)
    refuse_hosts(hosts)
    return tuple(RankName(host, f"{rank}/{device}") for rank, (host, device) in sorted(parsed.hosts.items()))
