"""Findings to act on, and the documents that hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import finding_cases
from fablint.act import HostFindings, drain_command, drains
from fablint.model import ComponentKind, Coverage, Finding, State, Verdict

HOSTS = [f"nid{number:06d}" for number in range(1001, 1009)]


def finding(
    component: ComponentKind, name: str, evidence: str = "", state: State = State.FAULT, **more: object
) -> Finding:
    return finding_cases.finding(state, component, name, evidence=evidence, **more)


MTU = [finding("config", f"{HOSTS[at]}/hsn0", "net.link.mtu: MTU 1500, 6 others 9000") for at in (2, 6)]
FLAPS = finding("nic", "nid001004/hsn1", "net.flaps: 3 in 2 h", State.SUSPECT, next_step="swap the cable")
SLOW = finding(
    "host",
    "nid001005",
    "7 of 7 partners are slow when they send to it",
    direction="rx",
    quantity="bandwidth",
    effect=-0.41,
    interval=(-0.43, -0.39),
    log10_e=51.3,
    ambiguity_group=(
        finding_cases.component("cable", "nid001005=s1"),
        finding_cases.component("port", "s1=nid001005"),
    ),
    next_step="measure it in loopback",
)
CABLE = finding("cable", "s2=s5", "128 of 128 pairs slow", quantity="bandwidth", effect=-0.19)
SWITCH = finding("switch", "s7", "all of its hosts are slow")
EVERY = [*MTU, FLAPS, SLOW, CABLE, SWITCH]


def commands(findings: Sequence[Finding], scheduler: str = "slurm", hosts: Sequence[str] | None = HOSTS) -> list[str]:
    return [drain_command(one, scheduler) for one in drains(HostFindings(findings, hosts))]


def preflight(marks: dict[str, dict[str, str]], count: int = 20, silent: Sequence[str] = ()) -> str:
    """What preflight prints of n1, n2, ...: outcomes by check and host, PASS where nothing is named."""
    hosts = [f"n{number}" for number in range(1, count + 1)]
    results = [
        {"host": host, "check": check, "outcome": outcomes.get(host, "PASS")}
        for check, outcomes in marks.items()
        for host in hosts
        if host not in silent
    ]
    states = {"WARN": State.SUSPECT, "FAIL": State.FAULT}
    found = [
        finding("host", one["host"], f"{one['check']}: odd", states[one["outcome"]])
        for one in results
        if one["outcome"] in states
    ]
    found += [finding("host", ",".join(silent), "no answer: Permission denied")] if silent else []
    unfit = {one["host"]: "x" for one in results if one["outcome"] == "FAIL"} | dict.fromkeys(silent, "no answer")
    named = [one.model_dump(mode="json") for one in found]
    document = {"hosts": hosts, "silent": dict.fromkeys(silent, "x"), "unfit": unfit}
    return json.dumps({"format": 1, **document, "findings": named, "results": results})


def facts(findings: Sequence[Finding] = EVERY, hosts: Sequence[str] | None = HOSTS) -> str:
    """As preflight prints them."""
    return json.dumps({"format": 1, "hosts": hosts, "findings": [one.model_dump(mode="json") for one in findings]})


def verdict(findings: Sequence[Finding] = EVERY) -> str:
    nothing = Coverage(pairs_planned=0, pairs_measured=0, hosts=8, hosts_judged=8)
    return Verdict(verdict="fault", exit_code=1, findings=tuple(findings), coverage=nothing).model_dump_json()
