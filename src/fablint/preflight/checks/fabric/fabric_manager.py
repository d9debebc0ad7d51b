"""Checks of Slingshot's fabric manager, where preflight runs on it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from fablint.model.names import switch_name
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.checks.fabric.fabric_tools import FABRIC, FabricCheck, requested_hosts
from fablint.preflight.fleet import Fleet
from fablint.text.sanitise import shortened

_FAILURE = re.compile(r"FAILURE: Node:\s*(\S{1,80})\s+(\S.*)")
_COUNTS = re.compile(r"failure_computes:\s*(\d{1,7})")
_TEXT = re.compile(r"(?:device|dev)\s+(\S{1,20})\s+(.*?)(?:\s*Administrator is expected.*)?$")
_TOTAL = re.compile(r"(Edge|Fabric|Ports Reported|Fully Synchronized Switches):\s*(\d{1,7}) / (\d{1,7})\s*$")
_ONLINE = re.compile(r"(Edge|Fabric) Total:\s*(\d{1,7}) Online:\s*(\d{1,7}),")
_PORT = re.compile(r"(Edge|Fabric):\s*(x\d{1,4}c\d{1,2}r\d{1,3})(j\d{1,3}(?:p\d)?)\s*$")
_HEALTH = re.compile(r"(Runtime|Configuration|Traffic|Security):\s*(\w{1,30})\s*$")


class FmnHealth(FabricCheck):
    id = "tool.fmn.health"
    what = "the fabric manager's report on the hosts' Slingshot NICs"
    source = "fmn-update-compute-hsn-health, on the fabric manager"
    rule = "no failure, and every counted failure is named"
    severity = Severity.FAIL
    component = "nic"
    root = True
    remedy = "check the NIC, its cable, or its algorithmic MAC address, as the message indicates"
    program = "fmn-update-compute-hsn-health"

    def look(self, fleet: Fleet, text: str) -> list[Result]:
        failures = list(dict.fromkeys(_failures(text)))
        counted = _COUNTS.search(text)
        if counted is None:
            return [self.error(FABRIC, "", "the summary is missing from the output")]
        every = requested_hosts(fleet)
        results = [self._failed(*failure) for failure in failures if failure[0] in every or not every]
        named = {host for host, _, _ in failures}
        unnamed = int(counted[1]) - len(named)
        if unnamed > 0:
            results.append(self.error(FABRIC, "", f"{counted[1]} hosts fail, but only {len(named)} are named"))
        for host in sorted(every - named):
            results.append(self.skip(host, "", "not all failures are named") if unnamed > 0 else self.ok(host))
        return results

    def _failed(self, host: str, nic: str, words: str) -> Result:
        say = self.warning if "unknown" in words.lower() else self.failure  # it may be the management network
        return say(host, nic, words)


def _failures(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield host, NIC and message of each failure."""
    for match in map(_FAILURE.match, text.splitlines()):
        if match:
            detail = _TEXT.match(match[2])
            nic, message = (detail[1], detail[2]) if detail else ("", match[2])
            yield match[1].removesuffix("-nmn"), nic, shortened(message, 120)


class FmnStatus(FabricCheck):
    id = "tool.fmn.status"
    what = "ports of Slingshot's switches, as the fabric manager sees them"
    source = "fmn-show-status, on the fabric manager"
    rule = "all online, and the fabric is healthy"
    severity = Severity.WARN
    component = "link"
    root = True
    remedy = "check the ports that are named; show-flaps and fmctl report details"
    program = "fmn-show-status"

    def look(self, fleet: Fleet, text: str) -> list[Result]:
        lines = [line.strip() for line in text.splitlines()]
        down = [match for match in map(_PORT.match, lines) if match]
        found = [self.failure(switch_name(one[2]), one[3], f"{one[1].lower()} link is down") for one in down]
        named = Counter(one[1] for one in down)
        totals = [(match[1], int(match[2]), int(match[3])) for match in map(_TOTAL.match, lines) if match]
        totals += [(match[1], int(match[3]), int(match[2])) for match in map(_ONLINE.match, lines) if match]
        if not totals:
            return [self.error(FABRIC, "", "the output has no totals")]
        for kind, online, every in totals:
            if every - online > (named.total() if kind == "Ports Reported" else named[kind]):
                what = f"{kind} ports online" if kind in ("Edge", "Fabric") else kind
                found.append(self.failure(FABRIC, "", f"{what.lower()}: {online} of {every}", online, every))
        for match in map(_HEALTH.match, lines):
            if match and match[2] != "HEALTHY":
                found.append(self.failure(FABRIC, "", f"{match[1].lower()}: {match[2]}", match[2], "HEALTHY"))
        return found
