"""Check of Omni-Path ports from the output of `opainfo`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck
from fablint.preflight.checks.outputs import instead_of
from fablint.preflight.host import INFINIBAND, Host
from fablint.text.sanitise import shortened

_LEAST_QUALITY = 4  # of 5
_HEAD = re.compile(r"(hfi\d{1,3}_\d{1,3}):(\d{1,3})\b")
_STATE = re.compile(r"\s*PortState:\s*(\S.*)")
_PAIR = re.compile(r"\s*(LinkSpeed|LinkWidth)\s+Act:\s*(\d{1,4})(?:Gb)?\s+En:\s*(\S+)")
_LANES = re.compile(r"\s*LinkWidthDnGrd\s+ActTx:\s*(\d{1,4})\s+Rx:\s*(\d{1,4})\s+En:\s*(\S+)")
_QUALITY = re.compile(r"\s*Link Quality:\s*(\d)\b(?:\s*\((\w+)\))?")


class OmniPathPort(HostCheck):
    id = "opa.port"
    what = "the ports of Omni-Path adapters"
    source = "opainfo"
    rule = f"Active, with the enabled speed, width and lanes, and a quality of at least {_LEAST_QUALITY}"
    severity = Severity.FAIL
    component = "cable"
    remedy = "clean and reseat the cable, then replace it"
    absent = "no Omni-Path adapter"

    def look(self, host: Host) -> Iterable[Result]:
        if not any(name.startswith("hfi") for name in host.snapshot.names(INFINIBAND)):
            return
        output = host.command("opainfo")
        if instead := instead_of(self, host.name, "", output):
            yield instead
            return
        ports = dict(_ports(output.text))
        if not ports:
            yield self.error(host.name, "", "opainfo names no port")
        for target, lines in ports.items():
            yield self._judged(host.name, target, lines)

    def _judged(self, host: str, target: str, lines: list[str]) -> Result:
        state = next((match[1].strip() for match in map(_STATE.match, lines) if match), "")
        if not state:
            return self.error(host, target, "opainfo does not report its state")
        if state != "Active":
            return self.failure(host, target, f"state {shortened(state)}", shortened(state), "Active")
        below = list(_below(lines))
        quality = next((match for match in map(_QUALITY.match, lines) if match), None)
        if quality is None or not any(map(_LANES.match, lines)):
            return self.error(host, target, "the output of opainfo about it is incomplete")
        if int(quality[1]) < _LEAST_QUALITY:
            below.append(f"link quality {quality[1]}{f' ({quality[2]})' if quality[2] else ''}")
        return self.failure(host, target, ", ".join(below)) if below else self.ok(host, target)


def _ports(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of each port with the name of the port, such as `hfi1_0/1`."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if head := _HEAD.match(line):
            lines = found.setdefault(f"{head[1]}/{head[2]}", [])
        lines.append(line)
    yield from found.items()


def _below(lines: Iterable[str]) -> Iterator[str]:
    """Yield a message for each property whose active value is below the enabled value."""
    words: Mapping[str, str] = {"LinkSpeed": "{} Gb/s of {}", "LinkWidth": "width {} of {}"}
    for line in lines:
        if (pair := _PAIR.match(line)) and int(pair[2]) < (most := _most(pair[3])):
            yield words[pair[1]].format(pair[2], most)
        if lanes := _LANES.match(line):
            most = _most(lanes[3])
            yield from (
                f"{side} lanes {n} of {most}" for side, n in (("tx", lanes[1]), ("rx", lanes[2])) if int(n) < most
            )


def _most(enabled: str) -> int:
    """Return the largest number in a list such as `3,4` or `25Gb`."""
    return max((int(figure) for figure in re.findall(r"\d{1,4}", enabled)), default=0)
