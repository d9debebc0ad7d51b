"""States of hosts as reported by the scheduler: idle, busy, drained (with the reason), down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from fablint.cluster.host_names import is_host
from fablint.cluster.schedulers.pbs_job import loaded
from fablint.model import HostState
from fablint.model.host_name import HostNames
from fablint.system import System

Word = Literal["idle", "busy", "drained", "down", "unknown"]

_SLURM: dict[str, Word] = {
    **dict.fromkeys(
        ("allocated", "alloc", "mixed", "mix", "completing", "comp", "reserved", "resv", "planned"), "busy"
    ),
    **dict.fromkeys(("plnd", "blocked", "block", "perfctrs"), "busy"),
    **dict.fromkeys(("drained", "drain", "draining", "drng", "maint", "reboot", "reboot_issued", "inval"), "drained"),
    **dict.fromkeys(("down", "fail", "failing", "error", "powered_down", "powering_down", "no_respond"), "down"),
    "idle": "idle",
}
_SUFFIX: dict[str, tuple[Word, str]] = {  # sinfo(1), NODE STATE CODES; `~ # % !` are about power only
    "*": ("down", "does not respond"),
    "$": ("drained", "reserved for maintenance"),
    "@": ("drained", "waits for a reboot"),
    "^": ("drained", "reboots"),
    "-": ("busy", ""),
}
_PBS: dict[str, Word] = {
    "free": "idle",
    **dict.fromkeys(("job-busy", "job-exclusive", "resv-exclusive", "busy"), "busy"),
    **dict.fromkeys(("provisioning", "wait-provisioning"), "busy"),
    **dict.fromkeys(("offline", "maintenance"), "drained"),
    **dict.fromkeys(("down", "sleep", "unresolvable"), "down"),
}
_WORST: tuple[Word, ...] = ("down", "drained", "busy", "unknown", "idle")


def host_states(system: System, hosts: Sequence[str] = ()) -> list[HostState]:
    """State of `hosts` in their order, or of all hosts if none are given; [] without a scheduler.

    A host that the scheduler does not list, or all of them if it does not answer, are `unknown` with the reason.
    """
    if system.which("sinfo"):  # Slurm installs its own pbsnodes
        done = system.run(["sinfo", "-h", "-N", "-o", "%N|%T|%E"], timeout_s=30)
        states, name = parse_sinfo(done.output), "Slurm"
    elif system.which("pbsnodes"):
        done = system.run(["pbsnodes", "-a", "-F", "json"], timeout_s=30)
        states, name = parse_pbsnodes(done.output), "PBS"
    else:
        return []
    if not hosts:
        return states
    trouble = next(iter(done.errors.splitlines()), f"exit status {done.status}")
    missing = f"{name} does not know it" if done.status == 0 else f"{name} does not answer: {trouble}"
    roster = HostNames([state.host for state in states], complete=True)
    by_name = {state.host: state for state in states}
    by_host = ((host, by_name.get(roster.find(host) or "")) for host in hosts)
    return [
        HostState(host, state.state, state.reason) if state else HostState(host, "unknown", missing)
        for host, state in by_host
    ]


def parse_sinfo(text: str) -> list[HostState]:
    """States in the output of `sinfo -h -N -o '%N|%T|%E'`: a line per host and partition."""
    return _merged(state for line in text.splitlines() if (state := _sinfo_line(line)))


def _sinfo_line(line: str) -> HostState | None:
    host, bar, details = line.partition("|")
    word, _, reason = details.partition("|")
    host, word, reason = host.strip(), word.strip().lower(), reason.strip()
    if not bar or not is_host(host):
        return None
    match = re.fullmatch(r"([a-z_+]*)(.*)", word)
    base, suffixes = (match[1].partition("+")[0], match[2]) if match else (word, "")
    state = _SLURM.get(base, "unknown")
    reason = "" if reason in ("none", "(null)") else reason
    for suffix in suffixes:
        replacement, why = _SUFFIX.get(suffix, (state, ""))
        if state in ("idle", "busy"):
            state, reason = replacement, reason or why
    return HostState(host, state, reason if state in ("drained", "down", "unknown") else "")


def parse_pbsnodes(text: str) -> list[HostState]:
    """States in the output of `pbsnodes -a -F json`: an entry per vnode; a host has the worst state of its vnodes."""
    nodes = loaded(text).get("nodes")
    entries = nodes.items() if isinstance(nodes, dict) else ()
    return _merged(state for name, properties in entries if (state := _vnode(name, properties)))


def _vnode(name: str, properties: object) -> HostState | None:
    if not isinstance(properties, dict):
        return None
    resources = properties.get("resources_available")
    host = str((resources.get("host") if isinstance(resources, dict) else None) or name)
    if not is_host(host):
        return None
    words = [_PBS.get(word.strip(), "unknown") for word in str(properties.get("state", "")).lower().split(",")]
    state = min(words, key=_WORST.index)
    if state == "idle" and properties.get("jobs"):
        state = "busy"  # `free` means that it has free CPUs
    comment = " ".join(str(properties.get("comment") or "").split())
    return HostState(host, state, comment if state in ("drained", "down", "unknown") else "")


def _merged(states: Iterable[HostState]) -> list[HostState]:
    """Each host once, in its worst state."""
    worst: dict[str, HostState] = {}
    for state in states:
        before = worst.get(state.host)
        if before is None or _WORST.index(state.state) < _WORST.index(before.state):
            worst[state.host] = state
    return list(worst.values())
