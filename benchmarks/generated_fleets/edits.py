"""Small changes to the document of a host: a file, a counter at its last reading, an output, a line of the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from generated_fleets.documents import Fleet
from generated_fleets.machines import Rail

Document = dict[str, Any]
Change = Callable[[Fleet, int, Document], None]
_UP_S = 777_600  # seconds that hosts are up, and a little more


def rail_of(fleet: Fleet, index: int) -> Rail:
    """The rail of a host that a fault hits."""
    rails = fleet.machine_of(index).rails
    return rails[1] if len(rails) > 1 else rails[0]


def put(document: Document, path: str, text: str, tree: str = "files") -> None:
    """Write a file of a snapshot."""
    *folders, name = path.strip("/").split("/")
    at = document[tree]
    for folder in folders:
        at = at.setdefault(folder, {})
    at[name] = text


def devices(fleet: Fleet, index: int) -> list[str]:
    """Folders of the PCI device of the rail that a fault hits."""
    rail, kind = rail_of(fleet, index), "cxi" if fleet.machine.link == "slingshot" else "infiniband"
    result = [f"/sys/class/net/{rail.interface}/device", f"/sys/bus/pci/devices/{rail.pci}"]
    return [*result, *([f"/sys/class/{kind}/{rail.device}/device"] if rail.device else [])]


def file(path: str, text: str) -> Change:
    """Another text of a file. `{nic}`, `{dev}` and `{driver}` stand for those of the rail that a fault hits."""

    def change(fleet: Fleet, index: int, document: Document) -> None:
        put(document, _named(path, fleet, index), text)

    return change


def device_file(name: str, text: str) -> Change:
    """Another text of a file of the rail's PCI device."""

    def change(fleet: Fleet, index: int, document: Document) -> None:
        for folder in devices(fleet, index):
            put(document, f"{folder}/{name}", text)

    return change


def counted(path: str, growth: int) -> Change:
    """A counter that grew between the two readings."""

    def change(fleet: Fleet, index: int, document: Document) -> None:
        place = _named(path, fleet, index)
        *folders, name = place.strip("/").split("/")
        at = document["later"]
        for folder in folders:
            at = at[folder]
        value, mark, moment = at[name].partition("@")
        at[name] = f"{int(value) + growth}{mark}{moment}"

    return change


def device_counted(name: str, text: str) -> Change:
    """A counter of the rail's PCI device at its last reading."""

    def change(fleet: Fleet, index: int, document: Document) -> None:
        for folder in devices(fleet, index):
            if "/bus/" not in folder:
                put(document, f"{folder}/{name}", text, "later")

    return change


def said(name: str, old: str, new: str) -> Change:
    """Another text in the output of a program. Raises ValueError where the old one is not there."""

    def change(fleet: Fleet, index: int, document: Document) -> None:
        item = document["commands"][_named(name, fleet, index)]
        if old not in item["output"]:
            raise ValueError(f"{name} does not say {old!r}")
        item["output"] = item["output"].replace(old, new, 1)

    return change


def logged(*lines: str) -> Change:
    """Lines at the end of the kernel log, an hour ago; names as in `file`."""

    def change(fleet: Fleet, index: int, document: Document) -> None:
        moments = range(_UP_S - 3600, _UP_S)
        more = [
            f"<3>[{moment:5d}.000001] {_named(line, fleet, index)}"
            for moment, line in zip(moments, lines, strict=False)
        ]
        document["kernel_log"]["output"] += "\n" + "\n".join(more)

    return change


def listed(name: str, change_row: Callable[[Document, Rail], Document | None]) -> Change:
    """Other rows of what `ip -j` printed; None takes a row out."""

    def change(fleet: Fleet, index: int, document: Document) -> None:
        rows = json.loads(document["commands"][name]["output"])
        changed = [change_row(row, rail_of(fleet, index)) for row in rows]
        document["commands"][name]["output"] = json.dumps([row for row in changed if row is not None])

    return change


def all_of(changes: Iterable[Change]) -> Change:
    """Several changes, one after the other."""
    all_changes = tuple(changes)

    def change(fleet: Fleet, index: int, document: Document) -> None:
        for item in all_changes:
            item(fleet, index, document)

    return change


def _named(text: str, fleet: Fleet, index: int) -> str:
    rail = rail_of(fleet, index)
    return text.format(nic=rail.interface, dev=rail.device, driver=fleet.machine.driver)
