"""What can be wrong with one host of a fleet, as it shows in its snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fleets.documents import PORTS, Fleet
from fleets.machines import Machine, Rail

Document = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """A fault of one rail, or of the host. `apply` changes the document of the host with this index."""

    name: str
    what: str
    apply: Callable[[Fleet, int, Document], None]
    needs: Callable[[Machine], bool] = lambda _: True
    topology: bool = False  # is the site's topology given to the program?


def _rail(fleet: Fleet) -> Rail:
    return fleet.machine.rails[1]


def _mtu(fleet: Fleet, _: int, document: Document) -> None:
    nic = _rail(fleet).interface
    document["files"]["sys"]["class"]["net"][nic]["mtu"] = "1500"
    addresses = json.loads(document["commands"]["ip-addr"]["output"])
    for one in addresses:
        one["mtu"] = 1500 if one["ifname"] == nic else one["mtu"]
    document["commands"]["ip-addr"]["output"] = json.dumps(addresses)


def _speed(fleet: Fleet, _: int, document: Document) -> None:
    """Half of the lanes, or the next lower speed."""
    rail, classes = _rail(fleet), document["files"]["sys"]["class"]
    if fleet.machine.link != "infiniband":
        lower = {200_000: 100_000, 400_000: 200_000, 25_000: 10_000}[fleet.machine.speed_mbit]
        classes["net"][rail.interface]["speed"] = str(lower)
    if fleet.machine.link == "slingshot":
        classes["cxi"][rail.device]["device"]["port"]["speed"] = "BJ_100G"
    elif rail.device:
        classes["infiniband"][rail.device]["ports"]["1"]["rate"] = "200 Gb/sec (2X NDR)"


def _missing(fleet: Fleet, _: int, document: Document) -> None:
    """A NIC that fell off the bus: nothing of it is left, on the bus or above."""
    rail = _rail(fleet)
    for key in ("files", "counters", "later"):
        tree = document[key]
        for kind in ("net", "infiniband", "cxi"):
            for name in (rail.interface, rail.device):
                tree["sys"]["class"].get(kind, {}).pop(name, None)
        tree.get("run", {}).get("cxi", {}).pop(rail.device, None)
    document["files"]["sys"]["bus"]["pci"]["devices"].pop(rail.pci)
    document["files"]["proc"]["sys"]["net"]["ipv4"]["conf"].pop(rail.interface)
    for key in ("links", "folders"):
        gone = (f"/{rail.interface}/", f"/{rail.device}/") if rail.device else (f"/{rail.interface}/",)
        document[key] = {path: one for path, one in document[key].items() if not any(part in path for part in gone)}
    for name in [name for name in document["commands"] if name.rpartition("/")[2] in (rail.interface, rail.device)]:
        document["commands"].pop(name)
    for name, field in (("ip-addr", "ifname"), ("ip-route", "dev")):
        rows = json.loads(document["commands"][name]["output"])
        document["commands"][name]["output"] = json.dumps([row for row in rows if row[field] != rail.interface])
    _heard(document, lambda one: None if one["name"] == rail.interface else one)


def _memory(fleet: Fleet, _: int, document: Document) -> None:
    """One DIMM that was mapped out at boot."""
    text = document["files"]["proc"]["meminfo"]
    total = int(text.split()[1])
    less = total * (fleet.machine.dimms - 1) // fleet.machine.dimms
    document["files"]["proc"]["meminfo"] = text.replace(str(total), str(less), 1)


def _lldp(fleet: Fleet, index: int, document: Document) -> None:
    """The cable is in a free port of another switch: of its plane if there is one, else of the next."""
    rail, place = _rail(fleet), fleet.place(index, 1)
    other = fleet.place((index + PORTS) % fleet.hosts, 1).switch

    def move(one: Document) -> Document:
        if one["name"] == rail.interface:
            switch = other if other != place.switch else place.switch.replace("leaf1", "leaf0")
            one["chassis"][0]["name"][0]["value"] = switch
            for key in ("id", "descr"):
                one["port"][0][key][0]["value"] = f"Ethernet{PORTS + 1}"
        return one

    _heard(document, move)


def _planes(fleet: Fleet, _: int, document: Document) -> None:
    """Cables of two rails are swapped: each is on the other's plane. No topology says what is right."""
    names = {fleet.machine.rails[0].interface: fleet.machine.rails[1].interface}
    names |= {other: name for name, other in names.items()}
    _heard(document, lambda one: {**one, "name": names.get(one["name"], one["name"])})


def _heard(document: Document, change: Callable[[Document], Document | None]) -> None:
    said = json.loads(document["commands"]["lldpcli"]["output"])
    changed = [change(one) for one in said["lldp"][0]["interface"]]
    said["lldp"][0]["interface"] = [one for one in changed if one]
    document["commands"]["lldpcli"]["output"] = json.dumps(said)


def _driver(fleet: Fleet, _: int, document: Document) -> None:
    """An older driver on the whole host, as after an image that was not updated."""
    machine = fleet.machine
    older = "1.9.0-old"
    document["files"]["sys"]["module"][machine.driver]["version"] = older
    for name, said in document["commands"].items():
        if name.startswith("ethtool-i/"):
            said["output"] = said["output"].replace(machine.driver_version, older)


def _clock(_: Fleet, __: int, document: Document) -> None:
    """The time daemon says that it is synchronised, to a source that is 35 ms off."""
    fields = document["commands"]["chronyc"]["output"].split(",")
    document["commands"]["chronyc"]["output"] = ",".join([*fields[:4], "0.035120000", *fields[5:]])


FAULTS: Mapping[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault("mtu", "MTU 1500 on one rail", _mtu),
        Fault("speed", "one rail at half its speed or the next lower one", _speed),
        Fault("nic", "one NIC is gone from the bus", _missing),
        Fault("memory", "one DIMM is mapped out", _memory),
        Fault("lldp", "one cable on another switch than the topology says", _lldp, lambda one: one.has_lldp, True),
        Fault("planes", "the cables of two rails are swapped, no topology", _planes, lambda one: one.has_lldp),
        Fault("driver", "an older driver of the NICs", _driver),
        Fault("clock", "the clock is 35 ms off", _clock),
    )
}
