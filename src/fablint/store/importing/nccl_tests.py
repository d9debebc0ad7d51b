"""Output of nccl-tests and rccl-tests -> numbers. All ranks take part in every figure: they belong to no pair."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fablint.errors import UsageError
from fablint.store.importing.cells import (
    Body,
    Imported,
    Kernel,
    LeftOut,
    RankName,
    left_out,
    measurable,
    no_hosts_wanted,
    ranks_named,
    world_body,
)
from fablint.store.importing.lines import INTEGER, Foreign, figure, marked, numbered, text_of

MARK = marked(rb"# nThread [0-9]+ nGpus [0-9]+ minBytes |# +size +count +type .*algbw +busbw")

_DEVICE = re.compile(rf"# +Rank +({INTEGER}) +(?:Group +[0-9]+ +)?Pid +[0-9]+ on +(\S+) device +(\S+)")
_NAME = re.compile(r"# (?:Collective test starting: |Running |)(\w+)_perf\b")
_HEADER = re.compile(r"# +size +count +type +(?:redop +)?(?:root +)?time +algbw +busbw .*")
_BANDWIDTH = re.compile(r"# Avg bus bandwidth")
_KERNELS = {
    "all_reduce": Kernel("allreduce", "latency", "both"),
    "all_gather": Kernel("allgather", "latency", "both"),
    "alltoall": Kernel("alltoall", "latency", "both"),
    "broadcast": Kernel("bcast", "latency", "both"),
}
_OF_ALL_RANKS = ("allgather", "alltoall")  # whose size here is that of all ranks together
_OTHER = Kernel("collective", "latency", "both")  # reduce, reduce_scatter, sendrecv, ..., or not said


@dataclass(frozen=True)
class NcclRow:
    """One size: us out of place and in place, None where the program skipped it."""

    line: int
    size: int
    out_of_place: float | None
    in_place: float | None


@dataclass
class NcclText:
    """What was printed. `test` is `all_reduce` and so on; releases before 2.13 do not say."""

    test: str = ""
    hosts: dict[int, tuple[str, str]] = field(default_factory=dict)  # host and device of each rank
    rows: list[NcclRow] = field(default_factory=list)
    ended: bool = False
    foreign: list[Foreign] = field(default_factory=list)


def parse_nccl_tests(text: str) -> NcclText:
    """Read what a program of nccl-tests printed.

    Raises:
        UsageError: there is no table of nccl-tests in the text.
    """
    found, table = NcclText(), False
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    for number, line in numbered(text):
        line = line.rstrip()
        if device := _DEVICE.match(line):
            found.hosts[int(device[1])] = (device[2], device[3])
        elif line.startswith("#"):
            table = table or bool(_HEADER.match(line))
            found.ended = found.ended or bool(_BANDWIDTH.match(line))
            if name := _NAME.match(line):
                found.test = name[1]
        elif line and ((cut and number == last) or not (table and _row(found, number, line))):
            found.foreign.append(Foreign(number, line))
    if not table:
        raise UsageError("no table of nccl-tests in this text", "give all that the program printed")
    return found


def _row(found: NcclText, number: int, line: str) -> bool:
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
    found.rows.append(NcclRow(number, int(words[0]), figure(first[0]), again))
    return True


def read_nccl_tests(data: bytes, hosts: Sequence[str]) -> Imported:
    """Two rows of the whole fabric: out of place and in place."""
    found = parse_nccl_tests(text_of(data))
    rank_names = _rank_names(found, hosts)
    kernel = _KERNELS.get(found.test, _OTHER)
    share = len(rank_names) if kernel.name in _OF_ALL_RANKS else 1
    facts = {"transport": "nccl", "memory": "device", "variant": found.test or "unknown"}
    bodies: list[Body] = []
    for name, times in (
        (kernel.name, [(row, row.out_of_place) for row in found.rows]),
        (f"{kernel.name}-in-place", [(row, row.in_place) for row in found.rows]),
    ):
        known = [(row, us * 1e-6) for row, us in times if us is not None and measurable(us * 1e-6)]
        entries = [(row.size // share, {"mean": seconds}) for row, seconds in known]
        bodies += [world_body(name, kernel, entries, **facts)] if entries else []
    return Imported(
        tool="nccl-tests",
        rank_names=rank_names,
        bodies=tuple(bodies),
        left_out=(*left_out(found.foreign), *_unknown(found)),
        missing="" if found.ended else "its end is missing",
    )


def _unknown(found: NcclText) -> tuple[LeftOut, ...]:
    known = bool(found.hosts) and sorted(found.hosts) == list(range(len(found.hosts)))
    return () if known else (LeftOut(0, "# Using devices", "it does not name all ranks and their hosts"),)


def _rank_names(found: NcclText, hosts: Sequence[str]) -> tuple[RankName, ...]:
    if not found.hosts or sorted(found.hosts) != list(range(len(found.hosts))):
        return ranks_named(max(2, len(hosts)), hosts)
    no_hosts_wanted(hosts)
    return tuple(RankName(host, f"{rank}/{device}") for rank, (host, device) in sorted(found.hosts.items()))
