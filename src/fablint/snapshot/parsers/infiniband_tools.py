"""Common parts of the parsers of InfiniBand tools: names of nodes, cables, rates."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fablint.model.host_name import NicRef
from fablint.model.names import plain
from fablint.snapshot.cable_speeds import TrainedCable

# Gbit/s of a lane, without the coding (InfiniBand Architecture Specification, volume 1, table of link speeds)
LANE_GBIT = {
    "SDR": 2.0,
    "DDR": 4.0,
    "QDR": 8.0,
    "FDR10": 10.0,
    "FDR": 13.64,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
_SIGNALLED = {2.5: "SDR", 5.0: "DDR", 10.0: "QDR", 10.3125: "FDR10", 14.0625: "FDR", 25.78125: "EDR", 53.125: "HDR"}
_SIGNALLED |= {106.25: "NDR", 212.5: "XDR"}  # of a lane, in the output of iblinkinfo
_ROUNDED = {"2.5": "SDR", "5": "DDR", "10": "QDR", "14": "FDR", "25": "EDR", "50": "HDR", "100": "NDR", "200": "XDR"}
_RATE = re.compile(r"(\d{1,2})x([A-Z]{2,3}(?:10)?)")
_DEVICE = re.compile(r"(.*\S)\s+((?:mlx|hfi|qib|ib|irdma|bnxt|rxe|mthca|cxi|HCA|roce)[\w.-]*)", re.IGNORECASE)
_FAILED = re.compile(r"\s*\S+: iberror: failed: (.*)")  # infiniband-diags say so on stdout
# Node descriptions of drivers and firmware before the host has set its own.
_DEFAULT = re.compile(
    r"(localhost(\.localdomain)?( .*)?|MT\d+.*|.*Mellanox Technologies.*|Connect-?X.*|.*Infini(Host|scale|Path).*"
    r"|\(none\).*|(HCA|mlx\d?|hfi\d?|qib\d?)[-_]?\d*|BlueField.*)?",
    re.IGNORECASE,
)
_MOST_ADAPTERS = 16  # of a host: more with one description have a shared one
_AGGREGATION_NODES = ("aggregation node",)  # the aggregation node (SHARP) of a switch is listed as a channel adapter


@dataclass(frozen=True)
class Port:
    """One end of a cable: GUID, description and port of the node."""

    guid: str
    description: str
    number: str
    switch: bool
    ports: int = 1  # of the node
    router: bool = False


@dataclass(frozen=True)
class PortPair:
    """A cable as one end reports it. `rate` is `4xEDR`; empty if not reported."""

    here: Port
    there: Port
    rate: str = ""


def guid(text: str) -> str:
    """Normalise a GUID: lower case, no `0x`, 16 digits."""
    return text.lower().removeprefix("0x").rjust(16, "0")[-16:]


def guid_alias(text: str) -> str:
    """Return the alias of a switch in forwarding tables."""
    return f"guid-{guid(text)}"


def is_guid_alias(name: str) -> bool:
    """Return whether a name is a GUID in place of one."""
    return re.fullmatch(r"guid-[0-9a-f]{16}", name) is not None


def rate_of(width: str, lane_gbit: str) -> str:
    """Return `4xEDR` for `4X` and `25.78125`; '' for an unknown speed."""
    try:
        speed = _SIGNALLED.get(float(lane_gbit))
    except ValueError:
        return ""
    return f"{width.lower()}{speed}" if speed else ""


def rate_of_lanes(width: str, lane: str) -> str:
    """Return `4xEDR` for `4x` and `25`, the rounded rate of a lane as ibdiagnet prints it; '' for an unknown one."""
    speed = _ROUNDED.get(lane) or (lane if lane in LANE_GBIT else "")
    return f"{width.lower()}{speed}" if width and speed else ""


def bytes_per_second(rate: str) -> float:
    """Return the payload rate of a cable of `4xEDR`; 0 for an unknown rate."""
    match = _RATE.fullmatch(rate)
    return int(match[1]) * LANE_GBIT.get(match[2], 0.0) * 1e9 / 8 if match else 0.0


def host_and_nic(description: str) -> tuple[str, str]:
    """Split the description of a port.

    Returns
    -------
    tuple of (str, str)
        Host and NIC: `node001` and `mlx5_0` of `node001 mlx5_0`. A description without a device is the host.
    """
    match = _DEVICE.fullmatch(description.strip())
    return (plain(match[1]), plain(match[2])) if match else (plain(description), "")


@dataclass(frozen=True)
class NamedCable:
    """A cable with the names of its ends: `a` is a switch, `b` a switch or a host."""

    a: str
    b: str
    rate: str = ""
    a_port: str = ""
    b_port: str = ""
    nic: str = ""
    to_host: bool = False

    @property
    def end(self) -> NicRef:
        """The other end: a switch, a host, or a NIC."""
        return NicRef.of(self.b, self.nic)

    @property
    def trained(self) -> TrainedCable | None:
        """The cable with its rate; None if the rate is unknown."""
        speed = bytes_per_second(self.rate)
        return (
            TrainedCable(self.a, self.end, self.rate, speed, self.a_port, self.b_port, self.to_host) if speed else None
        )


def name_cables(joined: Iterable[PortPair]) -> tuple[list[NamedCable], Mapping[str, str]]:
    """Return cables and switches by their names.

    Returns
    -------
    tuple of (list of NamedCable, Mapping)
        All cables without duplicates, and the names of all switches by GUID.
    """
    cables = _once(joined)
    names, hosts = _switch_names(cables), _host_names(cables)
    result = []
    for cable in cables:
        here, there = sorted((cable.here, cable.there), key=lambda end: not end.switch)
        if not here.switch or there.router or _is_aggregation_node(there):
            continue
        switch, ports = names[guid(here.guid)], (here.number, there.number)
        if there.switch:
            result.append(NamedCable(switch, names[guid(there.guid)], cable.rate, *ports))
            continue
        host, nic = hosts[guid(there.guid)]
        if host:
            nic = f"{nic}-{there.number}" if nic and there.ports > 1 else nic
            result.append(NamedCable(switch, host, cable.rate, *ports, nic, to_host=True))
    return result, names


def ports_with_several_cables(joined: Iterable[PortPair]) -> Mapping[tuple[str, str], Sequence[Port]]:
    """Return the other ends of each port with several cables, by GUID and number: two nodes have the GUID."""
    ends: dict[tuple[str, str], dict[tuple[str, str], Port]] = defaultdict(dict)
    for cable in joined:
        for near, far in ((cable.here, cable.there), (cable.there, cable.here)):
            ends[guid(near.guid), near.number].setdefault((guid(far.guid), far.number), far)
    return {end: list(others.values()) for end, others in ends.items() if len(others) > 1}


def _once(joined: Iterable[PortPair]) -> list[PortPair]:
    port_pairs: dict[frozenset[tuple[str, str]], PortPair] = {}
    for cable in joined:
        ends = frozenset({(guid(cable.here.guid), cable.here.number), (guid(cable.there.guid), cable.there.number)})
        earlier = port_pairs.get(ends)
        if len(ends) == 2 and (earlier is None or (cable.rate and not earlier.rate)):
            port_pairs[ends] = cable
    return list(port_pairs.values())


def _switch_names(cables: Iterable[PortPair]) -> Mapping[str, str]:
    """Return switch names by GUID. Switches without a name share a default name; their GUID replaces it."""
    described = {
        guid(end.guid): plain(end.description) for cable in cables for end in (cable.here, cable.there) if end.switch
    }
    count = Counter(described.values())
    return {key: name if name and count[name] == 1 else guid_alias(key) for key, name in described.items()}


def _host_names(cables: Iterable[PortPair]) -> Mapping[str, tuple[str, str]]:
    """Return host and NIC of each adapter by node GUID; a default or shared description is replaced by the GUID."""
    described = {
        guid(end.guid): end.description.strip()
        for cable in cables
        for end in (cable.here, cable.there)
        if not end.switch
    }
    count = Counter(described.values())
    hosts = {}
    for key, description in described.items():
        host, nic = host_and_nic(description)
        shared = count[description] > (1 if nic else _MOST_ADAPTERS)
        hosts[key] = (guid_alias(key), "") if shared or _DEFAULT.fullmatch(description) else (host, nic)
    return hosts


def _is_aggregation_node(port: Port) -> bool:
    return not port.switch and any(words in port.description.lower() for words in _AGGREGATION_NODES)


def tool_failure(text: str) -> str | None:
    """Return why a tool of infiniband-diags failed, which it prints on stdout; None for other texts."""
    match = _FAILED.match(text)
    return match[1] if match else None
