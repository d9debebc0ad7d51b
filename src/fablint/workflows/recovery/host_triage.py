"""The hosts of a check: who of them was lost, how that is found out, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fablint.errors import IncompleteError, StoppedError, UsageError
from fablint.model import Finding, Slots, State
from fablint.workflows import flow

Entry = Mapping[str, Any]  # of a run's `lost`: rank, host, round, partner, reason

# Asks hosts how they are: those that cannot be measured now, and why.
Look = Callable[[Collection[str]], Mapping[str, Finding]]

TRIAL_WATCHDOG_S = 10.0
_TRIAL = "latency --sizes 8 --samples 5\nbandwidth --sizes 64K --window 2 --warmup 0 --samples 1\n"


@dataclass
class Crew:
    """Who is still there. `apart` are pairs of hosts that hang with each other but not with others."""

    around: flow.Surroundings
    look: Look
    lost: dict[str, Finding] = field(default_factory=dict)  # by host
    apart: dict[frozenset[str], Finding] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        return [*self.lost.values(), *self.apart.values()]

    def find_out(self, present: Sequence[str], entries: Sequence[Entry], partners: Sequence[str], why: str) -> bool:
        """Find the hosts that ended a launch; False where nothing new is found.

        First the hosts are asked; then ranks that the launcher saw die are believed; then those who hung are measured
        with somebody who did not.

        Args:
            present: hosts that took part.
            entries: what the run says about lost ranks.
            partners: the host with whom each of them was measured, empty where there was none.
            why: what is known, for people.
        """
        before = {*self.lost, *self.apart}
        note = self.around.progress.note
        note(f"fablint: {why}: looking for the host")
        silent = {host: finding for host, finding in self.look(present).items() if host not in self.lost}
        if silent and len(silent) == len(
            present
        ):  # not they are at fault: the way to them is gone, as when the job has ended
            note(f"fablint: no host answers any more: {next(iter(silent.values())).evidence}")
            return False
        self.lost |= silent
        if not silent:
            for entry in entries:
                if entry.get("round") is None and entry["host"] in present:
                    self.lost.setdefault(entry["host"], _died(entry))
        if {*self.lost, *self.apart} == before:
            self._try([(entry["host"], other) for entry, other in zip(entries, partners, strict=True)], present)
        found = [finding for key, finding in [*self.lost.items(), *self.apart.items()] if key not in before]
        self._say(found)
        return bool(found)

    def leave_out(self, hosts: Mapping[str, Finding], paths: Mapping[frozenset[str], Finding]) -> None:
        """Leave out hosts, and paths between two, that were found by others than this crew."""
        self.lost |= hosts
        self.apart |= paths
        self._say([*hosts.values(), *paths.values()])

    def _say(self, found: Sequence[Finding]) -> None:
        for finding in found:
            self.around.progress.note(f"fablint: {finding.component} {finding.name} is left out: {finding.evidence}")

    def _try(self, pairs: Sequence[tuple[str, str]], present: Sequence[str]) -> None:
        """Measure each of those who hung with two who did not: who hangs with both is lost."""
        suspects = [name for name in dict.fromkeys(name for pair in pairs for name in pair) if name in present]
        healthy = [host for host in present if host not in suspects]
        if not healthy:
            return
        hung = [name for name in suspects if not self._work(healthy[0], name)]
        if hung and len(healthy) > 1:
            again = [name for name in hung if not self._work(healthy[1], name)]
            hung = again or ([] if self._work(healthy[1], healthy[0]) else [healthy[0]])
        for name in hung:
            self.lost[name] = _hangs(name, [host for host in healthy[:2] if host != name])
        if not hung:
            for pair in (pair for pair in pairs if all(name in present for name in pair)):
                self.apart[frozenset(pair)] = _hang_together(*pair)

    def _work(self, one: str, other: str) -> bool:
        """Do these two exchange small and large messages?"""
        from fablint.plan import parse_plan

        plan = replace(parse_plan(_TRIAL, 2, "trial"), slots=(Slots(one, 1), Slots(other, 1)))
        system = self.around.system
        with system.temporary_folder(system.home_folder("scratch")) as folder:
            try:
                options = ["--watchdog", f"{TRIAL_WATCHDOG_S:g}"]
                measured = flow.measure(self.around, plan, folder / "trial.run", options)
            except StoppedError:
                raise
            except (IncompleteError, UsageError):
                return False
            return not measured.error and measured.run.state == "complete"


def _died(entry: Entry) -> Finding:
    host = entry["host"]
    return Finding(
        state=State.SUSPECT,
        component="host",
        name=host,
        evidence=f"a rank on it {entry['reason']} in the middle of the measurement",
        alternatives=("a process that was killed from outside",),
        next_step=f"see the system log of {host} (out of memory, hardware errors), then measure it again",
    )


def _hangs(host: str, partners: Sequence[str]) -> Finding:
    with_whom = " and with ".join(partners)
    return Finding(
        state=State.FAULT,
        component="host",
        name=host,
        evidence=f"messages of 64 KiB do not arrive: the measurement hung, and again with {with_whom}",
        alternatives=(f"NIC of {host}", f"cable of {host}", f"switch port of {host}"),
        next_step=f"compare the MTU of {host} and of its switch port with the others, then the link's error counters",
    )


def _hang_together(one: str, other: str) -> Finding:
    return Finding(
        state=State.SUSPECT,
        component="route",
        name=f"{one}={other}",
        evidence="the two hung with each other, but not with others",
        next_step="see the routes and the MTU between the two, and the address tables of their switches",
    )
