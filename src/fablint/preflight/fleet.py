"""A fleet: all hosts that gave a snapshot, and their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fablint.model import Topology
from fablint.preflight.host import Host
from fablint.preflight.host_classes import HostClass, classes_of, usual_boards
from fablint.snapshot import Snapshot


@dataclass(eq=False)
class Fleet:
    """All hosts with a snapshot, and additional facts. Assigns a class to every host."""

    hosts: Sequence[Host]
    silent: Mapping[str, str] = field(default_factory=dict)
    topology: Topology | None = None  # expected topology
    fabric: Snapshot | None = None  # outputs of fabric tools on one machine
    fabric_before: Sequence[Snapshot] = ()  # earlier outputs: the last, of an hour ago, of a day ago

    def __post_init__(self) -> None:
        if self.topology is not None:
            self.topology = self.topology.named_as([*(host.name for host in self.hosts), *self.silent])
        boards = usual_boards(host.built for host in self.hosts)
        for host in self.hosts:
            host.boards = boards
        for item in self.classes:
            for name in item.hosts:
                self._by_name[name].kind = item.key

    @cached_property
    def _by_name(self) -> Mapping[str, Host]:
        return {host.name: host for host in self.hosts}

    @cached_property
    def classes(self) -> Sequence[HostClass]:
        """Host classes, the largest first, without hosts with an incomplete snapshot."""
        return classes_of({host.name: host.built for host in self.hosts if not host.snapshot.incomplete})
