"""Checks of Slingshot's fabric manager, where preflight runs on it."""

from __future__ import annotations

from collections import Counter

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.fleet import Fleet
from fablint.preflight.judges import fabric_tool
from fablint.preflight.judges.fabric_tools import FABRIC, requested_hosts
from fablint.snapshot.parsers.fabric_manager_tools import counted_failures, fabric_status, nic_failures


def _fmn_health(check: Check, fleet: Fleet, text: str) -> list[Result]:
    failures = list(dict.fromkeys(nic_failures(text)))
    counted = counted_failures(text)
    if counted is None:
        return [check.error(FABRIC, "", "the summary is missing from the output")]
    requested = requested_hosts(fleet)
    results = [_failed(check, *failure) for failure in failures if failure[0] in requested or not requested]
    named = {host for host, _, _ in failures}
    unnamed = counted - len(named)
    if unnamed > 0:
        results.append(check.error(FABRIC, "", f"{counted} hosts fail, but only {len(named)} are named"))
    for host in sorted(requested - named):
        results.append(check.skip(host, "", "not all failures are named") if unnamed > 0 else check.ok(host))
    return results


def _failed(check: Check, host: str, nic: str, words: str) -> Result:
    say = check.warning if "unknown" in words.lower() else check.failure  # it may be the management network
    return say(host, nic, words)


FMN_HEALTH = Check(
    id="tool.fmn.health",
    what="the fabric manager's report on the hosts' Slingshot NICs",
    source="fmn-update-compute-hsn-health -n NIC, on the fabric manager",
    rule="no failure, and every counted failure is named",
    severity=Severity.FAIL,
    component="nic",
    root=True,
    remedy="check the NIC, its cable, or its algorithmic MAC address, as the message indicates",
    judge=fabric_tool("fmn-update-compute-hsn-health", _fmn_health),
)


def _fmn_status(check: Check, fleet: Fleet, text: str) -> list[Result]:
    status = fabric_status(text)
    failures = [check.failure(port.switch, port.port, f"{port.kind.lower()} link is down") for port in status.down]
    named = Counter(port.kind for port in status.down)
    if not status.totals:
        return [check.error(FABRIC, "", "the output has no totals")]
    for kind, online, total in status.totals:
        if total - online > (named.total() if kind == "Ports Reported" else named[kind]):
            what = f"{kind} ports online" if kind in ("Edge", "Fabric") else kind
            failures.append(check.failure(FABRIC, "", f"{what.lower()}: {online} of {total}", online, total))
    for kind, health in status.health:
        if health != "HEALTHY":
            failures.append(check.failure(FABRIC, "", f"{kind.lower()}: {health}", health, "HEALTHY"))
    return failures


FMN_STATUS = Check(
    id="tool.fmn.status",
    what="ports of Slingshot's switches, as the fabric manager sees them",
    source="fmn-show-status, on the fabric manager",
    rule="all online, and the fabric is healthy",
    component="link",
    root=True,
    remedy="check the ports that are named; show-flaps and fmctl report details",
    judge=fabric_tool("fmn-show-status", _fmn_status),
)
