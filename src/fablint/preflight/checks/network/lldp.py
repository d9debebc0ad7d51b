"""Checks of LLDP neighbours: one per NIC, on the switch in the topology, and no switch port with two hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from fablint.model import Topology
from fablint.model.host_name import NicRef, one_spelling
from fablint.model.names import fold, plural, switch_name
from fablint.model.preflight_results import Outcome, Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import Agreement, majority
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.judges import among_peers
from fablint.preflight.judges.outputs import NO_INTERFACE
from fablint.snapshot import NicFact
from fablint.snapshot.neighbours import RUNS, CableEnd, why_no_neighbour
from fablint.snapshot.parsers.documents import documents

_SOURCE = "lldpcli show neighbors, lldptool -t -n -i NIC"
_NO_NEIGHBOUR = "no LLDP neighbour"
_ONE_CAUSE = 3  # hosts without a neighbour: more likely a common setting than a fault of each cable
_FIRST_S = 90.0  # after the boot: daemons announce a port every 30 s, IEEE 802.1AB, msgTxInterval


class _NotVisible(NamedTuple):
    """Reason why it is unknown whether a NIC has a neighbour."""

    outcome: Outcome
    why: str
    tool_failed: bool = False  # the tool of the daemon is installed, but fails


def _unseen(host: Host, nic: NicFact) -> _NotVisible | None:
    if nic.state == "down":
        return _NotVisible(Outcome.SKIP, "the link is down")
    outputs = {"lldpcli": host.command("lldpcli"), "lldptool": host.command(f"lldptool/{nic.name}")}
    ran = [name for name, said in outputs.items() if said.status == 0]
    text = outputs["lldpcli"].text
    if (
        "lldpcli" in ran
        and text.strip()
        and not any(isinstance(one, dict) and "lldp" in one for one in documents(text))
    ):
        return _NotVisible(Outcome.ERROR, "the output of lldpcli cannot be parsed")
    if ran:
        return None
    failed = {name: said for name, said in outputs.items() if said.status is not None}
    why = "; ".join(
        f"{name}: {said.error.rpartition('] ')[2] or 'failed'}" for name, said in (failed or outputs).items()
    )
    return _NotVisible(Outcome.SKIP, why, bool(failed))


def _silence(host: Host, nic: NicFact) -> str:
    """Return why a NIC has no neighbour although LLDP runs on its host."""
    rails = {its.name for its in host.interfaces}
    hearing = {one.port for one in host.neighbours if one.port in rails}
    if hearing:
        return f"{RUNS} and has a neighbour on {fold(hearing)}, but none on {nic.name}"
    return why_no_neighbour(host.snapshot, [one for one in host.neighbours if one.port not in rails])


def _lldp_neighbor(check: Check, fleet: Fleet) -> Iterator[Result]:
    seen: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    ends = {host.name: host.switch_ports for host in fleet.hosts}
    for host in fleet.hosts:
        for nic in host.interfaces:
            if ends[host.name][nic.name] or not _unseen(host, nic):
                seen[nic.name, *host.like(nic.name)].append(bool(ends[host.name][nic.name]))
    agreed = {key: Agreement.of(like) for key, like in seen.items()}
    for host in fleet.hosts:
        if not host.interfaces:
            yield check.skip(host.name, "", NO_INTERFACE)
        for nic in host.interfaces:
            like = nic.name, *host.like(nic.name)
            yield _judge(check, host, nic, ends[host.name][nic.name], agreed.get(like, Agreement()))


def _judge(check: Check, host: Host, nic: NicFact, ends: Sequence[CableEnd], agreed: Agreement) -> Result:
    if ends:
        return check.ok(host.name, nic.name, value=str(ends[0]))
    unseen = _unseen(host, nic)
    others = agreed.count if agreed.usual else 0
    like = f"{plural(others, 'other')} with one"
    if unseen is None and others:
        if host.uptime_s is not None and host.uptime_s < _FIRST_S:
            message = f"no LLDP neighbour yet, {host.uptime_s:.0f} s after the boot, {like}"
            return check.warning(host.name, nic.name, message)
        silent = agreed.total - others
        if silent >= _ONE_CAUSE:
            message = f"missing LLDP neighbour on {silent} hosts, {like}: is LLDP off on their switch?"
            return check.warning(host.name, nic.name, message, None, 1)
        clear, message = agreed.is_clear, f"missing LLDP neighbour, {like}"
        return check.difference(clear, host.name, nic.name, message, None, 1)
    if unseen is None:
        like = "the same on most others" if agreed.total > 1 else "there is no similar host to compare with"
        return check.skip(host.name, nic.name, f"{_silence(host, nic)}; {like}")
    if unseen.tool_failed and others:
        return check.warning(host.name, nic.name, f"LLDP does not work here ({unseen.why}), {like}")
    return Result(check.id, host.name, nic.name, unseen.outcome, unseen.why)


LLDP_NEIGHBOR = Check(
    id="lldp.neighbor",
    what="the neighbour of every NIC of the fabric",
    source=_SOURCE,
    rule=f"present if most similar hosts have one; a warning within {_FIRST_S:g} s of the boot",
    severity=Severity.FAIL,
    component="cable",
    root=True,
    remedy="check the cable, and LLDP on the switch port and on the host",
    judge=Judge(_lldp_neighbor),
)


def _compared_numbers(check: Check, nic: str, like: Sequence[tuple[Host, Sequence[CableEnd]]]) -> Iterator[Result]:
    several, count = majority([len(ends) > 1 for _, ends in like])
    for host, ends in like:
        if len(ends) == 1:
            yield check.ok(host.name, nic)
        elif count == 0 or several:
            yield check.skip(host.name, nic, f"{len(ends)} neighbours; most others do not have one either")
        else:
            message = f"{len(ends)} neighbours: {', '.join(map(str, ends[:3]))}; {count} others have one"
            yield check.failure(host.name, nic, message, len(ends), 1)


LLDP_SEVERAL = Check(
    id="lldp.several",
    what="the number of neighbours of every NIC of the fabric",
    source=_SOURCE,
    rule="one, unless most similar hosts have several",
    component="cable",
    root=True,
    remedy="check for a device between the NIC and its switch that forwards LLDP frames",
    judge=among_peers(
        lambda _, host: {nic: ends for nic, ends in host.switch_ports.items() if ends}, _compared_numbers, _NO_NEIGHBOUR
    ),
)


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


def _lldp_placement(check: Check, fleet: Fleet) -> Iterator[Result]:
    places: list[_Place] = []
    ends_of = {host.name: _single_ends(host) for host in fleet.hosts}
    names = {switch_name(name) for name in fleet.topology.switches} if fleet.topology else set()
    spell = one_spelling(names, (end.switch for ends in ends_of.values() for end in ends.values()))
    for host, result in ends_of.items():
        actual = {nic: spell(end.switch) for nic, end in result.items()}
        due = _due(fleet.topology, host, actual)
        if not due:
            yield check.skip(host, "", _why_not(fleet.topology, bool(result)))
        places += [_Place(host, nic, result[nic], actual[nic], switch) for nic, switch in due.items()]
    agree = sum(place.right for place in places)
    misplaced: dict[tuple[str, str], list[_Place]] = defaultdict(list)
    for place in places:
        misplaced[place.actual, switch_name(place.expected)].append(place)
    for place in places:
        if place.right:
            yield check.ok(place.host, place.nic, value=str(place.found))
        elif place.actual not in names and 2 * agree <= len(places):
            yield check.skip(place.host, place.nic, f"the topology has no switch {place.found.switch}")
        else:
            message = f"connected to {place.found}, expected {place.expected}{_swap_note(place, misplaced)}"
            yield check.failure(place.host, place.nic, message, place.found.switch, place.expected)


LLDP_PLACEMENT = Check(
    id="lldp.placement",
    what="the switch that every NIC is connected to",
    source=f"{_SOURCE}, --topology",
    rule="the switch in the topology",
    severity=Severity.FAIL,
    component="cable",
    root=True,
    remedy="correct the cabling or the topology",
    judge=Judge(_lldp_placement),
)


def _single_ends(host: Host) -> Mapping[str, CableEnd]:
    """Return the neighbour of each rail that has one neighbour."""
    return {nic: ends[0] for nic, ends in host.switch_ports.items() if len(ends) == 1}


def _due(topology: Topology | None, host: str, result: Mapping[str, str]) -> Mapping[str, str]:
    """Return the expected switch of each NIC; if the topology gives the host's switch only, that switch.

    `result` has the actual switch of each NIC.
    """
    if topology is None or topology.inferred or not result:
        return {}
    ends = {nic: NicRef.of(host, nic) for nic in result}
    single = {nic: topology.nic_switch[end] for nic, end in ends.items() if end in topology.nic_switch}
    switch = topology.host_switch.get(host)
    if single or switch is None:
        return single
    right = [nic for nic, actual in result.items() if actual == switch_name(switch)]
    return {nic: switch for nic in right or result}


def _why_not(topology: Topology | None, has_neighbours: bool) -> str:
    if topology is None or topology.inferred:
        return "no topology was given"
    return "the topology does not have this host" if has_neighbours else _NO_NEIGHBOUR


def _swap_note(place: _Place, misplaced: Mapping[tuple[str, str], Sequence[_Place]]) -> str:
    """Note that two NICs are connected to each other's switch, if exactly one such partner exists."""
    others = misplaced.get((switch_name(place.expected), place.actual), ())
    return f": cables swapped with {NicRef.of(others[0].host, others[0].nic)}" if len(others) == 1 else ""


def _lldp_port(check: Check, fleet: Fleet) -> Iterator[Result]:
    claims: dict[CableEnd, list[tuple[str, str]]] = defaultdict(list)
    for host in fleet.hosts:
        ends_of_host = [(nic, end) for nic, ends in host.switch_ports.items() for end in ends if end.port]
        if not ends_of_host:
            yield check.skip(host.name, "", _NO_NEIGHBOUR)
        for nic, end in ends_of_host:
            claims[end].append((host.name, nic))
    shared = {end for end, claimants in claims.items() if len({name for name, _ in claimants}) > 1}
    usual = 2 * len(shared) > len(claims) and len(claims) > 1
    for end, claimants in claims.items():
        for name, nic in claimants:
            if end in shared and not usual:
                others = islice((NicRef.of(other, its) for other, its in claimants if other != name), 3)
                yield check.failure(name, nic, f"{end} is also the port of {', '.join(others)}", str(end))
            elif end in shared:
                yield check.skip(name, nic, f"{end}: most ports here are shared by hosts")
            else:
                yield check.ok(name, nic, value=str(end))


LLDP_PORT = Check(
    id="lldp.port",
    what="the switch port that every NIC is connected to",
    source=_SOURCE,
    rule="not the port of another host, unless most ports are shared",
    component="cable",
    root=True,
    remedy=(
        "check for a device between the hosts and the switch; an LLDP daemon may report a neighbour from before the "
        "cable was moved"
    ),
    judge=Judge(_lldp_port),
)
