"""Virtual clusters of shapes in which a few of a kind have to do, and what they are checked with.

One switch per group, three hosts per switch, one switch: here majorities are small, and some components have hardly
any others of their kind to be compared with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

from checked_cluster import Faulty, Outcome, checked
from vcluster import Cluster, cluster

SLOW = ("--rate", "20mbit")  # of 50 Mbit/s
SLOW_CABLE = ("--rate", "14mbit")  # of what leaves 50 Mbit/s to a stream
LATE = ("--delay", "1ms")

Knowledge = Literal["declared", "presumed", "none"]


@dataclass(frozen=True)
class Case:
    """Faults to put on a cluster, as (kind, target, options), and the components that have them then."""

    name: str
    faults: tuple[tuple[str, ...], ...] = ()
    faulty: tuple[Faulty, ...] = ()


@dataclass(frozen=True)
class Shape:
    """Groups, switches of each, hosts of each; hosts and switches are named as by the test bed."""

    groups: int
    switches: int
    hosts: int

    @property
    def name(self) -> str:
        return f"{self.groups}x{self.switches}x{self.hosts}"

    @property
    def host_list(self) -> str:
        return f"nid[001000-{1000 + self.groups * self.switches * self.hosts - 1:06}]"

    @property
    def knowledge(self) -> tuple[Knowledge, ...]:
        """What a check may know: all cables; the switch of every host; on one switch, where no cable is, nothing."""
        return ("declared", "none" if self.groups * self.switches == 1 else "presumed")

    def cases(self) -> list[Case]:
        """The healthy cluster, and one for each fault."""
        first, second = host(1), host(2)
        found = [Case("healthy"), Case("slow host", (("slow", "nid001001", *SLOW),), (first,))]
        if self.groups * self.switches == 1:
            one_way = Faulty(first.ends, one_way=True)
            found.append(Case("slow cable, one way", (("slow", "nid001001", *SLOW_CABLE, "--dir", "tx"),), (one_way,)))
            found.append(Case("1 ms on a cable", (("latency", "nid001001", *LATE),), (first,)))
        else:
            cable, both_ways = self._cable(one_way=True), self._cable(one_way=False)
            target = f"{switch(0, 0)}--{switch(*self._far)}"
            found.append(Case("slow cable, one way", (("slow", target, *SLOW_CABLE, "--dir", "tx"),), (cable,)))
            found.append(Case("1 ms on a cable", (("latency", target, *LATE),), (both_ways,)))
        if self.hosts == 3:
            slow = tuple(("slow", f"nid{number:06}", *SLOW) for number in (1001, 1002))
            found.append(Case("two slow hosts of three", slow, (first, second)))
        return found

    @property
    def _far(self) -> tuple[int, int]:
        """Group and number of the switch at the other end of the cable: in the same group where that has several."""
        return (1, 0) if self.switches == 1 else (0, 1)

    def _cable(self, *, one_way: bool) -> Faulty:
        ends = ((0, 0), self._far)
        groups = [{f"group{group}"} if self.switches == 1 else set() for group, _ in ends]
        return Faulty(
            tuple(frozenset({switch(*end)} | group) for end, group in zip(ends, groups, strict=True)), one_way
        )


def host(number: int) -> Faulty:
    """A host by its number on the first switch."""
    return Faulty((frozenset({f"nid{1000 + number:06}"}),))


def switch(group: int, number: int) -> str:
    return f"x{1000 + group}c0r{number}b0"


SHAPES = (Shape(3, 1, 6), Shape(2, 3, 3), Shape(1, 1, 8))
EVERY = tuple((shape, case, known) for shape in SHAPES for case, known in product(shape.cases(), shape.knowledge))


@contextmanager
def cluster_of(shape: Shape) -> Iterator[Cluster]:
    """The cluster, without a scheduler: a check reaches the hosts over ssh."""
    sizes = {"groups": shape.groups, "switches": shape.switches, "hosts": shape.hosts}
    with cluster(f"shape{shape.name}", **sizes, slurm=False, lldp=False) as bed:
        yield bed


def check_case(bed: Cluster, shape: Shape, case: Case, known: Knowledge, folder: Path, *options: str) -> Outcome:
    """The outcome of a check with the case's faults, which are taken away afterwards."""
    fabric = folder / "fabric.json"
    fabric.write_text(json.dumps(topology_document(bed.topology(), cables=known == "declared")))
    given: tuple[str | Path, ...] = () if known == "none" else ("--topology", fabric)
    for fault in case.faults:
        bed.fault(*fault)
    try:
        return checked(bed, folder, "-w", shape.host_list, *given, *options)
    finally:
        bed.heal()


def topology_document(truth: dict[str, Any], *, cables: bool) -> dict[str, Any]:
    """A topology file of the true wiring, with or without the cables between switches."""
    document: dict[str, Any] = {
        "format": 1,
        "switches": {name: {"group": f"group{one['group']}"} for name, one in truth["switches"].items()},
        "hosts": {name: {"switch": one["switch"], "port": one["port"]} for name, one in truth["hosts"].items()},
    }
    if cables:
        document["links"] = [
            {"ends": [link["a"], link["b"]], "ports": [link["a_port"], link["b_port"]]}
            for link in truth["links"]
            if link["kind"] in ("local", "global")
        ]
    return document
