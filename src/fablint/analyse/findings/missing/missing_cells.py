"""NOT JUDGED findings about planned measurements that are missing, one for each component that they have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.explain.shared_ends import SharedEnd, SharedEndSearch
from fablint.analyse.observations.planned_cells import PlannedCells
from fablint.analyse.observations.samples import has_messages
from fablint.analyse.phrasing import is_resumable
from fablint.model import ComponentRef, Direction, Endpoint, EvidenceRecord, Finding, Placement, Run, State
from fablint.model.arrays import Cells, Codes, Mask
from fablint.model.component import MOST_LINKS
from fablint.text import actions as advise, evidence as seen

FEW_CELLS = 1024  # cells whose pairs of hosts are listed at a time

_Subject = tuple[tuple[ComponentRef, ...], Direction | None]


@dataclass(frozen=True)
class MissingCells:
    """Planned and measured cells of all rows whose cells are pairs, and the findings about those that are missing."""

    planned: int
    measured: int
    findings: list[Finding]


@dataclass(frozen=True)
class _Explained:
    """What other findings are about: (n,) ranks, and pairs of hosts as codes. Their missing cells are no finding."""

    ranks: Mask
    pairs: Codes

    @classmethod
    def of(cls, run: Run, placement: Placement, others: Iterable[Finding]) -> _Explained:
        """Return the hosts that failed and the pairs of hosts that could not be measured."""
        code = {name: number for number, name in enumerate(placement.hosts)}
        reported = [finding for finding in others if finding.state is not State.OK]
        hosts = {name for finding in reported if finding.component == "host" for name in finding.hosts}
        if run.state != "complete":
            hosts |= {entry.host for entry in run.facts.lost if entry.host}
        routes = {
            ends
            for finding in reported
            if finding.component == "route"
            for ends in (*finding.directions, *((b, a) for a, b in finding.directions))
        }
        pairs = [code[a] * len(code) + code[b] for a, b in routes if a in code and b in code]
        failed = np.array([code[name] for name in hosts if name in code], dtype=np.int64)
        return cls(np.isin(placement.host, failed), np.array(sorted(pairs), dtype=np.int64))

    @property
    def is_any(self) -> bool:
        """True if there are any."""
        return bool(self.ranks.any() or self.pairs.size)


def missing_cells(run: Run, placement: Placement, others: Sequence[Finding] = ()) -> MissingCells:
    """Count the planned and the measured cells of a run, and name what the missing ones have in common.

    Cells that a row which ended early has not measured yet are counted, and are no finding.

    Parameters
    ----------
    run
        The run.
    placement
        Hosts, NICs and switches of its ranks.
    others
        Findings of other stages: cells of failed hosts and of pairs that were excluded are explained by these.
    """
    explained = _Explained.of(run, placement, others)
    planned = measured = 0
    evidence: dict[_Subject, list[EvidenceRecord]] = {}
    for row in run.rows:
        if row.pattern == "world" or row.facts.schedule.retest_of or not has_messages(run, row):
            continue
        imported = run.facts.imported is not None
        finished = imported or (row.facts.state == "complete" and not run.damaged)
        cells = _RowCells.of(PlannedCells(row, placement.host, finished, imported))
        planned += cells.planned
        measured += cells.measured
        for subject, record in cells.evidence(placement, explained):
            evidence.setdefault(subject, []).append(record)
    return MissingCells(planned, measured, [_finding(run, *each) for each in evidence.items()])


@dataclass(frozen=True)
class _RowCells:
    """Numbers of cells of a row: planned, measured, and those of known pairs."""

    plan: PlannedCells
    planned: int
    measured: int
    located: int

    @classmethod
    def of(cls, plan: PlannedCells) -> _RowCells:
        measured = located = 0
        for block in plan.blocks():
            measured += int(np.count_nonzero(block.measured))
            located += int(np.count_nonzero(block.planned))
        return cls(plan, max(plan.count, located), measured, located)

    def evidence(self, placement: Placement, explained: _Explained) -> Iterator[tuple[_Subject, EvidenceRecord]]:
        """Yield the components that missing cells of the row have in common, with the evidence."""
        name, is_finished = self.plan.row.name, self.plan.finished
        if self.located > self.measured:
            search = SharedEndSearch(
                placement,
                lambda: (block.missing for block in self.plan.blocks()),
                lambda: (block.ends(block.planned) for block in self.plan.blocks()),
                explained.ranks,
                explained.pairs,
            )
            members = [member for member in search.members() if is_finished or member.is_entire]
            for same in _both_directions(members):
                yield _of_ends(name, same) if same[0].side < 2 else _between(name, same)
            if is_finished and (scattered := list(search.unexplained())):
                yield from _scattered(name, placement, scattered, self.planned)
        unlocated = self.planned - self.located
        if is_finished and not self.plan.imported and unlocated > 0 and not explained.is_any:
            record = seen.missing_unlocated(unlocated, self.planned).measured_in(name)
            yield ((ComponentRef(kind="config", title="missing measurements"),), None), record


def _both_directions(members: Iterable[SharedEnd]) -> list[list[SharedEnd]]:
    """Return lists of the members about the same components, in one direction or in both."""
    groups: dict[tuple[frozenset[Endpoint], ...], list[SharedEnd]] = defaultdict(list)
    for member in members:
        groups[tuple(frozenset(component.ends) for component in member.components)].append(member)
    return list(groups.values())


def _of_ends(row: str, members: Sequence[SharedEnd]) -> tuple[_Subject, EvidenceRecord]:
    """Return hosts, NICs or switches with missing cells, and the evidence."""
    first = members[0]
    direction: Direction = "both" if len(members) > 1 else ("tx", "rx")[first.side]
    record = seen.missing_of_end(
        direction="tx" if first.side == 0 else "rx",
        several=len(first.components) > 1,
        of_hosts=first.components[0].kind in ("switch", "group"),
        outward=first.outward,
        partners=first.partners if direction != "both" else (),
        **_counts(first),
    ).measured_in(row)
    return (first.components, direction), record


def _between(row: str, members: Sequence[SharedEnd]) -> tuple[_Subject, EvidenceRecord]:
    """Return two switches or groups with missing cells between them, and the evidence."""
    component = members[0].components[0]
    sender, receiver = (end.label for end in component.ends)
    directed = len(members) == 1 and sender != receiver
    record = seen.missing_between(sender=sender, receiver=receiver, **_counts(members[0])).measured_in(row)
    return ((component.model_copy(update={"directed": directed}),), None), record


def _counts(member: SharedEnd) -> seen.MissingFields:
    missing, planned = member.counts
    opposite, opposite_planned = member.opposite
    return {"missing": missing, "planned": planned, "opposite": opposite, "opposite_planned": opposite_planned}


def _scattered(
    row: str, placement: Placement, cells: Sequence[Cells], planned: int
) -> Iterator[tuple[_Subject, EvidenceRecord]]:
    """Yield the pairs of hosts whose missing cells have no component in common, if there are any."""
    missing = sum(sender.size for sender, _ in cells)
    if not missing:
        return
    pairs: set[tuple[int, int]] = set()
    parts = ((ends, slice(at, at + FEW_CELLS)) for ends in cells for at in range(0, ends[0].size, FEW_CELLS))
    for ends, part in parts:
        pairs |= set(zip(*(placement.host[end[part]].tolist() for end in ends), strict=True))
        if len(pairs) > MOST_LINKS:
            break
    components: tuple[ComponentRef, ...] = (ComponentRef(kind="config", title="scattered measurements"),)
    if len(pairs) <= MOST_LINKS:
        named = ([placement.hosts[end] for end in pair] for pair in sorted(pairs))
        components = tuple(ComponentRef.of("route", *pair, directed=True) for pair in named)
    yield (components, None), seen.missing_scattered(missing, planned).measured_in(row)


def _finding(run: Run, subject: _Subject, evidence: Sequence[EvidenceRecord]) -> Finding:
    """Return the finding about components with missing cells; evidence that is equal in several rows names them all."""
    components, direction = subject
    records: list[EvidenceRecord] = []
    for record in evidence:
        same = next((at for at, other in enumerate(records) if other.measured_in(record.row) == record), None)
        if same is None:
            records.append(record)
        else:
            records[same] = record.model_copy(update={"row": f"{records[same].row}, {record.row}"})
    if seen.missing_of_end.among(evidence):
        steps = advise.inspect_unmeasured(*components)
    elif seen.missing_between.among(evidence):
        steps = advise.inspect_unmeasured_path(*components)
    else:
        steps = advise.measure_missing(resumable=is_resumable(run))
    return Finding(
        state=State.NOT_JUDGED,
        components=components,
        direction=direction,
        evidence=tuple(records),
        next_step=advise.resume() + steps,
    )
