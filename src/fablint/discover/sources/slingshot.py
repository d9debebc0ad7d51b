"""Slingshot's reports on its switches: the site's fabric template, and the Slingshot Topology Tool (STT)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from fablint.discover.facts import Facts, Origin, SwitchFact, Wire
from fablint.discover.sources.source import SavedOutput
from fablint.model import ComponentRef, Endpoint, Finding, State
from fablint.model.names import plain, switch_name
from fablint.snapshot.parsers import ama
from fablint.snapshot.parsers.documents import dicts, documents
from fablint.text import actions as advise, evidence as seen

_XNAME = re.compile(r"(x\d{1,4}c[0-7]r\d{1,2})(?:b0)?(j\d{1,3}p\d|j\d{1,3}|a\d{1,2}l\d{1,2})")

_NODE = re.compile(r"(x\d{1,4}c[0-7]s\d{1,2}b\d{1,2}n\d{1,2})h(\d{1,2})")

_STT = re.compile(r"^(?:\(STT\)|STT diags log directory|Collecting data using '[\w-]+' script)", re.MULTILINE)
_FLAPS = re.compile(r"^Showing links with a flap score of |\|total flaps A/B *\|", re.MULTILINE)
_FLAPPED = re.compile(
    r"\s*(x\w{4,30})<->(x\w{4,30})\s*\|\s*(?P<flaps>\d{1,9})\s*/\s*(?P<its_flaps>\d{1,9})\s*\|\s*"
    r"(?P<since>[\w:., -]{1,30}?)\s*/[^|]*\|[^|]*\|\s*(?P<score>[0-6])\s*/\s*(?P<its_score>[0-6])\s*\|"
)
_WORST_SCORE = 6
_DOWNED = "rosprt xname (pport)<->rosprt xname (pport)"


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


class SttFlaps:
    """STT `show flaps`, also `show-flaps`: links that went down several times, with a score of each end from 0 to 6."""

    name = "STT show flaps"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return _FLAPS.search(text) is not None

    def read(self, saved: SavedOutput) -> Facts:
        wires, findings = [], []
        for match in map(_FLAPPED.match, saved.text.splitlines()):
            here, there = (_end(match[1]), _partner(match[2])) if match else (None, None)
            if match and here and there and here[0] != there[0]:
                wires += [Wire(here[0], there[0], Origin.STT, here[1], there[1])] if _end(match[2]) else []
                findings.append(_flapping(here, there, match))
        return Facts(wires=tuple(wires), findings=tuple(findings))


class SttLinksHealth:
    """STT `show links health`: the links that are down, with both ends."""

    name = "STT show links health"
    command: tuple[str, ...] = ()

    def recognises(self, text: str) -> bool:
        return "Displaying the Downed Links" in text or any(_DOWNED in row for row in _table(text))

    def read(self, saved: SavedOutput) -> Facts:
        findings = []
        for row in _table(saved.text):
            first, _, second = row.get(_DOWNED, "").partition("<->")
            here, there = _end(first.partition("(")[0]), _partner(second.partition("(")[0])
            if here and there and here[0] != there[0]:
                findings.append(_down(here, there, {"subtype": row.get("type", "")}))
        return Facts(findings=tuple(findings))


def _flapping(here: tuple[str, str], there: tuple[str, str], match: re.Match[str]) -> Finding:
    """Return the finding on a link of `show flaps`: a fault where an end has the worst score."""
    is_worst = str(_WORST_SCORE) in (match["score"], match["its_score"])
    return Finding(
        state=State.FAULT if is_worst else State.SUSPECT,
        components=(_cable(here, there),),
        evidence=(
            seen.link_flaps(
                here[1], there[1], f"{match['flaps']} and {match['its_flaps']}", match["since"],
                f"{match['score']} and {match['its_score']}",
            ),
        ),
        next_step=advise.replace_down_cable(),
    )  # fmt: skip


def is_stt(text: str) -> bool:
    """Tell whether a text is output of STT, of whatever command."""
    return _STT.search(text) is not None


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
        components=(_cable(here, there),),
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


def _partner(xname: str) -> tuple[str, str] | None:
    """Parse the far end of a link: a port of a switch, or the NIC of a host, such as `x1000c0s0b0n0h1` (`hsn1`)."""
    host = _NODE.fullmatch(xname.strip())
    return (host[1], f"hsn{host[2]}") if host else _end(xname)


def _cable(here: tuple[str, str], there: tuple[str, str]) -> ComponentRef:
    of_host = there[1].startswith("hsn")
    return ComponentRef.of("cable", here[0], Endpoint(nodes=(there[0],), part=there[1] if of_host else ""))


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
