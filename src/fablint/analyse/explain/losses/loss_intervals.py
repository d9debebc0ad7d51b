"""The loss of a detection with its 95 % interval: how much longer its messages take than if it were healthy.

The interval has three errors: that of the median of its pairs, which are related by partner and time; that of the times
that it is compared with; and the healthy difference of the component itself from others of its kind, which no
measurement of the faulty component separates from the fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from fablint.analyse.explain.search import Detection, DirectionLosses, Loss
from fablint.analyse.null_model.effects import Effects, leftover_of
from fablint.analyse.observations.clustered_median import t_quantile
from fablint.analyse.observations.robust_stats import MEDIAN_ERROR, robust_sd
from fablint.analyse.observations.samples import Flows
from fablint.analyse.settings import FEWEST_OF_SPREAD, FEWEST_POOL, FEWEST_VALUES, FINEST_NOISE
from fablint.model.arrays import Codes, Floats, Ints


def with_intervals(detections: Sequence[Detection], flows: Flows, effects: Effects) -> list[Detection]:
    """Return the detections with the interval of the loss that a report states.

    Where a component sends and receives, and the intervals of the two losses have nothing in common, it is the larger.
    """
    if not detections:
        return []
    reference = _Reference.of(detections, effects)

    def with_interval(case: Detection) -> Detection:
        if not case.log_times:
            return case
        both = _interval(case, flows, effects, reference)
        losses = [_interval(part, flows, effects, reference) for part in _directions(case, flows, effects)]
        if losses and max(lower for lower, _, _ in losses) > min(upper for _, _, upper in losses):
            return replace(case, loss=max(losses, key=itemgetter(1)), losses=DirectionLosses(both, *losses))
        return replace(case, loss=both)

    return [with_interval(case) for case in detections]


def _directions(case: Detection, flows: Flows, effects: Effects) -> list[Detection]:
    """Return the detection as sender and as receiver; empty for a cable, and where streams do not show both."""
    if case.log_times is None or case.kind == "cable" or not flows.one_way or len(case.sides) < 2:
        return []
    ends = case.cells[0], effects.residual.destination(case.cells)
    chosen = {side: np.flatnonzero(np.isin(ends[side], case.ranks)) for side in sorted(case.sides)}
    if min(places.size for places in chosen.values()) < FEWEST_VALUES:
        return []
    return [
        replace(
            case,
            sides=(side,),
            cells=(case.cells[0][places], case.cells[1][places]),
            log_times=case.log_times.of(places),
            pairs=int(places.size),
        )
        for side, places in chosen.items()
    ]


@dataclass(frozen=True)
class _Reference:
    """What detections are compared with: the pairs and hosts without one."""

    level: Floats  # (classes,) median residual
    error: Floats  # (classes,) standard error of it
    hosts: Codes  # ranks of the hosts

    @classmethod
    def of(cls, detections: Sequence[Detection], effects: Effects) -> _Reference:
        """Return the levels of the classes without the pairs of `detections`."""
        pairs, width = effects.residual, effects.residual.value.shape[1]
        cells = pairs.sample_cells()
        explained = np.concatenate([case.cells[0] * width + case.cells[1] for case in detections])
        is_other = ~np.isin(cells[0] * width + cells[1], explained)
        cells = (cells[0][is_other], cells[1][is_other])
        left, classes = leftover_of(effects, cells).astype(np.float64), effects.classes.of_cells(pairs, cells)
        level, error = np.zeros(effects.classes.count), np.full(effects.classes.count, effects.noise)
        for code, count in zip(*(values.tolist() for values in np.unique(classes, return_counts=True)), strict=True):
            if count >= FEWEST_VALUES:
                level[code] = np.median(left[classes == code])
                error[code] = MEDIAN_ERROR * effects.noise / np.sqrt(count)
        slow = [case.ranks for case in detections if case.kind != "cable"]
        return cls(level, error, np.setdiff1d(np.arange(pairs.ranks), np.concatenate([*slow, np.zeros(0, np.int64)])))


def _interval(case: Detection, flows: Flows, effects: Effects, reference: _Reference) -> Loss:
    assert case.log_times is not None
    classes = effects.classes.of_cells(effects.residual, case.cells)
    started = None if flows.started is None else flows.started[case.cells].astype(np.float64)
    loss = case.log_times.value - effects.usual(case.cells) - reference.level[classes]
    loss -= _of_others(case, effects)
    values = replace(case.log_times, value=loss, started=started)
    if flows.row.quantity == "latency":  # a delay is another share of the time on each kind of path
        chosen = _of_median_class(values.value, classes)
        values, classes = values.of(chosen), classes[chosen]
    deviation, freedom = _own_deviation(case, effects, reference)
    reach = t_quantile(freedom) * float(np.hypot(reference.error[classes].mean(), deviation))
    lower, middle, upper = values.median_interval()
    return (
        middle - float(np.hypot(middle - lower, reach)) - effects.step / 2,
        middle,
        middle + float(np.hypot(upper - middle, reach)) + effects.step / 2,
    )


def _of_others(case: Detection, effects: Effects) -> Floats:
    """Return the (pairs,) tolerated effects of other components in the pairs of a detection."""
    most, others = effects.host_tolerance, np.zeros(case.cells[0].size)
    ends = case.cells[0], effects.residual.destination(case.cells)
    for side, (end, effect) in enumerate(zip(ends, (effects.sent, effects.received), strict=True)):
        is_own = np.isin(end, case.ranks) if case.kind != "cable" and side in case.sides else np.zeros(end.size, bool)
        others += np.where(is_own, 0.0, np.clip(effect, -most, most)[end])
    if case.kind != "cable" and effects.message_paths.count:
        others += effects.path_effect(effects.link_tolerance)[
            effects.message_paths.of_cells(effects.residual, case.cells)
        ]
    return others


def _of_median_class(value: Floats, classes: Ints) -> Codes:
    """Return the places of the values whose class has the median value, of the classes with enough values; else all."""
    codes, count = np.unique(classes, return_counts=True)
    codes, count = codes[count >= FEWEST_VALUES], count[count >= FEWEST_VALUES]
    if codes.size < 2:
        chosen = classes == codes[0] if codes.size else np.ones(classes.size, bool)
        return np.flatnonzero(chosen)
    medians = np.array([np.median(value[classes == code]) for code in codes])
    order = np.argsort(medians)
    middle = order[np.searchsorted(np.cumsum(count[order]), count.sum() / 2)]
    return np.flatnonzero(classes == codes[middle])


def _own_deviation(case: Detection, effects: Effects, reference: _Reference) -> tuple[float, int]:
    """Return the standard deviation of healthy components of its type, with that of their centre, and its freedom."""
    noise = MEDIAN_ERROR * effects.noise
    if case.kind in ("group", "switch", "uplinks"):
        return FINEST_NOISE, FEWEST_POOL  # the differences of its hosts are among the values
    if case.kind == "cable":
        effect, pairs = effects.segment[np.flatnonzero(effects.segment)], case.pairs / len(case.sides)
    else:
        effect = np.mean([(effects.sent, effects.received)[side][reference.hosts] for side in case.sides], axis=0)
        pairs = np.count_nonzero(~np.isnan(effects.residual.value)) / effects.residual.ranks * len(case.sides)
    if effect.size < FEWEST_OF_SPREAD:
        return FINEST_NOISE, FEWEST_POOL
    variance = max(FINEST_NOISE**2, robust_sd(effect) ** 2 - noise**2 / pairs)
    of_centre = MEDIAN_ERROR**2 * (variance + noise**2 / pairs) / effect.size
    return float(np.sqrt(variance + of_centre)), effect.size - 1
