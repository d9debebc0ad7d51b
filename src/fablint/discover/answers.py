"""What the probe printed on each host: where its NICs hang, and how they are set."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fablint.discover import ama
from fablint.discover.facts import Facts, NicFact, SourceReport, Told, gather, report_on
from fablint.discover.names import fold, plain
from fablint.discover.sources.lldpcli import neighbours, of_host
from fablint.discover.sources.lldptool import read_neighbour
from fablint.discover.sources.source import dicts
from fablint.model import Answer, Finding, State

PROBE = ("python3", "-")  # reads the probe from its stdin
_PIECE = re.compile(r"fablint:(.*)\.\s*$")
_LONGEST = 100  # letters of what a host said instead
_VIRTUAL = ("veth", "docker", "virbr", "br-", "tap", "tun", "dummy", "cni", "flannel", "cali")
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class Answers:
    """All answers, understood."""

    facts: Facts
    nics: tuple[NicFact, ...]
    findings: tuple[Finding, ...]
    reports: tuple[SourceReport, ...]


def probe_text() -> str:
    """The program that each host runs."""
    return (Path(__file__).parent / "probe.py").read_text(encoding="utf-8")


def read_answers(answers: Sequence[Answer]) -> Answers:
    """Facts, NICs and findings. A host that did not answer, or not with the probe's line, is a finding."""
    said: dict[str, Mapping[str, Any]] = {}
    silent: dict[str, str] = {}
    for answer in answers:
        document = _document(answer.output)
        if document is None:
            silent[answer.host] = answer.error or _instead(answer.output)
        else:
            said[answer.host] = document
    nics = tuple(nic for host, document in said.items() for nic in _nics(host, document))
    lldp = gather(_lldp(host, document) for host, document in said.items())
    by_end = {(nic.host, nic.name): nic for nic in nics}
    wrong = ama.mismatches(lldp.attachments, by_end)
    ends = {finding.name for finding in wrong}
    places, switches = ama.attachments(nic for nic in nics if f"{nic.host}/{nic.name}" not in ends)
    addresses = Facts(attachments=places, switches=switches)
    reports = [report_on(Told.LLDP, lldp)] if lldp.attachments else [_no_lldp(said)] if said else []
    reports += [report_on("algorithmic MAC addresses", addresses)] if places else []
    return Answers(gather([lldp, addresses]), nics, (*_silent(silent), *wrong), tuple(reports))


def _document(output: str) -> Mapping[str, Any] | None:
    """The probe's words; what login scripts and launchers print around them is left out."""
    text = "".join(piece for line in output.splitlines() for piece in _PIECE.findall(line))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and document.get("fablint_probe") == 1 else None


def _instead(output: str) -> str:
    """What a host printed instead of an answer."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f"it printed no facts, but {lines[-1][:_LONGEST]!r}" if lines else "it printed nothing"


def _silent(silent: Mapping[str, str]) -> list[Finding]:
    return [
        Finding(
            state=State.FAULT,
            component="host",
            name=host,
            evidence=f"no answer: {why}",
            next_step="log in to it; leave it out with -x till then",
        )
        for host, why in silent.items()
    ]


def _no_lldp(said: Mapping[str, Mapping[str, Any]]) -> SourceReport:
    """Why no host knows a neighbour."""
    why: dict[str, list[str]] = {}
    for host, document in said.items():
        lldp = document.get("lldp")
        cli = lldp.get("lldpcli") if isinstance(lldp, dict) else None
        error = str(cli.get("error", "")) if isinstance(cli, dict) else ""
        why.setdefault(error or "no neighbour is heard", []).append(host)
    worst = max(why, key=lambda reason: len(why[reason]))
    return SourceReport(Told.LLDP, silent=f"{worst} ({fold(why[worst])})")


# ------------------------------------------------------------------------------------------------ one host


def _lldp(host: str, document: Mapping[str, Any]) -> Facts:
    """Where LLDP says that the NICs of a host hang."""
    lldp = document.get("lldp")
    if not isinstance(lldp, dict):
        return Facts()
    heard = neighbours(_output(lldp.get("lldpcli")))
    tool = lldp.get("lldptool")
    for nic, entry in (tool if isinstance(tool, dict) else {}).items():
        neighbour = read_neighbour(str(nic), _output(entry))
        heard += [neighbour] if neighbour else []
    return of_host(host, heard)


def _output(entry: object) -> str:
    output = entry.get("output") if isinstance(entry, dict) else None
    return output if isinstance(output, str) else ""


def _nics(host: str, document: Mapping[str, Any]) -> list[NicFact]:
    """Network interfaces and ports of fabric devices."""
    slingshot = {str(one.get("net")): one for one in dicts(document.get("cxi"))}
    found = [_interface(host, one, str(one.get("name")) in slingshot) for one in dicts(document.get("nics"))]
    several = [str(one.get("device")) for one in dicts(document.get("infiniband"))]
    found += [_port(host, one, several) for one in dicts(document.get("infiniband"))]
    return [nic for nic in found if nic.name]


def _interface(host: str, one: Mapping[str, Any], slingshot: bool) -> NicFact:
    name = plain(one.get("name", ""))
    hardware = str(one.get("type", ""))
    virtual = name.startswith(_VIRTUAL)
    kind = "cxi" if slingshot else "virtual" if virtual else "infiniband" if hardware == "32" else "ethernet"
    addresses = one.get("addresses")
    return NicFact(
        host,
        name,
        mac=str(one.get("mac", "")).lower(),
        mtu=_known(one.get("mtu"), int),
        speed=_known(one.get("speed"), int),
        state=_state(str(one.get("operstate", "")), str(one.get("carrier", ""))),
        kind=kind,
        addresses=tuple(map(str, addresses)) if isinstance(addresses, list) else (),
    )


def _port(host: str, one: Mapping[str, Any], devices: Sequence[str]) -> NicFact:
    """A port of an RDMA device; those of one device that has several are told apart by their number."""
    device = plain(one.get("device", ""))
    name = f"{device}-{plain(one.get('port', ''))}" if devices.count(device) > 1 else device
    rate = str(one.get("rate", "")).partition(" ")[0]
    speed = _known(rate, lambda text: int(float(text) * 1000))
    state = str(one.get("state", "")).partition(":")[2].strip().lower()
    kind = "infiniband" if one.get("link_layer") == "InfiniBand" else "ethernet"
    return NicFact(host, name, speed=speed, state="up" if state == "active" else state, kind=kind)


def _known(value: object, of: Callable[[Any], _Number]) -> _Number | None:
    """A figure above 0; drivers that do not know write -1."""
    try:
        figure = of(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return figure if figure > 0 else None


def _state(operstate: str, carrier: str) -> str:
    """Drivers that tell no state (`unknown`) tell the carrier."""
    if operstate in ("up", "down", "lowerlayerdown", "dormant"):
        return "up" if operstate == "up" else "down"
    return {"1": "up", "0": "down"}.get(carrier, "")
