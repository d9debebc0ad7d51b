"""Triage of the hosts after a launch failed: which hosts cannot be measured, and the findings about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fablint.errors import IncompleteError, StoppedError, UsageError
from fablint.model import ComponentRef, Finding, RowSpec, Slots, State
from fablint.model.component import cause, in_series
from fablint.model.verdict import advise, seen
from fablint.text.evidence_sentences import sentences
from fablint.workflows import measurement
from fablint.workflows.context import Context

Entry = Mapping[str, Any]  # of a run's `lost`: rank, host, round, partner, reason

# Asks hosts again; returns a finding for each host that cannot be measured any more.
Look = Callable[[Collection[str]], Mapping[str, Finding]]

TRIAL_WATCHDOG_S = 10.0
_TRIAL = (
    RowSpec("latency", sizes=(8,), samples=5),
    RowSpec("bandwidth", sizes=(64 << 10,), window=2, warmup=(0, 0), samples=1),
)


@dataclass
class HostTriage:
    """Hosts that cannot be measured, and pairs of hosts that stall with each other but not with other hosts."""

    context: Context
    look: Look
    failed_hosts: dict[str, Finding] = field(default_factory=dict)
    failed_pairs: dict[frozenset[str], Finding] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        """Findings on failed hosts, then on failed pairs."""
        return [*self.failed_hosts.values(), *self.failed_pairs.values()]

    def find_failed(self, present: Sequence[str], entries: Sequence[Entry], partners: Sequence[str], why: str) -> bool:
        """Find the hosts that ended a launch; False where no further host or pair of hosts is found.

        Hosts that do not answer have failed. Where all answer, hosts have failed whose ranks the launcher saw die.
        Else each stalled host is retested against two healthy hosts.

        Parameters
        ----------
        present
            Hosts that took part.
        entries
            Ranks that failed, from the run's attribute `lost`.
        partners
            Host with which each of these was measured, empty where there was none.
        why
            What is known, for the user.
        """
        before = {*self.failed_hosts, *self.failed_pairs}
        note = self.context.progress.note
        note(f"fablint: {why}: looking for the host")
        silent = {host: finding for host, finding in self.look(present).items() if host not in self.failed_hosts}
        if silent and len(silent) == len(present):  # not the hosts are faulty: the job has ended, for example
            note(f"fablint: no host answers any more: {sentences(next(iter(silent.values())).evidence)}")
            return False
        self.failed_hosts |= silent
        if not silent:
            for entry in entries:
                is_death = entry.get("round") is None and entry.get("partner") is None
                if is_death and entry["host"] in present:
                    self.failed_hosts.setdefault(entry["host"], _died(entry))
        if {*self.failed_hosts, *self.failed_pairs} == before:
            self._retest([(entry["host"], other) for entry, other in zip(entries, partners, strict=True)], present)
        new = [
            finding for key, finding in [*self.failed_hosts.items(), *self.failed_pairs.items()] if key not in before
        ]
        self._say(new)
        return bool(new)

    def exclude(self, hosts: Mapping[str, Finding], paths: Mapping[frozenset[str], Finding]) -> None:
        """Exclude hosts and pairs of hosts that were found by other means."""
        self.failed_hosts |= hosts
        self.failed_pairs |= paths
        self._say([*hosts.values(), *paths.values()])

    def _say(self, new: Sequence[Finding]) -> None:
        for finding in new:
            self.context.progress.note(
                f"fablint: {finding.component} {finding.name} is excluded: {sentences(finding.evidence)}"
            )

    def _retest(self, pairs: Sequence[tuple[str, str]], present: Sequence[str]) -> None:
        """Retest each stalled host against two healthy hosts; a host that stalls with both is marked failed."""
        suspects = [name for name in dict.fromkeys(name for pair in pairs for name in pair) if name in present]
        healthy = [host for host in present if host not in suspects]
        if not healthy:
            return
        stalled = [name for name in suspects if not self._is_working(healthy[0], name)]
        if stalled and len(healthy) > 1:
            again = [name for name in stalled if not self._is_working(healthy[1], name)]
            stalled = again or ([] if self._is_working(healthy[1], healthy[0]) else [healthy[0]])
        for name in stalled:
            self.failed_hosts[name] = _stall_of_host(name, [host for host in healthy[:2] if host != name])
        if not stalled:
            for pair in (pair for pair in pairs if all(name in present for name in pair)):
                self.failed_pairs[frozenset(pair)] = _stall_of_pair(*pair)

    def _is_working(self, one: str, other: str) -> bool:
        """Return whether these two hosts exchange small and large messages."""
        from fablint.plan import plan_of

        trial = [replace(row, transport=self.context.trial_transport) for row in _TRIAL]
        plan = replace(plan_of(trial, 2), slots=(Slots(one, 1), Slots(other, 1)))
        system = self.context.system
        with system.temporary_folder(system.home_folder("scratch")) as folder:
            try:
                options = ["--watchdog", f"{TRIAL_WATCHDOG_S:g}"]
                measured = measurement.measure(self.context, plan, folder / "trial.run", options)
            except StoppedError:
                raise
            except (IncompleteError, UsageError):
                return False
            return not measured.error and measured.run.state == "complete"


def _died(entry: Entry) -> Finding:
    host = entry["host"]
    return Finding(
        state=State.SUSPECT,
        components=(ComponentRef.of("host", host),),
        evidence=(seen("rank_died", reason=entry["reason"]),),
        ambiguity_group=(cause("a process that was killed from outside"),),
        next_step=advise("inspect_system_log", ComponentRef.of("host", host)),
    )


def _stall_of_host(host: str, partners: Sequence[str]) -> Finding:
    others = " and with ".join(partners)
    return Finding(
        state=State.FAULT,
        components=(ComponentRef.of("host", host),),
        evidence=(seen("stalled_host", partners=others),),
        ambiguity_group=in_series(host),
        next_step=advise("compare_mtu", ComponentRef.of("host", host)),
    )


def _stall_of_pair(one: str, other: str) -> Finding:
    return Finding(
        state=State.SUSPECT,
        components=(ComponentRef.of("route", one, other),),
        evidence=(seen("stalled_pair"),),
        next_step=advise("inspect_path_mtu"),
    )
