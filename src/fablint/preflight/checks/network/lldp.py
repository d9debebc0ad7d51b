"""Checks of LLDP neighbours: one per NIC, on the switch in the topology, and no switch port with two hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from fablint.model import Topology
from fablint.model.host_name import one_spelling
from fablint.model.names import fold, plural, switch_name
from fablint.model.preflight_results import Outcome, Result, Severity
from fablint.preflight.base import Check, majority
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot import NicFact
from fablint.snapshot.neighbours import RUNS, why_no_neighbour
from fablint.snapshot.parsers.documents import documents

_SOURCE = "lldpcli show neighbors, lldptool -t -n -i NIC"
_NO_NEIGHBOUR = "no LLDP neighbour"
_ONE_CAUSE = 3  # hosts without a neighbour: more likely a common setting than a fault of each cable
_FIRST_S = 90.0  # after the boot: daemons announce a port every 30 s, IEEE 802.1AB, msgTxInterval


class CableEnd(NamedTuple):
    """The other end of a NIC's cable."""

    switch: str
    port: str

    def __str__(self) -> str:
        return f"{self.switch} port {self.port}" if self.port else self.switch


def switch_ports(host: Host) -> Mapping[str, Sequence[CableEnd]]:
    """Return the neighbours of each rail, without duplicates."""
    found: dict[str, dict[CableEnd, None]] = {nic.name: {} for nic in host.interfaces}
    for one in host.neighbours:
        if one.port in found:
            found[one.port][CableEnd(switch_name(one.name), one.its_port)] = None
    return {nic: list(ends) for nic, ends in found.items()}


class _NotVisible(NamedTuple):
    """Reason why it is unknown whether a NIC has a neighbour."""

    outcome: Outcome
    why: str
    tool_failed: bool = False  # the tool of the daemon is installed, but fails


def _unseen(host: Host, nic: NicFact) -> _NotVisible | None:
    if nic.state == "down":
        return _NotVisible(Outcome.SKIP, "the link is down")
    every = {"lldpcli": host.command("lldpcli"), "lldptool": host.command(f"lldptool/{nic.name}")}
    ran = [name for name, said in every.items() if said.status == 0]
    text = every["lldpcli"].text
    if (
        "lldpcli" in ran
        and text.strip()
        and not any(isinstance(one, dict) and "lldp" in one for one in documents(text))
    ):
        return _NotVisible(Outcome.ERROR, "the output of lldpcli cannot be parsed")
    if ran:
        return None
    failed = {name: said for name, said in every.items() if said.status is not None}
    why = "; ".join(f"{name}: {said.error.rpartition('] ')[2] or 'failed'}" for name, said in (failed or every).items())
    return _NotVisible(Outcome.SKIP, why, bool(failed))


def _silence(host: Host, nic: NicFact) -> str:
    """Return why a NIC has no neighbour although LLDP runs on its host."""
    rails = {its.name for its in host.interfaces}
    hearing = {one.port for one in host.neighbours if one.port in rails}
    if hearing:
        return f"{RUNS} and has a neighbour on {fold(hearing)}, but none on {nic.name}"
    return why_no_neighbour(host.snapshot, [one for one in host.neighbours if one.port not in rails])


class LldpNeighbor(Check):
    id = "lldp.neighbor"
    what = "the neighbour of every NIC of the fabric"
    source = _SOURCE
    rule = f"present if most similar hosts have one; a warning within {_FIRST_S:g} s of the boot"
    severity = Severity.FAIL
    component = "cable"
    root = True
    remedy = "check the cable, and LLDP on the switch port and on the host"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        seen: dict[tuple[str, ...], list[bool]] = defaultdict(list)
        ends = {host.name: switch_ports(host) for host in fleet.hosts}
        for host in fleet.hosts:
            for nic in host.interfaces:
                if ends[host.name][nic.name] or not _unseen(host, nic):
                    seen[nic.name, *host.like(nic.name)].append(bool(ends[host.name][nic.name]))
        agreed = {key: Agreement.of(like) for key, like in seen.items()}
        for host in fleet.hosts:
            if not host.interfaces:
                yield self.skip(host.name, "", ABSENT)
            for nic in host.interfaces:
                like = nic.name, *host.like(nic.name)
                yield self._judge(host, nic, ends[host.name][nic.name], agreed.get(like, Agreement()))

    def _judge(self, host: Host, nic: NicFact, ends: Sequence[CableEnd], agreed: Agreement) -> Result:
        if ends:
            return self.ok(host.name, nic.name, value=str(ends[0]))
        unseen = _unseen(host, nic)
        others = agreed.count if agreed.usual else 0
        like = f"{plural(others, 'other')} with one"
        if unseen is None and others:
            if host.uptime_s is not None and host.uptime_s < _FIRST_S:
                message = f"no LLDP neighbour yet, {host.uptime_s:.0f} s after the boot, {like}"
                return self.warning(host.name, nic.name, message)
            silent = agreed.total - others
            if silent >= _ONE_CAUSE:
                message = f"missing LLDP neighbour on {silent} hosts, {like}: is LLDP off on their switch?"
                return self.warning(host.name, nic.name, message, None, 1)
            clear, message = agreed.is_clear, f"missing LLDP neighbour, {like}"
            return self.difference(clear, host.name, nic.name, message, None, 1)
        if unseen is None:
            like = "the same on most others" if agreed.total > 1 else "there is no similar host to compare with"
            return self.skip(host.name, nic.name, f"{_silence(host, nic)}; {like}")
        if unseen.tool_failed and others:
            return self.warning(host.name, nic.name, f"LLDP does not work here ({unseen.why}), {like}")
        return Result(self.id, host.name, nic.name, unseen.outcome, unseen.why)


class LldpSeveral(Check):
    id = "lldp.several"
    what = "the number of neighbours of every NIC of the fabric"
    source = _SOURCE
    rule = "one, unless most similar hosts have several"
    severity = Severity.WARN
    component = "cable"
    root = True
    remedy = "check for a device between the NIC and its switch that forwards LLDP frames"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        seen: dict[tuple[str, ...], list[tuple[str, Sequence[CableEnd]]]] = defaultdict(list)
        for host in fleet.hosts:
            found = {nic: ends for nic, ends in switch_ports(host).items() if ends}
            if not found:
                yield self.skip(host.name, "", _NO_NEIGHBOUR)
            for nic, ends in found.items():
                seen[nic, *host.like(nic)].append((host.name, ends))
        for (nic, *_), like in seen.items():
            several, count = majority([len(ends) > 1 for _, ends in like])
            for name, ends in like:
                if len(ends) == 1:
                    yield self.ok(name, nic)
                elif count == 0 or several:
                    yield self.skip(name, nic, f"{len(ends)} neighbours; most others do not have one either")
                else:
                    message = f"{len(ends)} neighbours: {', '.join(map(str, ends[:3]))}; {count} others have one"
                    yield self.failure(name, nic, message, len(ends), 1)


class _Place(NamedTuple):
    """Actual and expected switch of a NIC."""

    host: str
    nic: str
    found: CableEnd
    actual: str  # switch of `found` as the topology spells it
    expected: str

    @property
    def right(self) -> bool:
        return self.actual == switch_name(self.expected)


class LldpPlacement(Check):
    id = "lldp.placement"
    what = "the switch that every NIC is connected to"
    source = f"{_SOURCE}, --topology"
    rule = "the switch in the topology"
    severity = Severity.FAIL
    component = "cable"
    root = True
    remedy = "correct the cabling or the topology"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        places: list[_Place] = []
        ends_of = {host.name: _single_ends(host) for host in fleet.hosts}
        names = {switch_name(name) for name in fleet.topology.switches} if fleet.topology else set()
        spell = one_spelling(names, (end.switch for ends in ends_of.values() for end in ends.values()))
        for host, found in ends_of.items():
            actual = {nic: spell(end.switch) for nic, end in found.items()}
            due = _due(fleet.topology, host, actual)
            if not due:
                yield self.skip(host, "", _why_not(fleet.topology, bool(found)))
            places += [_Place(host, nic, found[nic], actual[nic], switch) for nic, switch in due.items()]
        agree = sum(place.right for place in places)
        misplaced: dict[tuple[str, str], list[_Place]] = defaultdict(list)
        for place in places:
            misplaced[place.actual, switch_name(place.expected)].append(place)
        for place in places:
            if place.right:
                yield self.ok(place.host, place.nic, value=str(place.found))
            elif place.actual not in names and 2 * agree <= len(places):
                yield self.skip(place.host, place.nic, f"the topology has no switch {place.found.switch}")
            else:
                message = f"connected to {place.found}, expected {place.expected}{_swap_note(place, misplaced)}"
                yield self.failure(place.host, place.nic, message, place.found.switch, place.expected)


def _single_ends(host: Host) -> Mapping[str, CableEnd]:
    """Return the neighbour of each rail that has one neighbour."""
    return {nic: ends[0] for nic, ends in switch_ports(host).items() if len(ends) == 1}


def _due(topology: Topology | None, host: str, found: Mapping[str, str]) -> Mapping[str, str]:
    """Return the expected switch of each NIC; if the topology gives the host's switch only, that switch.

    `found` has the actual switch of each NIC.
    """
    if topology is None or topology.inferred or not found:
        return {}
    single = {nic: topology.nic_switch[f"{host}/{nic}"] for nic in found if f"{host}/{nic}" in topology.nic_switch}
    switch = topology.host_switch.get(host)
    if single or switch is None:
        return single
    right = [nic for nic, actual in found.items() if actual == switch_name(switch)]
    return {nic: switch for nic in right or found}


def _why_not(topology: Topology | None, has_neighbours: bool) -> str:
    if topology is None or topology.inferred:
        return "no topology was given"
    return "the topology does not have this host" if has_neighbours else _NO_NEIGHBOUR


def _swap_note(place: _Place, misplaced: Mapping[tuple[str, str], Sequence[_Place]]) -> str:
    """Note that two NICs are connected to each other's switch, if exactly one such partner exists."""
    others = misplaced.get((switch_name(place.expected), place.actual), ())
    return f": cables swapped with {others[0].host}/{others[0].nic}" if len(others) == 1 else ""


class LldpPort(Check):
    id = "lldp.port"
    what = "the switch port that every NIC is connected to"
    source = _SOURCE
    rule = "not the port of another host, unless most ports are shared"
    severity = Severity.WARN
    component = "cable"
    root = True
    remedy = (
        "check for a device between the hosts and the switch; an LLDP daemon may report a neighbour from before the "
        "cable was moved"
    )

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        claims: dict[CableEnd, list[tuple[str, str]]] = defaultdict(list)
        for host in fleet.hosts:
            found = [(nic, end) for nic, ends in switch_ports(host).items() for end in ends if end.port]
            if not found:
                yield self.skip(host.name, "", _NO_NEIGHBOUR)
            for nic, end in found:
                claims[end].append((host.name, nic))
        shared = {end for end, claimants in claims.items() if len({name for name, _ in claimants}) > 1}
        usual = 2 * len(shared) > len(claims) and len(claims) > 1
        for end, claimants in claims.items():
            for name, nic in claimants:
                if end in shared and not usual:
                    others = islice((f"{other}/{its}" for other, its in claimants if other != name), 3)
                    yield self.failure(name, nic, f"{end} is also the port of {', '.join(others)}", str(end))
                elif end in shared:
                    yield self.skip(name, nic, f"{end}: most ports here are shared by hosts")
                else:
                    yield self.ok(name, nic, value=str(end))
