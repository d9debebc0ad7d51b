"""Where the ranks of a run are: host, NIC, switch and group, and the scope of a pair of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.facts.nic_kinds import NicKind, nic_kinds
from fablint.model.host_name import GpuRef, NicRef
from fablint.model.run import Run
from fablint.model.topology import SCOPES, Scope, Topology

Device = TypeVar("Device", NicRef, GpuRef)

_CODE = {scope: np.uint8(index) for index, scope in enumerate(SCOPES)}  # small codes: four times faster
_STRATUM = np.array(
    [_CODE[{Scope.INTRA_NODE: Scope.EDGE, Scope.UNKNOWN: Scope.GLOBAL}.get(scope, scope)] for scope in SCOPES]
)


@dataclass(frozen=True)
class Placement:
    """Where every rank is. A code is a position in the tuple of names of the same kind.

    Hosts are found in the topology by any of their names (`HostNames`): a run's `h00.site.org` as `h00`.
    """

    host: np.ndarray  # (n,) int32, index into `hosts`
    switch: np.ndarray  # (n,) int32, index into `switches`; -1 where no topology names it
    group: np.ndarray  # (n,) int32, index into `groups`; -1 where no topology names it
    location: np.ndarray  # (n,) int32, position of the host among the topology's hosts; -1: not in the topology
    hosts: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    nics: tuple[NicRef, ...] = ()
    nic: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # (n,) index into `nics`; -1: not known
    gpus: tuple[GpuRef, ...] = ()
    gpu: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # (n,) index into `gpus`; -1: not known
    oversubscribed: Mask = field(default_factory=lambda: np.empty(0, bool))  # (hosts,) ranks > CPUs
    shared_machines: bool = False  # several hosts are containers of one machine, and share its CPUs
    nic_kinds: tuple[NicKind, ...] = ()  # that with most ranks first
    nic_kind: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # (n,) index into `nic_kinds`
    number: Sequence[int] = ()  # of each rank in findings; (): that in the run
    line_rate: Floats | None = None  # (hosts,) bytes/s that NICs negotiated; None: not known of all

    @classmethod
    def of(cls, run: Run, topology: Topology | None = None) -> Self:
        """Placement of the ranks of a run. `switches` and `groups` are those with hosts in the run, sorted."""
        hosts = tuple(run.hosts)
        host = np.asarray(run.facts.rank_host, dtype=np.int32)
        rank_nics = run.facts.rank_nic or [""] * host.size
        location, at = _locate(hosts, host, topology, rank_nics)
        switches = tuple(sorted(set(at) - {""}))
        group_of = _groups_of(switches, topology)
        nics, nic = _devices(NicRef, hosts, host, rank_nics)
        kinds, kind = nic_kinds(run.facts, rank_nics)
        gpus, gpu = _devices(GpuRef, hosts, host, run.facts.rank_gpu or [""] * host.size)
        return cls(
            **_codes(at, switches, group_of, tuple(sorted(set(group_of.values())))),
            host=host,
            location=location,
            hosts=hosts,
            nics=nics,
            nic=nic,
            nic_kinds=kinds,
            nic_kind=kind,
            gpus=gpus,
            gpu=gpu,
            oversubscribed=_oversubscribed(run, host),
            shared_machines=(run.facts.launch.machines or len(hosts)) < len(hosts),
            number=run.facts.rank_number,
            line_rate=_line_rates(run),
        )

    @classmethod
    def of_hosts(
        cls, rank_hosts: Sequence[str], topology: Topology | None = None, rank_nics: Sequence[str] = (), **extra: Any
    ) -> Self:
        """Placement of ranks that are to be started on `rank_hosts`.

        Parameters
        ----------
        rank_hosts
            Host of each rank. `hosts` has each once, in the order of their first ranks.
        topology
            `switches` and `groups` are all of its switches and groups, in its order.
        rank_nics
            NIC of each rank, which says the switch where a host has several.
        extra
            Further fields of a subclass.
        """
        index: dict[str, int] = {}
        host = np.array([index.setdefault(name, len(index)) for name in rank_hosts], dtype=np.int32)
        location, at = _locate(tuple(index), host, topology, rank_nics or [""] * host.size)
        switches = tuple(topology.switches) if topology else ()
        group_of = _groups_of(switches, topology)
        codes = _codes(at, switches, group_of, tuple(dict.fromkeys(group_of.values())))
        return cls(**codes, host=host, location=location, hosts=tuple(index), **extra)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return int(self.host.size)

    def scopes(self, src: np.ndarray, dst: np.ndarray) -> Codes:
        """Scope of the pairs (src, dst), ranks that broadcast against each other: uint8 indices into `SCOPES`."""
        far = np.where(self.group[src] == self.group[dst], _CODE[Scope.LOCAL], _CODE[Scope.GLOBAL])
        near = np.where(self.switch[src] == self.switch[dst], _CODE[Scope.EDGE], far)
        has_switches = (self.switch[src] >= 0) & (self.switch[dst] >= 0)
        between = np.where(has_switches, near, _CODE[Scope.UNKNOWN])
        return np.where(self.host[src] == self.host[dst], _CODE[Scope.INTRA_NODE], between)

    def strata(self, pairs: np.ndarray) -> Codes:
        """(k,) uint8 indices into `SCOPES` of (k, 2) pairs: edge, local or global.

        A host that no topology names is a switch and a group of its own: its pairs are global. Pairs within a host
        are edge.
        """
        strata: Codes = _STRATUM[self.scopes(pairs[:, 0], pairs[:, 1])]
        return strata

    def in_stratum(self, pairs: np.ndarray, scope: Scope | None) -> Mask:
        """(k,) whether each of (k, 2) pairs is between two hosts and in a stratum (None: in any)."""
        apart: Mask = self.host[pairs[:, 0]] != self.host[pairs[:, 1]]
        return apart if scope is None else apart & (self.strata(pairs) == _CODE[scope])

    @cached_property
    def host_switches(self) -> tuple[tuple[str, ...], ...]:
        """(hosts,) names of the switches of the ranks of each host, sorted; empty: unknown."""
        return self._of_hosts(self.switch, self.switches)

    @cached_property
    def host_groups(self) -> tuple[tuple[str, ...], ...]:
        """(hosts,) names of the groups of the ranks of each host, sorted; empty: unknown."""
        return self._of_hosts(self.group, self.groups)

    def _of_hosts(self, code: np.ndarray, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Return the (hosts,) names that the codes of the ranks of each host select."""
        of_host: list[set[str]] = [set() for _ in self.hosts]
        for key in np.unique((self.host.astype(np.int64) * len(names) + code)[code >= 0]).tolist():
            of_host[key // len(names)].add(names[key % len(names)])
        return tuple(tuple(sorted(members)) for members in of_host)

    @cached_property
    def switch_or_host(self) -> Codes:
        """(n,) `switch`, with a code of its own behind those of all switches for each host without a switch."""
        return np.where(self.switch >= 0, self.switch, len(self.switches) + self.host).astype(np.int32)

    @cached_property
    def nic_or_host(self) -> Codes:
        """(n,) `nic`, with a code of its own behind those of all NICs for each host whose NICs are not known."""
        nic = self.nic if self.nic.size else np.full(self.host.size, -1)
        return np.where(nic >= 0, nic, len(self.nics) + self.host).astype(np.int64)

    @cached_property
    def group_or_host(self) -> Codes:
        """(n,) `group`, with a code of its own behind those of all groups for each host without a group."""
        return np.where(self.group >= 0, self.group, len(self.groups) + self.host).astype(np.int32)


def unfold_cores(folded: str) -> set[int]:
    """`0-3,8` as a set."""
    cores: set[int] = set()
    for part in filter(None, folded.split(",")):
        first, _, last = part.partition("-")
        cores.update(range(int(first), int(last or first) + 1))
    return cores


def _locate(
    hosts: Sequence[str], host: np.ndarray, topology: Topology | None, rank_nics: Sequence[str]
) -> tuple[np.ndarray, list[str]]:
    """(n,) position of each rank's host in the topology, and the switch of each rank ('': not known)."""
    if topology is None:
        return np.full(host.size, -1, dtype=np.int32), [""] * host.size
    topology = topology.named_as(hosts)
    position = {name: index for index, name in enumerate(topology.host_switch)}
    located = [position.get(name, -1) for name in hosts]
    attached = [*topology.host_switch.values(), ""]
    at = [attached[located[code]] for code in host]
    if topology.nic_switch:
        for rank, (code, nic) in enumerate(zip(host, rank_nics, strict=True)):
            at[rank] = topology.nic_switch.get(NicRef.of(hosts[code], nic), at[rank])
    return np.array(located, dtype=np.int32)[host], at


def _groups_of(switches: Sequence[str], topology: Topology | None) -> dict[str, str]:
    """Group of each switch; the switch's own name where no groups were declared."""
    return {name: topology.switches[name].group or name for name in switches} if topology else {}


def _codes(
    at: Sequence[str], switches: tuple[str, ...], group_of: Mapping[str, str], groups: tuple[str, ...]
) -> dict[str, Any]:
    """The fields `switch`, `group`, `switches`, `groups` of ranks at these switches."""
    switch_code = {name: index for index, name in enumerate(switches)} | {"": -1}
    group_code = {name: index for index, name in enumerate(groups)}
    of_switch = np.array([group_code[group_of[name]] for name in switches] + [-1], dtype=np.int32)
    switch = np.array([switch_code[name] for name in at], dtype=np.int32)
    return {"switch": switch, "group": of_switch[switch], "switches": switches, "groups": groups}


def _devices(
    kind: type[Device], hosts: Sequence[str], host: np.ndarray, devices: Sequence[str]
) -> tuple[tuple[Device, ...], np.ndarray]:
    """References to devices and their codes, per rank."""
    index: dict[Device, int] = {}
    codes = np.full(host.size, -1, dtype=np.int64)
    for rank, (code, device) in enumerate(zip(host, devices, strict=True)):
        if device:
            codes[rank] = index.setdefault(kind.of(hosts[code], device), len(index))
    return tuple(index), codes


def _line_rates(run: Run) -> Floats | None:
    """(hosts,) bytes/s of the fastest NIC of each host."""
    lists, list_of = run.facts.nic_lists
    fastest = [max((float(nic.speed_mbps or 0) for nic in nics), default=0.0) for nics in lists]
    speeds = [fastest[number] for number in list_of]
    return np.array(speeds) * 1e6 / 8 if speeds and all(speed > 0 for speed in speeds) else None


def _oversubscribed(run: Run, host: np.ndarray) -> Mask:
    """(hosts,) whether a host has more ranks than CPUs that these may use; all hosts when the run does not say which.

    Hosts that are containers of one machine share its CPUs: what `check` measures of them allows for that.
    """
    hosts = len(run.hosts)
    if not run.facts.instrument.oversubscribed:
        return np.zeros(hosts, dtype=bool)
    cores: list[set[int]] = [set() for _ in range(hosts)]
    for code, folded in zip(host, run.facts.rank_cores, strict=False):
        cores[code] |= unfold_cores(folded)
    oversubscribed = np.bincount(host, minlength=hosts) > np.array([len(allowed) for allowed in cores])
    containers = (run.facts.launch.machines or hosts) < hosts
    return oversubscribed if oversubscribed.any() or containers else np.ones(hosts, dtype=bool)
