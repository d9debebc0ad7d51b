"""Files of `ibdiagnet`: ibdiagnet2.lst, a cable on each line; .net_dump, a table for each switch; .db_csv, sections."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping

from fablint.discover.facts import Facts
from fablint.discover.sources.infiniband_cables import facts_of
from fablint.discover.sources.source import SavedOutput
from fablint.snapshot.parsers.infiniband_tools import Port, PortPair, guid, rate_of_lanes

_END = (
    r"\{ *(SW|CA|RT) Ports:([0-9a-f]+) SystemGUID:[0-9a-f]+ NodeGUID:([0-9a-f]+) PortGUID:[0-9a-f]+ "
    r"VenID:\S+ DevID:\S+ Rev:\S+ +(?:\{(.*?)\} +)?LID:\S+ PN:([0-9a-f]+) *\}"
)
_CABLE = re.compile(rf"^{_END} +{_END} +PHY=(\d+x) LOG=\w+ SPD=(\S+)", re.IGNORECASE)
_TABLE = re.compile(r'^"(.*)", *[^,"]*, *0x([0-9a-f]{1,16}), *LID +\d+', re.IGNORECASE)
_COLUMNS = ("#", "IB#", "LWA", "LSA", "Neighbor Guid", "N#", "Neighbor Description")
_KINDS = {"1": "CA", "2": "SW", "3": "RT"}
_WIDTHS = {"1": "1x", "2": "4x", "4": "8x", "8": "12x", "16": "2x"}  # PortInfo.LinkWidthActive
# bits of PortInfo.LinkSpeedActive, then those of LinkSpeedExtActive, then FDR10 of Mellanox's own record
_SPEEDS = {1: "SDR", 2: "DDR", 4: "QDR", 1 << 8: "FDR", 1 << 9: "EDR", 1 << 10: "HDR", 1 << 11: "NDR", 1 << 12: "XDR"}
_SPEEDS |= {1 << 16: "FDR10"}


class IbDiagnetList:
    """Cables with both ends on one line; numbers are hexadecimal."""

    name = "ibdiagnet2.lst"
    command: tuple[str, ...] = ()  # ibnetdiscover reports the same

    def recognises(self, text: str) -> bool:
        return any(_CABLE.match(line) for line in text.splitlines())

    def read(self, saved: SavedOutput) -> Facts:
        return facts_of(
            PortPair(_port(*row.groups()[:5]), _port(*row.groups()[5:10]), rate_of_lanes(row[11], row[12]))
            for row in map(_CABLE.match, saved.text.splitlines())
            if row
        )


def _port(kind: str, ports: str, node: str, description: str | None, number: str) -> Port:
    kind = kind.upper()
    return Port(node, description or "", str(int(number, 16)), kind == "SW", int(ports, 16), kind == "RT")


class IbDiagnetTables:
    """Ports of each switch with their neighbours."""

    name = "ibdiagnet2.net_dump"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        lines = text.splitlines()
        return any(map(_TABLE.match, lines)) and any("Neighbor Guid" in line for line in lines)

    def read(self, saved: SavedOutput) -> Facts:
        rows = list(_rows(saved.text))
        switches = {key for key, _, _ in rows}
        numbers = {(key, row["#"]): row["IB#"] for key, _, row in rows}  # of the labels at the switch
        return facts_of(
            PortPair(
                Port(key, name, row["IB#"], switch=True),
                Port(other, row["Neighbor Description"], numbers.get((other, row["N#"]), row["N#"]), other in switches),
                rate_of_lanes(row["LWA"], row["LSA"]),
            )
            for key, name, row in rows
            if (other := guid(row["Neighbor Guid"])).strip("0")
        )


def _rows(text: str) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield GUID and name of a switch with each row of its table, by column; a description may contain colons."""
    key, name, columns = "", "", list[str]()
    for line in text.splitlines():
        if table := _TABLE.match(line):
            key, name, columns = guid(table[2]), table[1], []
        elif "Neighbor Guid" in line:
            columns = [word.strip() for word in line.split(":")]
        elif key and set(_COLUMNS) <= set(columns) and line.count(":") >= len(columns) - 1:
            values = [word.strip().strip('"') for word in line.split(":", len(columns) - 1)]
            yield key, name, dict(zip(columns, values, strict=True))


class IbDiagnetDatabase:
    """Sections of comma-separated values: nodes, ports and cables."""

    name = "ibdiagnet2.db_csv"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return "START_LINKS" in text and "START_NODES" in text

    def read(self, saved: SavedOutput) -> Facts:
        return facts_of(_database(saved.text))


def _database(text: str) -> Iterator[PortPair]:
    nodes = {guid(row.get("NodeGUID", "")): row for row in _section(text, "NODES")}
    rates = {(guid(row.get("NodeGuid", "")), row.get("PortNum", "")): _rate(row) for row in _section(text, "PORTS")}
    for row in _section(text, "LINKS"):
        ends = [(guid(row.get(f"NodeGuid{end}", "")), row.get(f"PortNum{end}", "")) for end in "12"]
        if all(key in nodes for key, _ in ends):
            here, there = (_end(key, number, nodes[key]) for key, number in ends)
            yield PortPair(here, there, rates.get(ends[0], ""))


def _end(key: str, number: str, node: Mapping[str, str]) -> Port:
    kind, ports = _KINDS.get(node.get("NodeType", "")), node.get("NumPorts", "")
    ports_of_node = int(ports) if ports.isdecimal() else 1
    return Port(key, node.get("NodeDesc", ""), number, kind == "SW", ports_of_node, kind == "RT")


def _rate(port: Mapping[str, str]) -> str:
    speed = port.get("LinkSpeedActv", "")
    lane = _SPEEDS.get(int(speed) if speed.isdecimal() and len(speed) < 9 else 0, "")
    return rate_of_lanes(_WIDTHS.get(port.get("LinkWidthActv", ""), ""), lane)


def _section(text: str, name: str) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a section by the names of its columns."""
    _, _, rest = text.partition(f"START_{name}\n")
    rows = csv.reader(rest.partition(f"END_{name}")[0].splitlines(), skipinitialspace=True)
    columns = next(rows, [])
    for row in rows:
        if len(row) == len(columns):
            yield dict(zip(columns, row, strict=True))
