"""Findings, follow-up measurements and notes about the paths between switches.

FAULT is a path that differs from its own kind, or that no design explains. Where nothing of its kind was measured, or
where messages of others may have delayed it, it is SUSPECT and measured alone; where measuring more decides nothing, it
is CONFOUNDED. A kind that is slower as a whole is a note: that is how the network was built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.candidates.crossed_components import BETWEEN_SWITCHES
from fablint.analyse.explain.paths.judgement import Judgement
from fablint.analyse.explain.paths.path_modes import Mode
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import relative, seen_in
from fablint.analyse.findings.paths.merged_findings import merge_findings
from fablint.analyse.findings.paths.path_groups import (
    Explanation,
    Path,
    both_directions,
    over_candidates,
    over_ends,
    over_links,
)
from fablint.analyse.findings.paths.path_view import PathView
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import (
    FEWEST_INDEPENDENT,
    FEWEST_VALUES,
    FOLLOW_UP_PAIRS,
    HALF,
    MOST_ISOLATED,
    POPULATION_SHARE,
)
from fablint.model import EvidenceRecord, Finding, FollowUp, Note, Placement, State
from fablint.model.arrays import Codes
from fablint.model.component import MOST_LINKS, cause, label_of
from fablint.model.verdict import Action
from fablint.text import actions as advise, evidence as seen, notes as noted
from fablint.topology.routing import Routes

_DOUBTS = {
    Judgement.ONCE: seen.path_once,
    Judgement.BESIDE: seen.path_beside,
    Judgement.LONE: seen.path_lone,
    Judgement.POPULATION: seen.path_population,
}


@dataclass(frozen=True)
class PathFindings:
    """What the views of a run say of the paths."""

    findings: tuple[Finding, ...] = ()
    follow_ups: tuple[FollowUp, ...] = ()  # pairs to be measured alone
    notes: tuple[Note, ...] = ()


def about_paths(
    views: Sequence[ViewResult], placement: Placement, routes: Routes | None, faulty: Codes, limit: float
) -> PathFindings:
    """Return what is said of the paths between switches, of each component once. `faulty`: codes of hosts at fault.

    `limit`: the loss in scope.
    """
    path_views = [
        PathView(judged, judged.paths, placement, routes, faulty, limit) for judged in views if judged.paths is not None
    ]
    findings = [finding for view in path_views for finding in (*_slow(view), *_doubtful(view), *_modes(view))]
    follow_ups = [follow_up for view in path_views for follow_up in (*_alone(view), *_splitting(view))]
    at_fault = any(case.kind in ("cable", "switch") for view in views for case in view.detections)
    undeclared = any(view.paths.declared is False for view in path_views) and not at_fault
    notes = [noted.routes_undeclared()] if undeclared else []
    return PathFindings(
        tuple(merge_findings(findings)),
        tuple(follow_ups[:MOST_ISOLATED]),
        (*notes, *(note for view in path_views for note in _notes(view))),
    )


# ------------------------------------------------------------------------------------------------ slow paths


def _slow(view: PathView) -> list[Finding]:
    """FAULT for what explains the paths that are slower than their kind."""
    slow = view.some(Judgement.SLOW)
    reasons, others = _lone(view, slow)
    entry_of = {**reasons, **slow}
    fine = {*view.some(Judgement.FINE, Judgement.DESIGN), *others}
    explanations = _explained(view, set(entry_of), fine)
    left = set(slow).difference(*(explanation.paths for explanation in explanations))
    findings = []
    for explanation in explanations:
        ends = {end for path in explanation.paths for end in path}
        if not explanation.paths & set(slow) and not any(ends & set(path) for path in left):
            continue
        entries = [entry_of[path] for path in view.paths.best if path in explanation.paths and path in entry_of]
        steady = sum(path in explanation.paths for path in slow)
        # Load that varies makes some of the paths look evenly slow, and adaptive messages choose among cables.
        is_open = 2 * steady <= len(entries) or (view.routes is not None and not view.paths.followed)
        findings.append(_finding(view, State.SUSPECT if is_open else State.FAULT, explanation, entries))
    return findings


def _lone(view: PathView, slow: Mapping[Path, int]) -> tuple[dict[Path, int], dict[Path, int]]:
    """Paths that have nothing to be compared with: those that may be the reason of slow ones, and the others.

    With known links, a slow path may cross the link that makes a lone one slow: the lone one has lost as much then.
    """
    if not slow or not view.paths.followed:
        return {}, {}
    loss = view.paths.judgements.loss
    least = HALF * min(float(loss[entry]) for entry in slow.values())
    lone = view.some(Judgement.LONE, Judgement.ONCE)
    reasons = {path: entry for path, entry in lone.items() if loss[entry] >= least}
    return reasons, {path: entry for path, entry in lone.items() if path not in reasons}


def _explained(view: PathView, slow: set[Path], fine: set[Path]) -> list[Explanation]:
    bidirectional = view.paths.levels.bidirectional
    best_paths = set(view.paths.best)
    if bidirectional:
        slow, fine, best_paths = both_directions(slow), both_directions(fine), both_directions(best_paths)
    if not slow:
        return []
    if view.paths.followed and view.routes is not None:
        over = over_links(slow, fine, view.placement, view.routes)
        if view.paths.compared or set().union(*(explanation.paths for explanation in over)) >= slow:
            return over
    if view.routes is not None and not view.paths.followed:
        return over_candidates(slow, fine, view.placement, view.routes)
    return over_ends(slow, best_paths, view.placement)


def _finding(
    view: PathView,
    state: State,
    explanation: Explanation,
    entries: Sequence[int],
    more: tuple[EvidenceRecord, ...] = (),
) -> Finding:
    judged = view.paths.judgements
    quantity = view.judged.quantity
    losses = np.array([judged.loss[entry] for entry in entries])
    lower, upper = (
        np.fmin.reduce([bound[entry] - judged.reference[entry] for entry in entries])
        if sign < 0
        else np.fmax.reduce([bound[entry] - judged.reference[entry] for entry in entries])
        for bound, sign in ((view.paths.levels.lower, -1), (view.paths.levels.upper, 1))
    )
    ends = sorted(relative(float(loss), quantity) for loss in (lower, upper) if not np.isnan(loss))
    return Finding(
        state=state,
        components=(explanation.component,),
        direction="both" if explanation.component.kind == "cable" else None,
        quantity=quantity,
        effect=relative(float(np.median(losses)), quantity),
        interval=(ends[0], ends[-1]) if ends else None,
        evidence=(*_evidence(view, entries), *more),
        ambiguity_group=explanation.series,
        next_step=_next_step(explanation, view.placement),
    )


def _evidence(view: PathView, entries: Sequence[int]) -> list[EvidenceRecord]:
    """Return how many pairs across the paths are slow, by how much, and when."""
    levels, judged, quantity = view.paths.levels, view.paths.judgements, view.judged.quantity
    pairs = sum(int(levels.pairs[entry]) for entry in entries)
    slow = 0
    for entry in entries:
        excess = levels.left[levels.entry == entry] - judged.reference[entry]
        slow += round(float((excess > judged.tolerance[entry]).mean()) * int(levels.pairs[entry]))
    loss = relative(float(np.median([judged.loss[entry] for entry in entries])), quantity)
    extra_s = [float(np.exp(levels.level[entry]) - np.exp(judged.reference[entry])) for entry in entries]
    path = seen_in(
        view.judged,
        seen.path_slow(
            slow=slow,
            pairs=pairs,
            effect=loss,
            beside=judged.beside[entries[0]].kind,
            others=judged.beside[entries[0]].paths or None,
            extra_s=float(np.median(extra_s)) if quantity == "latency" else None,
        ),
    )
    when = [judged.slow_at[entry] for entry in entries if entry in judged.slow_at]
    return [path, *when[:1]]


def _next_step(explanation: Explanation, placement: Placement) -> tuple[Action, ...]:
    """A path through a group is presumed: its cables have to be found first."""
    component = explanation.component
    if component == BETWEEN_SWITCHES:
        return advise.measure_serially()
    if component.nodes <= {*placement.switches}:
        return next_step(component)
    return advise.find_cables(component)


# ------------------------------------------------------------------------------------------------ doubtful paths


def _doubtful(view: PathView) -> list[Finding]:
    findings = []
    for judgement in (Judgement.ONCE, Judgement.LONE, Judgement.BESIDE, Judgement.POPULATION):
        is_population = judgement is Judgement.POPULATION
        populations = view.populations(in_scope=True) if is_population else view.some(judgement)
        if judgement is Judgement.BESIDE and view.paths.followed:
            continue  # how many messages shared each link is known: it is asked for alone, and nothing is doubtful yet
        for explanation in _doubtful_sets(view, populations, judgement):
            back = both_directions(explanation.paths) if view.paths.levels.bidirectional else set()
            explained = explanation.paths | back
            entries = [populations[path] for path in view.paths.best if path in explained and path in populations]
            if not entries:
                continue
            open_ = not is_population and any(_open(view, entry) for entry in entries)
            state = State.SUSPECT if open_ or judgement is Judgement.ONCE else State.CONFOUNDED
            finding = _finding(view, state, explanation, entries, (_DOUBTS[judgement](),))
            if state is State.CONFOUNDED:
                load = ("another load at that time",) if finding.quantity == "latency" else ()
                finding = finding.model_copy(
                    update={
                        "ambiguity_group": (*finding.ambiguity_group, *map(cause, ("slower cables by design", *load))),
                        "next_step": advise.compare_port_speeds(explanation.component),
                    }
                )
            findings.append(finding)
    return findings


def _doubtful_sets(view: PathView, doubtful: Mapping[Path, int], judgement: Judgement) -> list[Explanation]:
    """Return what the paths have in common; many paths, slower among other messages, share what is not known."""
    explanations = _explained(view, set(doubtful), set(view.some(Judgement.FINE)))
    is_many = len(explanations) > 1 and len(doubtful) > POPULATION_SHARE * len(view.paths.best)
    together = [Explanation(BETWEEN_SWITCHES, frozenset(doubtful))]
    return together if is_many and judgement is Judgement.BESIDE else explanations


def _open(view: PathView, entry: int) -> bool:
    """Tell whether a measurement of its pairs alone would show more."""
    levels = view.paths.levels
    cells = int(np.count_nonzero(levels.entry == entry))
    judgement = view.paths.judgements.of[entry]
    few = cells < FEWEST_VALUES or levels.fewest_hosts[entry] < FEWEST_INDEPENDENT
    return judgement in (Judgement.BESIDE, Judgement.ONCE) or few


def _alone(view: PathView) -> list[FollowUp]:
    """Pairs of different hosts along each path that measuring alone decides about, the slowest path first."""
    result = view.some(Judgement.BESIDE, Judgement.ONCE, Judgement.LONE)
    loss = view.paths.judgements.loss
    order = sorted((path for path in result if _open(view, result[path])), key=lambda path: -float(loss[result[path]]))
    return [_follow_up(view, path, result[path]) for path in order]


def _follow_up(view: PathView, path: Path, entry: int) -> FollowUp:
    """Each rank at most twice."""
    pairs = np.unique(_rank_pairs(view, np.flatnonzero(view.paths.levels.entry == entry)), axis=0)
    pairs = np.random.default_rng(path).permutation(pairs)
    chosen: list[tuple[int, int]] = []
    for pair in pairs.tolist():
        if all(sum(end in other for other in chosen) < 2 for end in pair):
            chosen.append(pair)
    return FollowUp(view.component(path), np.array(chosen[:FEWEST_VALUES]).reshape(-1, 2))


def _rank_pairs(view: PathView, cells: Codes) -> Codes:
    """(k, 2) sender and receiver of these cells of the levels."""
    return np.stack([ranks[cells] for ranks in view.paths.ranks], axis=1)


# ------------------------------------------------------------------------------------------------ one of several


def _modes(view: PathView) -> list[Finding]:
    """Findings of the cables among which one makes some pairs slow."""
    levels = view.paths.levels
    modes = {(int(levels.src[mode.entry]), int(levels.dst[mode.entry])): mode for mode in view.paths.modes}
    if not modes:
        return []
    best_paths, slow = set(view.paths.best), set(modes)
    if levels.bidirectional:
        slow, best_paths = both_directions(slow), both_directions(best_paths)
    if view.routes is not None and len(view.routes.ends):
        explanations = over_candidates(slow, best_paths - slow, view.placement, view.routes)
    else:
        explanations = over_ends(slow, best_paths, view.placement)
    modes_of_each = [
        [modes[path] for path in sorted(modes) if {path, path[::-1]} & explanation.paths]
        for explanation in explanations
    ]
    return [_mode_finding(view, one, group) for one, group in zip(explanations, modes_of_each, strict=True) if group]


def _mode_finding(view: PathView, explanation: Explanation, modes: Sequence[Mode]) -> Finding:
    """SUSPECT for the cables among which one makes some pairs slow; CONFOUNDED if load of their time explains them."""
    slow, pairs = sum(mode.slow for mode in modes), sum(mode.pairs for mode in modes)
    loss = relative(float(np.median([mode.loss for mode in modes])), view.judged.quantity)
    why = [seen.routes_wrong()] if view.paths.declared is False else []
    name = explanation.component.label
    across = seen_in(view.judged, seen.path_mode(slow, pairs, name, loss))
    others = [mode.explained_by.share for mode in modes if mode.explained_by is not None]
    is_explained = len(others) == len(modes)
    doubt = seen.others_slow_then(max(others)) if is_explained else seen.one_of_several()
    return Finding(
        state=State.CONFOUNDED if is_explained else State.SUSPECT,
        components=(explanation.component,),
        direction="both" if explanation.component.kind == "cable" else None,
        quantity=view.judged.quantity,
        effect=loss,
        evidence=(across, doubt, *why),
        ambiguity_group=(*explanation.series, *((cause("another load at that time"),) if is_explained else ())),
        next_step=advise.measure_path_alone(explanation.component),
    )


def _splitting(view: PathView) -> list[FollowUp]:
    """Slow pairs and as many others across the same path, in turns."""
    follow_ups = []
    levels = view.paths.levels
    for mode in view.paths.modes:
        others = np.setdiff1d(np.flatnonzero(levels.entry == mode.entry), mode.cells)
        rng = np.random.default_rng(mode.entry)
        slow, fast = (rng.permutation(cells)[: FOLLOW_UP_PAIRS // 2] for cells in (mode.cells, others))
        both = min(slow.size, fast.size)
        turns = np.concatenate([np.stack([slow[:both], fast[:both]], axis=1).ravel(), slow[both:], fast[both:]])
        path = (int(levels.src[mode.entry]), int(levels.dst[mode.entry]))
        follow_ups.append(FollowUp(view.component(path), _rank_pairs(view, turns)))
    return follow_ups


# ------------------------------------------------------------------------------------------------ notes


def _notes(view: PathView) -> list[Note]:
    notes = []
    judged = view.paths.judgements
    for result, kind in (
        (view.some(Judgement.DESIGN), noted.paths_by_design),
        (view.some(Judgement.GEOMETRY), noted.paths_by_geometry),
        (view.populations(in_scope=False), noted.paths_of_a_kind),
    ):
        if not result:
            continue
        loss = relative(float(np.median([judged.loss[entry] for entry in result.values()])), view.judged.quantity)
        paths = [view.component(path) for path in result]
        names = label_of(paths) if len(paths) <= MOST_LINKS else f"{len(paths)} paths"
        beside = judged.beside[next(iter(result.values()))]
        note = kind(paths=names, effect=loss, beside=beside.kind, others=beside.paths)
        notes.append(seen_in(view.judged, note))
    return notes
