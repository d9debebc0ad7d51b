"""Who is at the other end of each cable, as LLDP tells: somebody, one, where the topology says, and nobody twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from fablint.model import Topology
from fablint.model.preflight_results import Outcome, Result, Severity
from fablint.preflight.base import Check, majority
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot import NicFact
from fablint.snapshot.neighbours import RUNS, why_no_neighbour
from fablint.snapshot.parsers.documents import documents
from fablint.text.names import fold, plural, switch_name

_SOURCE = "lldpcli show neighbors, lldptool -t -n -i NIC"
_NOT_HEARD = "no neighbour is heard"
_ONE_CAUSE = 3  # hosts that hear nobody: more likely a setting of what they share than a cable of each
_FIRST_S = 90.0  # after the boot: daemons announce a port every 30 s, IEEE 802.1AB, msgTxInterval


class CableEnd(NamedTuple):
    """The other end of a NIC's cable."""

    switch: str
    port: str

    def __str__(self) -> str:
        return f"{self.switch} port {self.port}" if self.port else self.switch


def switch_ports(host: Host) -> Mapping[str, Sequence[CableEnd]]:
    """Neighbours on each rail, each once."""
    found: dict[str, dict[CableEnd, None]] = {nic.name: {} for nic in host.interfaces}
    for one in host.neighbours:
        if one.port in found:
            found[one.port][CableEnd(switch_name(one.name), one.its_port)] = None
    return {nic: list(ends) for nic, ends in found.items()}


class _Unseen(NamedTuple):
    """Why it cannot be told whether a NIC has a neighbour."""

    outcome: Outcome
    why: str
    asked: bool = False  # the daemon's tool is there, and fails


def _unseen(host: Host, nic: NicFact) -> _Unseen | None:
    if nic.state == "down":
        return _Unseen(Outcome.SKIP, "the link is down")
    every = {"lldpcli": host.command("lldpcli"), "lldptool": host.command(f"lldptool/{nic.name}")}
    ran = [name for name, said in every.items() if said.status == 0]
    text = every["lldpcli"].text
    if (
        "lldpcli" in ran
        and text.strip()
        and not any(isinstance(one, dict) and "lldp" in one for one in documents(text))
    ):
        return _Unseen(Outcome.ERROR, "what lldpcli printed cannot be understood")
    if ran:
        return None
    failed = {name: said for name, said in every.items() if said.status is not None}
    why = "; ".join(f"{name}: {said.error.rpartition('] ')[2] or 'failed'}" for name, said in (failed or every).items())
    return _Unseen(Outcome.SKIP, why, bool(failed))


def _silence(host: Host, nic: NicFact) -> str:
    """Why a NIC hears no neighbour although LLDP runs on its host."""
    rails = {its.name for its in host.interfaces}
    hearing = {one.port for one in host.neighbours if one.port in rails}
    if hearing:
        return f"{RUNS} and hears a neighbour on {fold(hearing)}, but none on {nic.name}"
    return why_no_neighbour(host.snapshot, [one for one in host.neighbours if one.port not in rails])


class LldpNeighbor(Check):
    id = "lldp.neighbor"
    what = "the neighbour of every NIC of the fabric"
    source = _SOURCE
    rule = f"one is heard where most like hosts hear one; a warning within {_FIRST_S:g} s of the boot"
    severity = Severity.FAIL
    component = "cable"
    root = True
    remedy = "look at the cable, and at LLDP on the port of the switch and on the host"

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
                yield self.skipped(host.name, "", ABSENT)
            for nic in host.interfaces:
                like = nic.name, *host.like(nic.name)
                yield self._judge(host, nic, ends[host.name][nic.name], agreed.get(like, Agreement()))

    def _judge(self, host: Host, nic: NicFact, ends: Sequence[CableEnd], agreed: Agreement) -> Result:
        if ends:
            return self.passed(host.name, nic.name, value=str(ends[0]))
        unseen = _unseen(host, nic)
        others = agreed.count if agreed.usual else 0
        like = f"{plural(others, 'other')} hear one"
        if unseen is None and others:
            if host.uptime_s is not None and host.uptime_s < _FIRST_S:
                message = f"no LLDP neighbour yet, {host.uptime_s:.0f} s after the boot, {like}"
                return self.warned(host.name, nic.name, message)
            silent = agreed.total - others
            if silent >= _ONE_CAUSE:
                message = f"missing LLDP neighbour on {silent} hosts, {like}: is LLDP off on their switch?"
                return self.warned(host.name, nic.name, message, None, 1)
            clear, message = agreed.is_clear, f"missing LLDP neighbour, {like}"
            return self.differs(clear, host.name, nic.name, message, None, 1)
        if unseen is None:
            like = "so it is on most others" if agreed.total > 1 else "there is no like host to compare with"
            return self.skipped(host.name, nic.name, f"{_silence(host, nic)}; {like}")
        if unseen.asked and others:
            return self.warned(host.name, nic.name, f"LLDP does not work here ({unseen.why}), {like}")
        return Result(self.id, host.name, nic.name, unseen.outcome, unseen.why)


class LldpSeveral(Check):
    id = "lldp.several"
    what = "how many neighbours a NIC of the fabric has"
    source = _SOURCE
    rule = "one, unless most like hosts have several as well"
    severity = Severity.WARN
    component = "cable"
    root = True
    remedy = "look what is between the NIC and its switch, or passes LLDP frames on"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        seen: dict[tuple[str, ...], list[tuple[str, Sequence[CableEnd]]]] = defaultdict(list)
        for host in fleet.hosts:
            found = {nic: ends for nic, ends in switch_ports(host).items() if ends}
            if not found:
                yield self.skipped(host.name, "", _NOT_HEARD)
            for nic, ends in found.items():
                seen[nic, *host.like(nic)].append((host.name, ends))
        for (nic, *_), like in seen.items():
            several, count = majority([len(ends) > 1 for _, ends in like])
            for name, ends in like:
                if len(ends) == 1:
                    yield self.passed(name, nic)
                elif count == 0 or several:
                    yield self.skipped(name, nic, f"{len(ends)} neighbours; most others have not one either")
                else:
                    message = f"{len(ends)} neighbours: {', '.join(map(str, ends[:3]))}; {count} others have one"
                    yield self.wrong(name, nic, message, len(ends), 1)


class _Place(NamedTuple):
    """Where a NIC hangs, and where it should."""

    host: str
    nic: str
    found: CableEnd
    expected: str

    @property
    def right(self) -> bool:
        return _same(self.found.switch, self.expected)


class LldpPlacement(Check):
    id = "lldp.placement"
    what = "the switch that every NIC hangs on"
    source = f"{_SOURCE}, --topology"
    rule = "as the topology says"
    severity = Severity.FAIL
    component = "cable"
    root = True
    remedy = "put the cable where it belongs, or mend the topology"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        places: list[_Place] = []
        for host in fleet.hosts:
            found = {nic: ends[0] for nic, ends in switch_ports(host).items() if len(ends) == 1}
            due = _due(fleet.topology, host.name, found)
            if not due:
                yield self.skipped(host.name, "", _why_not(fleet.topology, bool(found)))
            places += [_Place(host.name, nic, found[nic], switch) for nic, switch in due.items()]
        names = {_short(name) for name in fleet.topology.switches} if fleet.topology else set()
        agree = sum(place.right for place in places)
        misplaced: dict[tuple[str, str], list[_Place]] = defaultdict(list)
        for place in places:
            misplaced[_short(place.found.switch), _short(place.expected)].append(place)
        for place in places:
            if place.right:
                yield self.passed(place.host, place.nic, value=str(place.found))
            elif _short(place.found.switch) not in names and 2 * agree <= len(places):
                yield self.skipped(place.host, place.nic, f"the topology knows no switch {place.found.switch}")
            else:
                message = f"hangs on {place.found}, the topology says {place.expected}{_swapped(place, misplaced)}"
                yield self.wrong(place.host, place.nic, message, place.found.switch, place.expected)


def _due(topology: Topology | None, host: str, found: Mapping[str, CableEnd]) -> Mapping[str, str]:
    """The switch that each NIC should hang on; of a host whose NICs are not told apart, that of any."""
    if topology is None or topology.inferred or not found:
        return {}
    single = {nic: topology.nic_switch[f"{host}/{nic}"] for nic in found if f"{host}/{nic}" in topology.nic_switch}
    switch = topology.host_switch.get(host)
    if single or switch is None:
        return single
    right = [nic for nic, end in found.items() if _same(end.switch, switch)]
    return {nic: switch for nic in right or found}


def _why_not(topology: Topology | None, heard_any: bool) -> str:
    if topology is None or topology.inferred:
        return "no topology was given"
    return "the topology does not have this host" if heard_any else _NOT_HEARD


def _swapped(place: _Place, misplaced: Mapping[tuple[str, str], Sequence[_Place]]) -> str:
    """With whom, if there is exactly one that hangs where this one should, and the other way round."""
    others = misplaced.get((_short(place.expected), _short(place.found.switch)), ())
    return f": cables swapped with {others[0].host}/{others[0].nic}" if len(others) == 1 else ""


def _same(a: str, b: str) -> bool:
    return _short(a) == _short(b)


def _short(name: str) -> str:
    """`leaf1` of `leaf1.site.org`."""
    return switch_name(name).partition(".")[0].lower()


class LldpPort(Check):
    id = "lldp.port"
    what = "the port of the switch that every NIC hangs on"
    source = _SOURCE
    rule = "no other host's, unless it is so on most"
    severity = Severity.WARN
    component = "cable"
    root = True
    remedy = (
        "look what is between them and the switch; an LLDP daemon may tell what it heard before the cable was moved"
    )

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        claims: dict[CableEnd, list[tuple[str, str]]] = defaultdict(list)
        for host in fleet.hosts:
            found = [(nic, end) for nic, ends in switch_ports(host).items() for end in ends if end.port]
            if not found:
                yield self.skipped(host.name, "", _NOT_HEARD)
            for nic, end in found:
                claims[end].append((host.name, nic))
        shared = {end for end, claimants in claims.items() if len({name for name, _ in claimants}) > 1}
        usual = 2 * len(shared) > len(claims) and len(claims) > 1
        for end, claimants in claims.items():
            for name, nic in claimants:
                if end in shared and not usual:
                    others = islice((f"{other}/{its}" for other, its in claimants if other != name), 3)
                    yield self.wrong(name, nic, f"{end} is also where {', '.join(others)} hangs", str(end))
                elif end in shared:
                    yield self.skipped(name, nic, f"{end}: most ports here are shared by hosts")
                else:
                    yield self.passed(name, nic, value=str(end))
