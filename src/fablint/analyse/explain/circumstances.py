"""Times and concurrent load in which a component was slow, and whether a faulty component shows them.

A fault is lasting: it is present in several stretches of time, in nearly all pairs that cross the component, and by
about the same amount. The load of other jobs, and normal differences between hosts, look different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.explain.search import Detection
from fablint.analyse.null_model import timing
from fablint.analyse.null_model.effects import Effects, leftover_of
from fablint.analyse.null_model.host_spread import MeasuredEffects, are_within_spread
from fablint.analyse.observations.binomial import chance_of_so_many
from fablint.analyse.observations.robust_stats import MEDIAN_ERROR, robust_sd, row_medians
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import CHANCE, FAR, FEWEST_PEERS, HALF, NOISIER
from fablint.model import EvidenceRecord
from fablint.model.arrays import Cells, Codes, Floats, Mask, Values
from fablint.text import evidence as seen

ENDPOINT_KINDS = frozenset({"host", "nic", "gpu", "rank"})


def mark_usual_hosts(detections: Sequence[Detection], effects: Effects, alpha: float) -> list[Detection]:
    """Return the detections, with hosts marked that differ no more than healthy hosts do.

    Parameters
    ----------
    detections
        Detections of the view.
    effects
        Model without the pairs of the detections.
    alpha
        Expected number of healthy hosts as slow, above which a slow host is within their spread.
    """
    hosts = [case for case in detections if case.kind in ENDPOINT_KINDS]
    others = effects_of_others(hosts, effects)
    usual: set[int] = set()
    for of_both in (False, True):  # a host that is slow in both directions differs from the means of the others
        cases = [case for case in hosts if (len(case.sides) > 1) == of_both]
        within = are_within_spread([case.loss[0] for case in cases], others.of_both_sides if of_both else others, alpha)
        usual |= {id(case) for case, is_usual in zip(cases, within, strict=True) if is_usual}
    return [replace(case, usual=id(case) in usual) for case in detections]


def effects_of_others(detections: Sequence[Detection], effects: Effects) -> MeasuredEffects:
    """Return the (2, n) effects of ranks as senders and as receivers; NaN for those of detected hosts.

    Ranks whose pairs differ by far more than those of other ranks have no effect of their own either: their median
    shows how many of their pairs are slow for another reason.
    """
    bounds = np.stack([effects.sent_bounds, effects.received_bounds])
    error = MEDIAN_ERROR * effects.noise / np.sqrt(np.maximum(effects.pairs_of_ends(), 1))
    scatter = (bounds[:, 2] - bounds[:, 0]) / error
    healthy = np.where(scatter > NOISIER * np.nanmedian(scatter), np.nan, bounds[:, 1])
    for case in detections:
        if case.kind in ENDPOINT_KINDS:
            healthy[:, case.ranks] = np.nan
    return MeasuredEffects(healthy, error)


@dataclass(frozen=True)
class _Noise:
    """Residuals of a sample of all cells of a view."""

    key: Codes  # (k,) number of each cell
    left: Values  # (k,)


def describe_detections(detections: Sequence[Detection], flows: Flows, effects: Effects) -> list[Detection]:
    """Return the detections with the time of their slowness and the effect of concurrent load."""
    if not detections:
        return []
    cells = effects.residual.sample_cells()
    noise = _Noise(_keys(effects, cells), leftover_of(effects, cells))
    return [_described(case, flows, effects, noise) for case in detections]


def _keys(effects: Effects, cells: Cells) -> Codes:
    """Return a (k,) number for each cell."""
    return np.asarray(cells[0] * effects.residual.value.shape[1] + cells[1])


def _tolerance(case: Detection, effects: Effects) -> float:
    """Return the tolerance of the component."""
    return effects.link_tolerance if case.kind == "cable" else effects.host_tolerance


def _described(case: Detection, flows: Flows, effects: Effects, noise: _Noise) -> Detection:
    """Return a detection with the time of its slowness and the effect of concurrent load."""
    persistence = _persistence(case, flows, effects)
    stretches = None if persistence is None else persistence.stretches
    shared = _shared(case, effects)
    case = replace(case, circumstances=shared, stretches=stretches)
    if _is_unsteady(case, flows, effects):
        return replace(case, circumstances=(seen.unsteady(), *shared), lasting=False)
    if _is_intermittent(case, effects, noise):
        return replace(case, circumstances=(seen.intermittent(), *shared), lasting=False)
    if persistence is None:
        return case
    when = () if persistence.when is None or persistence.when.kind == "always" else (persistence.when.evidence,)
    return replace(case, circumstances=(*when, *shared), lasting=persistence.is_lasting)


def _directions(case: Detection) -> list[Mask]:
    """Return (k,) masks of the cells of both directions of a host, which may lose more in one; else none."""
    sends = np.isin(case.cells[0], case.ranks)
    return [sends, ~sends] if case.kind in ENDPOINT_KINDS and sends.any() and not sends.all() else []


def _is_intermittent(case: Detection, effects: Effects, noise: _Noise) -> bool:
    """Return whether more cells of a component are healthy than noise explains for a lasting fault.

    The noise is that of other cells, since the component's own variation is tested. What the load costs a cell counts
    as a loss as well: a share of another link shows no faster component.
    """
    others = noise.left[~np.isin(noise.key, _keys(effects, case.cells))]
    tolerance, of_case = _tolerance(case, effects), effects.residual.value[case.cells]
    cost = effects.classes.cost_of_load(effects.residual, case.cells, effects.class_log_time)
    if not _has_healthy_cells(of_case, cost, others, tolerance):
        return False
    directions = _directions(case)
    return not directions or any(
        _has_healthy_cells(of_case[side], cost[side], others, tolerance) for side in directions
    )


def _has_healthy_cells(loss: Values, cost: Floats, others: Values, tolerance: float) -> bool:
    """Return whether more of (k,) losses, with the cost of the load, are those of a healthy component than the noise of
    others explains.
    """
    typical = float(np.median(loss))
    limit = max(HALF * typical, min(tolerance, typical))
    return chance_of_so_many(loss + cost < limit, others < limit - typical) < CHANCE / loss.size


def _is_unsteady(case: Detection, flows: Flows, effects: Effects) -> bool:
    """Return whether the loss varies over time by so much that it may be within the tolerance in the long run.

    The load of other jobs on a switch varies like that. Follow-up measurements decide: with them, the result is False.
    """
    if flows.later is not None and flows.later[case.cells].any():
        return False
    loss = effects.residual.value[case.cells].astype(np.float64)
    started = None if flows.started is None else flows.started[case.cells]
    tolerance, noise = _tolerance(case, effects), effects.noise
    if case.kind == "uplinks" and robust_sd(loss) > NOISIER * noise:
        return True  # a faulty cable among them is slow evenly; what other jobs send over all of them is not
    if not _varies(loss, started, case.loss[:2], tolerance, noise):
        return False
    directions = _directions(case)
    for side in directions:
        (lower,), (middle,), _ = row_medians(loss[side][None])
        if _varies(loss[side], None if started is None else started[side], (lower, middle), tolerance, noise):
            return True
    return not directions


def _varies(loss: Floats, started: Floats | None, bounds: tuple[float, float], tolerance: float, noise: float) -> bool:
    """Return whether (k,) losses vary by so much that their median, with its lower bound, may be tolerated."""
    lower, middle = bounds
    steady = FAR * MEDIAN_ERROR * noise / np.sqrt(loss.size)
    if middle - lower > max(steady, lower - tolerance):
        return True  # the pairs differ beyond the noise, and the median may be within the tolerance
    if started is not None:
        is_timed = np.isfinite(started)
        loss, started = (loss[is_timed], started[is_timed]) if is_timed.any() else (loss, None)
    error = timing.error_over_time(loss - np.median(loss), started, noise)
    return bool(error * FAR > middle - tolerance)


def _persistence(case: Detection, flows: Flows, effects: Effects) -> timing.Persistence | None:
    """Return how lasting the slowness is; None if the times are unknown."""
    if flows.started is None:
        return None
    slow = effects.residual.value[case.cells] > _tolerance(case, effects)
    later = flows.later[case.cells] if flows.later is not None else np.zeros(slow.size, dtype=bool)
    starts = flows.started[effects.residual.sample_cells()]
    return timing.measure_persistence(flows.started[case.cells], starts[np.isfinite(starts)], slow, later)


def _shared(case: Detection, effects: Effects) -> tuple[EvidenceRecord, ...]:
    """Return how much longer messages took that shared a link, if messages were measured with and without sharing."""
    load = effects.classes.load
    if load is None:
        return ()
    time = effects.residual.value[case.cells] + effects.usual(case.cells)
    is_isolated = load[case.cells] == 0
    if min(np.count_nonzero(is_isolated), np.count_nonzero(~is_isolated)) < FEWEST_PEERS:
        return ()
    ratio = float(np.exp(np.nanmedian(time[~is_isolated]) - np.nanmedian(time[is_isolated])))
    if abs(np.log(ratio)) <= effects.link_tolerance:
        return ()
    return (seen.among_others(ratio),)
