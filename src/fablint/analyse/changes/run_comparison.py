"""The comparison of a run with an older one: scopes, hosts and findings, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fablint.analyse.changes.fitted_rows import FitPair, RunResult, match_fits
from fablint.analyse.changes.host_changes import component_of, host_changes, list_units
from fablint.analyse.changes.scope_changes import scope_changes
from fablint.analyse.decide import EXIT_CODES
from fablint.analyse.settings import FEWEST_PEERS, MARGIN, Settings
from fablint.model import Diagnosis, Finding, State, VerdictWord
from fablint.model.host_name import NicRef
from fablint.model.names import fold, plural
from fablint.model.run_changes import ChangeState, FindingChange, MeasuredChange, RunChanges
from fablint.text import units


def compare_runs(old: RunResult, new: RunResult, margin: float = MARGIN) -> RunChanges:
    """Compare a run with an older one.

    Parameters
    ----------
    old, new
        Runs of the same hosts. Rows are matched by name, or else by kernel, and size; hosts and NICs by name.
    margin
        Relative loss of a quantity that is accepted, such as 0.03.

    Returns
    -------
    RunChanges
        Its verdict is `fault` if a scope or a host is WORSE, or the new run has a FAULT that the old run has not. It
        is `incomplete` if nothing is WORSE and a scope is UNDECIDED, only the old run measured a host, a run is not
        complete, or losses of more than `Settings.loss_in_scope` could hide in a host that is not OK in the new run.
        Else it is `pass`.
    """
    fits = match_fits(old, new)
    units_old, units_new = list_units(old.placement), list_units(new.placement)
    common = sorted(set(units_old) & set(units_new))
    hosts = [
        change for pair in fits for change in host_changes(pair, (units_old, units_new), common, margin, len(fits))
    ]
    scopes = [change for pair in fits for change in scope_changes(pair, len(common), margin)]
    findings = _finding_changes(old.diagnosis, new.diagnosis)
    only_old, only_new = (sorted(set(a) - set(b)) for a, b in ((units_old, units_new), (units_new, units_old)))
    notes = [*_notes((old, new), fits, common), *_imprecise(hosts, new.diagnosis)]
    verdict = _verdict([*scopes, *hosts], findings, is_complete=not (notes or only_old))
    changed = tuple(change for change in hosts if change.state in (ChangeState.WORSE, ChangeState.BETTER))
    return RunChanges(
        verdict=verdict,
        exit_code=EXIT_CODES[verdict],
        margin=margin,
        scopes=tuple(scopes),
        hosts=tuple(sorted(changed, key=lambda change: (tuple(ChangeState).index(change.state), -abs(change.change)))),
        seen=tuple(_largest(hosts)),
        findings=tuple(findings),
        hosts_compared=len({unit.host for unit in common}),
        only_old=tuple(component_of(unit).label for unit in only_old),
        only_new=tuple(component_of(unit).label for unit in only_new),
        notes=tuple(notes),
    )


def _verdict(changes: Sequence[MeasuredChange], findings: Sequence[FindingChange], *, is_complete: bool) -> VerdictWord:
    """Return the verdict on the new run."""
    states = {change.state for change in changes}
    if ChangeState.WORSE in states or any(
        finding.kind == "new" and finding.finding.state is State.FAULT for finding in findings
    ):
        return "fault"
    return "pass" if is_complete and ChangeState.UNDECIDED not in states else "incomplete"


def _largest(changes: Sequence[MeasuredChange]) -> Iterator[MeasuredChange]:
    """Yield the largest change of a host of each row, size and direction among those that are neither.

    `smallest` is the largest of all hosts.
    """
    groups: dict[tuple[str, int, str | None], list[MeasuredChange]] = {}
    for change in changes:
        groups.setdefault((change.row, change.size, change.direction), []).append(change)
    for group in groups.values():
        unchanged = [one for one in group if one.state is ChangeState.NOT_WORSE] or group
        yield replace(max(unchanged, key=lambda one: abs(one.change)), smallest=max(one.smallest for one in group))


def _imprecise(changes: Sequence[MeasuredChange], new: Diagnosis) -> list[str]:
    """Return a note on the hosts that may have losses of more than `Settings.loss_in_scope` and are not WORSE.

    The diagnosis of the new run is OK for a host only if such a loss relative to the other hosts would have been seen.
    """
    limit = Settings().loss_in_scope
    judged = {host for one in new.verdict.findings if one.state is State.OK for host in one.hosts}
    judged.update(
        host for item in changes if item.component and item.state is ChangeState.WORSE for host in item.component.hosts
    )
    hidden = {
        change.component.label
        for change in changes
        if change.smallest > limit and change.component and not judged.issuperset(change.component.hosts)
    }
    return [f"losses of more than {units.share_text(limit)} could hide: {fold(sorted(hidden))}"] if hidden else []


def _finding_changes(old: Diagnosis, new: Diagnosis) -> list[FindingChange]:
    """Return the faults and suspects of both runs; findings are the same if their components are."""
    before, after = ({one.components: one for one in _reported(diagnosis)} for diagnosis in (old, new))
    changes = [FindingChange("unchanged" if key in before else "new", one) for key, one in after.items()]
    return [*changes, *(FindingChange("gone", one) for key, one in before.items() if key not in after)]


def _reported(diagnosis: Diagnosis) -> list[Finding]:
    """Return faults, suspects and suppressed findings, the gravest of each component last."""
    reported = (State.FAULT, State.SUSPECT, State.SUPPRESSED)
    findings = [finding for finding in diagnosis.verdict.findings if finding.state in reported]
    return sorted(findings, key=lambda one: one.rank, reverse=True)


def _notes(results: Sequence[RunResult], fits: Sequence[FitPair], common: Sequence[NicRef]) -> list[str]:
    """Return what was not compared, and why: one sentence each."""
    notes = []
    for label, result in zip(("old", "new"), results, strict=True):
        if result.run.state != "complete":
            notes.append(f"the {label} run is {result.run.state}")
    if not fits:
        notes.append("no row and size is in both runs: measure both with the same options")
    for label, result in zip(("old", "new"), results, strict=True):
        rows = {getattr(pair, label).row.name for pair in fits}
        if left := sorted({fit.row for fit in result.diagnosis.fits} - rows):
            notes.append(f"{plural(len(left), 'row')} of the {label} run not compared: {fold(left)}")
    if len(common) < FEWEST_PEERS:
        notes.append(f"{plural(len(common), 'host')} in both runs: a change of a host needs {FEWEST_PEERS}")
    return notes
