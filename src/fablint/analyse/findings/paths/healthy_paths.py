"""What can be said about paths between switches that no finding is about: OK with a bound, or NOT JUDGED.

Where enough links are declared to be compared with each other, these are judged one by one, and paths are not
components of their own. Paths that no others are like, or that are later by a longer cable, have findings and notes of
their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.concerned import ConcernedComponents
from fablint.analyse.explain.paths.view_paths import PathBounds, PathKey, path_bounds
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import relative
from fablint.analyse.findings.healthy import not_judged
from fablint.analyse.settings import FEWEST_PEERS, MOST_FEW, Settings
from fablint.model import EvidenceRecord, Finding, Note, Placement, State
from fablint.model.component import listed
from fablint.text import actions as advise, evidence as seen, notes as noted


def healthy_paths(
    views: Sequence[ViewResult], placement: Placement, result: Sequence[Finding], settings: Settings
) -> tuple[list[Finding], list[Note]]:
    """OK and NOT JUDGED findings about the paths of a run, per quantity, and notes on those too many to measure.

    A path that one of the findings `result` is about is not OK, whatever its median is.
    """
    concerned = ConcernedComponents.of(result)
    findings: list[Finding] = []
    notes: list[Note] = []
    for quantity in dict.fromkeys(view.quantity for view in views):
        crossing = [view for view in views if view.quantity == quantity and view.paths and not view.paths.compared]
        if not crossing:
            continue
        bounds = [path_bounds(view.paths) for view in crossing]
        loss = _worst(bounds)
        rows = list(dict.fromkeys(view.row for view in crossing))
        limit = settings.log_loss_in_scope if quantity == "bandwidth" else np.log1p(settings.loss_in_scope)
        few = {name for name, upper in loss.items() if np.isnan(upper) and _is_separable(name, placement)}
        if few and len(placement.switches) > MOST_FEW:
            notes.append(noted.few_pairs_of_paths(len(few), FEWEST_PEERS).measured_in(", ".join(rows)))
            few = set()
        beside = {name for bound in bounds for name, said in zip(bound.paths, bound.beside, strict=True) if said}
        wide = {name for name, upper in loss.items() if upper > limit}
        worst = abs(relative(max((loss[name] for name in wide), default=0.0), quantity))
        hidden = seen.hidden_loss(bound=worst, quantity=quantity, limit=settings.loss_in_scope)
        reasons = ((few, seen.few_path_pairs(FEWEST_PEERS)), (beside, seen.not_alone(quantity)), (wide, hidden))
        findings += [
            not_judged(
                listed((path.component(placement) for path in sorted(paths)), len(paths)),
                rows,
                reason,
                advise.measure_longer(),
            )
            for paths, reason in reasons
            if paths
        ]
        fine = {
            name: upper
            for name, upper in loss.items()
            if upper <= limit and not _is_concerned(name, concerned, placement)
        }
        if fine:
            effect = relative(max(fine.values()), quantity) + 0.0  # no -0.0
            findings.append(
                Finding(
                    state=State.OK,
                    components=listed((path.component(placement) for path in sorted(fine)), len(fine)),
                    quantity=quantity,
                    effect=effect,
                    evidence=(_compared(bounds, fine),),
                )
            )
    return findings, notes


def _is_concerned(path: PathKey, concerned: ConcernedComponents, placement: Placement) -> bool:
    """Tell whether a finding is about the path, in one direction or both."""
    return any(concerned.has_link(placement.switches[a], placement.switches[b]) for a, b in path.directions)


def _worst(bounds: Sequence[PathBounds]) -> dict[PathKey, float]:
    """Largest bound of each path that is as fast as its kind in all views; NaN where one view has none."""
    path_keys: dict[PathKey, float] = {}
    slow: set[PathKey] = set()
    for bound in bounds:
        for name, upper, fine in zip(bound.paths, bound.upper.tolist(), bound.fine.tolist(), strict=True):
            if fine or np.isnan(upper):
                path_keys[name] = float(np.maximum(path_keys.get(name, 0.0), upper))  # NaN where one is
            else:
                slow.add(name)
    return {name: upper for name, upper in path_keys.items() if name not in slow}


def _is_separable(path: PathKey, placement: Placement) -> bool:
    """Tell whether its switches have hosts enough to distinguish the path from its hosts."""
    a, b = (np.unique(placement.host[placement.switch == end]).size for end in (path.src, path.dst))
    return bool(a * b >= FEWEST_PEERS and min(a, b) > 1)


def _compared(bounds: Sequence[PathBounds], fine: dict[PathKey, float]) -> EvidenceRecord:
    pairs = min(
        int(count)
        for bound in bounds
        for name, count in zip(bound.paths, bound.host_pairs, strict=True)
        if name in fine
    )
    references = sorted({reference for bound in bounds for reference in bound.compared_with if reference.kind})
    kinds, counts = zip(*references, strict=True) if references else ((), ())
    return seen.healthy_paths(pairs=pairs, beside=kinds, counts=counts)
