"""Slingshot's reports on its switches: the site's fabric template, and the Slingshot Topology Tool (STT)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from fablint.discover.facts import Facts, Origin, SwitchFact, Wire
from fablint.discover.sources.source import SavedOutput
from fablint.model import ComponentRef, Finding, State
from fablint.model.names import plain, switch_name
from fablint.snapshot.parsers import ama
from fablint.snapshot.parsers.documents import dicts, documents
from fablint.text import actions as advise, evidence as seen

_XNAME = re.compile(r"(x\d{1,4}c[0-7]r\d{1,2})(?:b0)?(j\d{1,2}p\d|j\d{1,2}|a\d{1,2}l\d{1,2})")


class FabricTemplate:
    """`fabric_template.json`: group and number of every switch, and the cables between them."""

    name = "fabric_template.json"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return '"swcNum"' in text and '"switches"' in text

    def read(self, saved: SavedOutput) -> Facts:
        switches, wires = [], []
        for document in dicts(documents(saved.text)):
            switches += [fact for row in dicts(document.get("switches")) if (fact := _template_switch(row))]
            wires += [wire for row in dicts(document.get("links")) if (wire := _template_wire(row))]
        return Facts(switches=tuple(switches), wires=tuple(wires))


class SttSwitches:
    """STT `show switches`: name, number and group of every switch."""

    name = "STT show switches"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return any({"xname", "snum", "gnum"} <= set(row) for row in _table(text))

    def read(self, saved: SavedOutput) -> Facts:
        switches = []
        for row in _table(saved.text):
            group, number = _number(row.get("gnum")), _number(row.get("snum"))
            name = switch_name(row.get("xname", ""))
            if name and group is not None and number is not None:
                switches.append(SwitchFact(name, Origin.STT, f"group{group}", ama.alias(group, number)))
        return Facts(switches=tuple(switches))


class SttFabric:
    """STT `show fabric`: the cables between switches, reported from both ends, with their state."""

    name = "STT show fabric"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return any({"xname", "dst", "ptype", "status"} <= set(row) for row in _table(text))

    def read(self, saved: SavedOutput) -> Facts:
        wires, switches = [], {}
        down: dict[tuple[str, str], list[Finding]] = defaultdict(list)
        for row in _table(saved.text):
            here, there = _end(row.get("xname", "")), _end(row.get("dst", ""))
            if row.get("ptype") != "Fabric" or not here or not there or here[0] == there[0]:
                continue
            if place := ama.decode(row.get("mac", "")):
                switches[here[0]] = SwitchFact(here[0], Origin.STT, place.group_name, place.switch_name)
            if row.get("status") == "False":
                down[row["xname"].rpartition("p")[0], row["dst"]].append(_down(here, there, row))
            else:
                wires.append(Wire(here[0], there[0], Origin.STT, here[1]))
        return Facts(wires=tuple(wires), switches=tuple(switches.values()), findings=tuple(_once(down)))


def _once(down: Mapping[tuple[str, str], list[Finding]]) -> Iterator[Finding]:
    """Yield the findings on cables that are down, by the jacks at both ends; of two ends that report a cable, one."""
    for (here, there), findings in down.items():
        other = down.get((there, here), [])
        if len(findings) > len(other) or (len(findings) == len(other) and here < there):
            yield from findings


def _down(here: tuple[str, str], there: tuple[str, str], row: Mapping[str, str]) -> Finding:
    kind = row.get("subtype", "").lower()
    return Finding(
        state=State.FAULT,
        components=(ComponentRef.of("cable", here[0], there[0]),),
        evidence=(seen.port_down(here[1], here[0], kind or "fabric", *there),),
        next_step=advise.replace_down_cable(),
    )


def _template_switch(row: Mapping[str, Any]) -> SwitchFact | None:
    group = row.get("grpId", row.get("grpID"))
    number = row.get("swcNum")
    name = switch_name(str(row.get("IP", "")).partition(":")[0])
    if type(group) is not int or type(number) is not int or not name:
        return None
    return SwitchFact(name, Origin.TEMPLATE, f"group{group}", ama.alias(group, number))


def _template_wire(row: Mapping[str, Any]) -> Wire | None:
    here, there = _end(str(row.get("endpoint1", ""))), _end(str(row.get("endpoint2", "")))
    if not here or not there or here[0] == there[0]:
        return None
    return Wire(here[0], there[0], Origin.TEMPLATE, here[1], there[1])


def _end(xname: str) -> tuple[str, str] | None:
    """Parse switch and port of `x1000c0r3j11p0`, `x1000c0r3a0l29`, `x1000c0r7j18` (a jack: two ports)."""
    match = _XNAME.fullmatch(xname.strip())
    return (switch_name(match[1]), plain(match[2])) if match else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else None


def _table(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table with `|` borders. The head is below the first rule and may have two lines."""
    rules = 0
    head: list[str] = []
    for line in text.splitlines():
        if line.startswith("+-"):
            rules += 1
            if rules % 3 == 1:
                head = []
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if rules % 3 == 1:
                joined = len(head) == len(cells)
                head = [a + b for a, b in zip(head, cells, strict=True)] if joined else cells
            elif len(cells) == len(head):
                yield dict(zip(head, cells, strict=True))
