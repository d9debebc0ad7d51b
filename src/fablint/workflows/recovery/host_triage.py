"""Triage of the hosts after a launch failed: which hosts cannot be measured, and the findings about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fablint.model import ComponentRef, Finding, Note, State
from fablint.model.component import cause, in_series
from fablint.model.facts.failed_rank import FailedRank
from fablint.model.names import fold
from fablint.model.verdict import EvidenceRecord
from fablint.text import actions as advise, evidence as seen, notes as noted
from fablint.text.evidence_sentences import sentences
from fablint.workflows.recovery.pair_trials import SMALL, PairTrials, StallCause, TrialFailure, cause_of

# Asks hosts again; returns a finding for each host that cannot be measured any more.
Look = Callable[[Collection[str]], Mapping[str, Finding]]

MOST_REPEATS = 2  # launches of a check that are repeated because no fault was found
_NOT_NAMED = "any host"  # of a launch that names none
_MOST_TRIED = 4  # pairs of hosts of one launch that are tried again


@dataclass
class HostTriage:
    """Hosts that cannot be measured, and pairs of hosts that stall with each other but not with other hosts."""

    trials: PairTrials
    look: Look
    failed_hosts: dict[str, Finding] = field(default_factory=dict)
    failed_pairs: dict[frozenset[str], Finding] = field(default_factory=dict)
    repeats: int = 0  # launches that are repeated
    notes: list[Note] = field(default_factory=list)  # why
    _named: set[str] = field(default_factory=set)  # hosts of ranks that failed in a launch that is repeated
    _stalled: set[frozenset[str]] = field(default_factory=set)  # hosts that stalled there with each other

    @property
    def findings(self) -> list[Finding]:
        """Findings on failed hosts, then on failed pairs."""
        return [*self.failed_hosts.values(), *self.failed_pairs.values()]

    def find_failed(
        self,
        present: Sequence[str],
        entries: Sequence[FailedRank],
        partners: Sequence[str],
        why: str,
        *,
        has_started: bool = True,
    ) -> bool:
        """Find the hosts that ended a launch; False where no further launch is of use.

        Hosts that do not answer have failed. Where all answer, each stalled host is retested against two healthy hosts.
        A launch in which no fault is found is repeated, with all hosts, also where it names no host: its launcher may
        have been killed. A host has failed whose rank the launcher sees die again, or that takes part in all stalls.

        Parameters
        ----------
        present
            Hosts that took part.
        entries
            Ranks that failed, from the run's facts `lost`.
        partners
            Host of the rank that waited for each of these, empty where the launcher saw it die.
        why
            What is known, for the user.
        has_started
            Whether the ranks started: hosts that prevent that are not found by a repeated launch.
        """
        before = {*self.failed_hosts, *self.failed_pairs}
        note = self.trials.context.progress.note
        note(f"fablint: {why}: looking for the host")
        silent = {host: finding for host, finding in self.look(present).items() if host not in self.failed_hosts}
        if silent and len(silent) == len(present):  # not the hosts are faulty: the job has ended, for example
            note(f"fablint: no host answers any more: {sentences(next(iter(silent.values())).evidence)}")
            return False
        self.failed_hosts |= silent
        deaths = [entry for entry in entries if _is_death(entry) and entry.host in present]
        is_tried = bool(deaths) or bool(silent) or self._retest(entries, partners, present)
        if deaths and not silent:
            self._judge_deaths(deaths)
        new = [
            finding for key, finding in [*self.failed_hosts.items(), *self.failed_pairs.items()] if key not in before
        ]
        self._say(new)
        if not entries:
            return bool(new) or (has_started and self._repeat([_NOT_NAMED], [_NOT_NAMED], why))
        return bool(new) or (is_tried and self._repeat([entry.host or "" for entry in entries], present, why))

    def exclude(self, hosts: Mapping[str, Finding], paths: Mapping[frozenset[str], Finding]) -> None:
        """Exclude hosts and pairs of hosts that were found by other means."""
        self.failed_hosts |= hosts
        self.failed_pairs |= paths
        self._say([*hosts.values(), *paths.values()])

    def _say(self, new: Sequence[Finding]) -> None:
        for finding in new:
            self.trials.context.progress.note(
                f"fablint: {finding.component} {finding.name} is excluded: {sentences(finding.evidence)}"
            )

    def _judge_deaths(self, deaths: Sequence[FailedRank]) -> None:
        """Mark hosts failed whose ranks died twice; a process that is killed once says nothing about its host."""
        for entry in deaths:
            host = entry.host or ""
            if host in self._named or self.repeats == MOST_REPEATS:
                self.failed_hosts.setdefault(host, _died(host, entry.reason))

    def _repeat(self, hosts: Sequence[str], present: Sequence[str], why: str) -> bool:
        """Repeat a launch; False where as many have been repeated, or the same hosts failed before."""
        fresh = [host for host in dict.fromkeys(hosts) if host in present and host not in self._named]
        if not fresh or self.repeats == MOST_REPEATS:
            return False
        self.repeats += 1
        self._named.update(fresh)
        self.notes.append(noted.repeated_launch(why))
        self.trials.context.progress.note(f"fablint: no fault is found on {fold(fresh)}: the launch is repeated")
        return True

    def _retest(self, entries: Sequence[FailedRank], partners: Sequence[str], present: Sequence[str]) -> bool:
        """Retest each stalled host against two healthy hosts; a host that stalls with both is marked failed.

        Pairs of hosts that stall with each other only are kept apart. Returns False where no host could be retested.
        """
        pairs = list(dict.fromkeys((entry.host or "", other) for entry, other in zip(entries, partners, strict=True)))[
            :_MOST_TRIED
        ]
        if self._stalls_inside({host for host, other in pairs if host == other and host in present}):
            return True
        references = _references(pairs, present)
        failures = self._failures({name: hosts[0] for name, hosts in references.items()}, present)
        if any(len(references[name]) > 1 for name in failures):
            again = self._failures({name: references[name][1] for name in failures}, present)
            swapped = {references[name][0]: references[name][1] for name in failures}
            failures = again or self._failures(swapped, present)
        for name, failure in failures.items():
            tried = references.get(name) or [hosts[1] for hosts in references.values() if hosts[0] == name][:1]
            self.failed_hosts[name] = _stall_of_host(name, tried, failure)
        if references and not failures:
            self._retest_pairs([pair for pair in pairs if {*pair} <= {*present}], entries, partners, present)
        return bool(references)

    def _stalls_inside(self, hosts: Collection[str]) -> bool:
        """Retest hosts whose own ranks stalled with each other."""
        failures = self._failures({host: host for host in hosts}, sorted(hosts))
        for name, failure in failures.items():
            finding = _stall_of_host(name, ["another rank on it"], failure)
            step = advise.inspect_system_log(*finding.components)
            self.failed_hosts[name] = finding.model_copy(update={"ambiguity_group": (), "next_step": step})
        return bool(failures)

    def _retest_pairs(
        self,
        pairs: Sequence[tuple[str, str]],
        entries: Sequence[FailedRank],
        partners: Sequence[str],
        present: Sequence[str],
    ) -> None:
        """Keep hosts apart that stall with each other again, or did in a launch before; each works with others."""
        stalled = {frozenset(pair): pair for pair in pairs}
        common = frozenset.intersection(*stalled, *self._stalled) if stalled and self._stalled else frozenset()
        if len(common) == 1 and len(self._stalled.union(stalled)) > 1:
            (host,) = common
            others = sorted(frozenset.union(*stalled, *self._stalled) - common, key=present.index)
            self.failed_hosts[host] = _stall_at_times(host, others)
            return
        for key, pair in stalled.items():
            ends = sorted(pair, key=present.index)
            if len(key) > 1 and (key in self._stalled or self.trials.failure(ends[0], ends[1]) is not None):
                reports = [
                    (entry, partner)
                    for entry, partner in zip(entries, partners, strict=True)
                    if {entry.host, partner} == key
                ]
                self.failed_pairs[key] = _stall_of_pair(*pair, cause_of(reports))
        self._stalled.update(stalled)

    def _failures(self, references: Mapping[str, str], present: Sequence[str]) -> dict[str, TrialFailure]:
        """Try each host with its reference host, in the order of their ranks; return the failures by host."""
        failures = {
            name: self.trials.failure(*sorted((name, reference), key=present.index))
            for name, reference in references.items()
        }
        return {name: failure for name, failure in failures.items() if failure is not None}


def _references(pairs: Sequence[tuple[str, str]], present: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return up to two healthy hosts to try each stalled host with; empty where no host is healthy.

    A connection may fail in one direction, and the ranks decide which of them requests it: a reference host is on the
    same side of the stalled host as the partner with which it stalled, if possible.
    """
    rank = {host: index for index, host in enumerate(present)}
    partner_of = {name: other for pair in pairs for name, other in (pair, pair[::-1]) if name in rank}
    healthy = [host for host in present if host not in partner_of]

    def nearest(name: str, partner: str) -> list[str]:
        is_below = rank.get(partner, -1) < rank[name]
        return sorted(healthy, key=lambda host: (rank[host] < rank[name]) != is_below)[:2]

    return {name: nearest(name, partner) for name, partner in partner_of.items()} if healthy else {}


def _is_death(entry: FailedRank) -> bool:
    """Tell whether the launcher saw the rank die. A rank that other ranks report has their partner or round."""
    return entry.round is None and entry.partner is None


def _died(host: str, reason: str) -> Finding:
    return Finding(
        state=State.SUSPECT,
        components=(ComponentRef.of("host", host),),
        evidence=(seen.rank_died(reason),),
        ambiguity_group=(cause("a process that was killed from outside"),),
        next_step=advise.inspect_system_log(ComponentRef.of("host", host)),
    )


def _stall_of_host(host: str, partners: Sequence[str], failure: TrialFailure) -> Finding:
    component = ComponentRef.of("host", host)
    stall = seen.stalled_host(
        partners=" and with ".join(partners),
        bytes=failure.size or None,
        transport=failure.transport or None,
        control=failure.control or None,
    )
    # Control messages arrive, often over the same NIC: it may be how the host is set up.
    set_up_causes = (cause("a firewall"), cause(f"the set-up of {failure.transport}")) if failure.control else ()
    if not failure.size:
        step = advise.ping_host(component)
    elif failure.size <= SMALL:
        step = advise.inspect_connections(component, failure.transport)
    else:
        step = advise.compare_mtu(component)
    return Finding(
        state=State.FAULT,
        components=(component,),
        evidence=(stall, *_reported(failure.cause)),
        ambiguity_group=(*set_up_causes, *in_series(host)),
        next_step=step,
    )


def _stall_at_times(host: str, partners: Sequence[str]) -> Finding:
    component = ComponentRef.of("host", host)
    return Finding(
        state=State.SUSPECT,
        components=(component,),
        evidence=(seen.stalled_at_times(fold(partners)),),
        ambiguity_group=in_series(host),
        next_step=advise.ping_host(component),
    )


def _stall_of_pair(item: str, other: str, stall_cause: StallCause | None) -> Finding:
    return Finding(
        state=State.SUSPECT,
        components=(ComponentRef.of("route", item, other),),
        evidence=(seen.stalled_pair(), *_reported(stall_cause)),
        next_step=advise.inspect_path_filters() if stall_cause else advise.inspect_path_mtu(),
    )


def _reported(stall_cause: StallCause | None) -> tuple[EvidenceRecord, ...]:
    """Return what a rank reports of its peer as evidence."""
    return (seen.stall_reported(host=stall_cause.host, cause=stall_cause.text),) if stall_cause else ()
