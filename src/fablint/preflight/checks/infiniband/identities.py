"""Checks of the identity of InfiniBand ports: GUIDs and LIDs that occur once, planes, links that went down."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from fablint.model.names import fold, plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import LEAST_OTHERS, Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.judges import among_peers
from fablint.snapshot.counter_deltas import total
from fablint.snapshot.rdma_ports import RdmaPort


def _ports(host: Host) -> Sequence[RdmaPort]:
    return [port for port in host.ports if port.link_layer == "InfiniBand"]


def _guids(host: Host) -> Mapping[str, str]:
    """Return the GUID of each device with an InfiniBand port; virtual functions can have none."""
    result = {port.device: host.read(f"{INFINIBAND}/{port.device}/node_guid") or "" for port in _ports(host)}
    return {device: guid.lower() for device, guid in result.items() if guid.strip("0:")}


@dataclass
class _Owners:
    """Hosts with an identity, each with the component that has it."""

    components: dict[str, str] = field(default_factory=dict)

    def judged(self, check: Check, fleet: Fleet, host: str, target: str, identity: str) -> Result:
        """Return the result for a component of a host."""
        others = len(self.components) - (host in self.components)
        if others >= LEAST_OTHERS and 2 * others >= len(fleet.hosts):  # such a subnet could not work
            return check.skip(host, target, f"{identity} in most snapshots: they are copies, or made anonymous")
        if others:
            first = next(name for name in self.components if name != host)
            message = f"{identity} is also that of {first} {self.components[first]}"
            return check.failure(host, target, message, identity)
        return check.ok(host, target, value=identity)


def _port_identity(check: Check, fleet: Fleet) -> Iterator[Result]:
    guids: dict[str, _Owners] = defaultdict(_Owners)
    for host in fleet.hosts:
        for device, guid in _guids(host).items():
            guids[guid].components.setdefault(host.name, device)
    for host in fleet.hosts:
        guid_of_device = _guids(host)
        if not guid_of_device:
            yield check.skip(host.name, "", "no InfiniBand port, or its device has no GUID")
        for device, guid in guid_of_device.items():
            yield guids[guid].judged(check, fleet, host.name, device, f"GUID {guid}")


IB_IDENTITY = Check(
    id="ib.identity",
    what="the GUID of every InfiniBand device",
    source=f"{INFINIBAND}/DEVICE/node_guid",
    rule="no two hosts have the same GUID",
    severity=Severity.FAIL,
    component="nic",
    remedy="correct the GUID of a card that was flashed with the image of another",
    judge=Judge(_port_identity),
)


_FEW = 2  # hosts with LIDs of others, or less than half of the hosts: else they are ports of separate subnets
_Lid = tuple[str, str, int]  # name of the port, its subnet, LID


def _lids(host: Host) -> Mapping[_Lid, str]:
    """Return the LIDs of the active ports with the GUIDs of their devices; a virtual function has that of its card."""
    guids = {} if host.is_virtual else _guids(host)
    ports = [port for port in _ports(host) if port.is_active and port.plane and port.device in guids]
    lids = {port: host.snapshot.number(f"{port.folder}/lid") for port in ports}
    return {(port.target, port.plane, lid): guids[port.device] for port, lid in lids.items() if lid}


def _port_lids(check: Check, fleet: Fleet) -> Iterator[Result]:
    """Compare ports of one name: rails may be separate subnets whose subnet managers have one LID."""
    owners: dict[_Lid, dict[str, str]] = defaultdict(dict)  # GUID by host
    lids = {host.name: _lids(host) for host in fleet.hosts}
    for name, ports in lids.items():
        for lid, guid in ports.items():
            owners[lid][name] = guid
    shared = {lid: names for lid, names in owners.items() if len(set(names.values())) > 1}
    involved = {name for names in shared.values() for name in names}
    is_few = len(involved) <= max(_FEW, len(fleet.hosts) / 2)
    for host in fleet.hosts:
        lids_of_host = lids[host.name]
        if not lids_of_host:
            yield check.skip(host.name, "", "no active InfiniBand port with a LID of its own")
        for lid in lids_of_host:
            target = lid[0]
            others = [name for name in shared.get(lid, ()) if name != host.name]
            message = f"LID {lid[2]} is also that of {fold(others)}"
            if not others:
                yield check.ok(host.name, target, value=lid[2])
            elif is_few:
                yield check.failure(host.name, target, message, lid[2])
            else:
                yield check.skip(host.name, target, f"{message}: the hosts are in several subnets, or copies")


IB_LIDS = Check(
    id="ib.lid",
    what="the LID of every active InfiniBand port",
    source=f"{INFINIBAND}/DEVICE/ports/PORT/lid, sm_lid, gids/0",
    rule="no two hosts with different GUIDs have one LID in one subnet",
    severity=Severity.FAIL,
    component="config",
    remedy="look for a second subnet manager (sminfo, saquery); restart the subnet manager without its file guid2lid",
    judge=Judge(_port_lids),
)


def _planes(check: Check, fleet: Fleet) -> Iterator[Result]:
    """Compare the subnets of the ports: each rail has its subnet manager or prefix, or all rails share one."""
    subnets: dict[tuple[str, str], list[str]] = defaultdict(list)  # by class and port
    for host in fleet.hosts:
        for port in _ports(host):
            if port.is_active and port.plane:
                subnets[host.kind, port.target].append(port.plane)
    agreed = {key: Agreement.of(planes) for key, planes in subnets.items()}
    for host in fleet.hosts:
        plane_of_port = {port.target: port.plane for port in _ports(host) if port.is_active and port.plane}
        if not plane_of_port:
            yield check.skip(host.name, "", "no active InfiniBand port that reports its subnet manager")
        usual = {target: agreed[host.kind, target] for target in plane_of_port}
        for target in plane_of_port:
            yield _judged_plane(check, host.name, target, plane_of_port, usual)


def _judged_plane(
    check: Check, host: str, target: str, plane_of_port: Mapping[str, str], usual: Mapping[str, Agreement]
) -> Result:
    plane, expected = plane_of_port[target], usual[target].usual
    if expected is None:
        return check.skip(host, target, f"{plane}; no majority to compare with")
    if plane == expected:
        return check.ok(host, target, value=plane)
    of_others = usual[target]
    swapped = [other for other in plane_of_port if usual[other].usual == plane and plane_of_port[other] == expected]
    message = f"{plane}, {plural(of_others.count, 'other')} {expected}"
    if swapped:
        message += f": the cables of {target} and {swapped[0]} are swapped"
    return check.difference(of_others.is_clear, host, target, message, plane, expected)


IB_PLANES = Check(
    id="ib.planes",
    what="the subnet of every active InfiniBand port: LID of its subnet manager, and subnet prefix",
    source=f"{INFINIBAND}/DEVICE/ports/PORT/sm_lid, gids/0",
    rule="the same as on most similar hosts",
    severity=Severity.FAIL,
    component="cable",
    remedy="swap the cables of the two ports; otherwise look for a second subnet manager (sminfo, ibnetdiscover)",
    judge=Judge(_planes),
)


_MORE_FLAPS, _TIMES = 3, 2  # than most others since their counters were cleared


def _flaps(check: Check, host: Host) -> Mapping[str, Result | int]:
    counts = {port.target: _link_downed(host, port) for port in host.ports}
    why = "the driver does not count them"
    return {target: check.skip(host.name, target, why) if count is None else count for target, count in counts.items()}


def _link_downed(host: Host, port: RdmaPort) -> int | None:
    path = f"{port.folder}/counters/link_downed"
    return total(path, host.snapshot.read_later(path) or host.read(path))


def _compared_flaps(check: Check, target: str, like: Sequence[tuple[Host, int]]) -> Iterator[Result]:
    usual = median(count for _, count in like) if len(like) > LEAST_OTHERS else None
    for host, count in like:
        if usual is not None and count >= max(usual + _MORE_FLAPS, _TIMES * usual):
            message = f"link went down {count} times, {usual:g} times on most others"
            yield check.failure(host.name, target, message, count, usual)
        else:
            yield check.ok(host.name, target, value=count)


IB_FLAPS = Check(
    id="ib.flaps",
    what="how often the link of every port of an RDMA device went down",
    source=f"{INFINIBAND}/DEVICE/ports/PORT/counters/link_downed",
    rule=f"at most {_MORE_FLAPS - 1} times more often than on most similar hosts, or less than {_TIMES} times as often",
    component="cable",
    remedy="reseat the cable, then replace it; check the port of the switch (perfquery -R clears the counter)",
    judge=among_peers(_flaps, _compared_flaps, "no RDMA device"),
)
