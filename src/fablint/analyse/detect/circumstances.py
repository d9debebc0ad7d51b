"""When and beside whom a component was slow, and whether that is what a faulty component shows.

A fault lasts: it is there in several stretches of time, in nearly all pairs that cross the component, and by about as
much. The load of other jobs, and hosts that differ among each other anyway, look different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fablint.analyse.data.binomial import upper_tail
from fablint.analyse.data.pair_matrix import Cells, Codes, Values
from fablint.analyse.data.robust_stats import MEDIAN_ERROR
from fablint.analyse.data.samples import Flows
from fablint.analyse.detect import timing
from fablint.analyse.detect.host_spread import within_spread
from fablint.analyse.detect.search import CHANCE, UNHEALTHY, Detection
from fablint.analyse.detect.unexplained_pairs import Stratum
from fablint.analyse.fit.effects import Effects, leftover_of
from fablint.analyse.phrasing import times_text
from fablint.analyse.settings import Settings

FEWEST_SHARED = 3  # pairs of a component, alone and among others, from which these are compared
STEADY = 5.0  # standard errors over time, by which the loss has to be beyond the tolerance
ENDPOINT_KINDS = frozenset({"host", "nic", "rank"})


def mark_usual_hosts(
    found: Sequence[Detection], effects: Effects, settings: Settings, *, views: int
) -> list[Detection]:
    """The same, where the hosts among them that differ by no more than healthy ones do are marked."""
    hosts = [case for case in found if case.kind in ENDPOINT_KINDS]
    if not hosts:
        return list(found)
    healthy = np.stack([effects.sent_bounds[1], effects.received_bounds[1]])
    for case in hosts:
        healthy[:, case.ranks] = np.nan
    alpha = settings.alpha_of("components", each_look=False) / views
    usual = within_spread([case.loss[1] for case in hosts], healthy.ravel(), alpha)
    marked = {id(case): replace(case, usual=is_usual) for case, is_usual in zip(hosts, usual, strict=True)}
    return [marked.get(id(case), case) for case in found]


@dataclass(frozen=True)
class _Noise:
    """What the model leaves over of a sample of all cells of a view."""

    key: Codes  # (k,) number of each cell
    left: Values  # (k,)


def described(found: Sequence[Detection], flows: Flows, effects: Effects) -> list[Detection]:
    """The same with when they were slow, and among which others."""
    if not found:
        return []
    cells = effects.residual.sample_cells()
    noise = _Noise(_keys(effects, cells), leftover_of(effects, cells))
    return [_described(case, flows, effects, noise) for case in found]


def _keys(effects: Effects, cells: Cells) -> Codes:
    """(k,) one number for each cell."""
    return np.asarray(cells[0] * effects.residual.value.shape[1] + cells[1])


def _tolerance(case: Detection, effects: Effects) -> float:
    return effects.link_tolerance if case.kind == "cable" else effects.host_tolerance


def _described(case: Detection, flows: Flows, effects: Effects, noise: _Noise) -> Detection:
    found = _lasting(case, flows, effects)
    stretches = None if found is None else found.stretches
    case = replace(case, shared=_shared(case, effects), stretches=stretches)
    if _is_unsteady(case, flows, effects):
        return replace(case, when="its loss varies over time", lasting=False)
    if _is_intermittent(case, effects, noise):
        return replace(case, when="slow for some of its pairs only", lasting=False)
    if found is None:
        return case
    when = "" if found.when is None or found.when.kind == "always" else found.when.text
    return replace(case, when=when, lasting=found.is_lasting)


def _is_intermittent(case: Detection, effects: Effects, noise: _Noise) -> bool:
    """Are more of the cells of a component healthy than noise explains, were it slow all the time?

    The noise is that of the other cells: what varies in its own is the question.
    """
    loss = effects.residual.value[case.cells]
    typical = float(np.median(loss))
    limit = max(UNHEALTHY * typical, min(_tolerance(case, effects), typical))
    healthy = int(np.count_nonzero(loss < limit))
    others = noise.left[~np.isin(noise.key, _keys(effects, case.cells))]
    chance = (np.count_nonzero(others < limit - typical) + 1) / (others.size + 2)
    return bool(upper_tail(healthy, loss.size, chance) < CHANCE / loss.size)


def _is_unsteady(case: Detection, flows: Flows, effects: Effects) -> bool:
    """Does its loss vary over time by so much that it may be within the tolerance in the long run?

    The load of others on a switch varies like that; measurements that were made later to confirm it settle it.
    """
    if flows.later is not None and flows.later[case.cells].any():
        return False
    tolerance = _tolerance(case, effects)
    lower, middle, _ = case.loss
    steady = STEADY * MEDIAN_ERROR * effects.noise / np.sqrt(case.pairs)
    if middle - lower > max(steady, lower - tolerance):
        return True  # its pairs differ by more than noise, and the median is not known to be beyond the tolerance
    loss = effects.residual.value[case.cells].astype(np.float64)
    started = None if flows.started is None else flows.started[case.cells]
    if started is not None:
        known = np.isfinite(started)
        loss, started = (loss[known], started[known]) if known.any() else (loss, None)
    error = timing.error_over_time(loss - np.median(loss), started, effects.noise)
    return bool(error * STEADY > middle - tolerance)


def _lasting(case: Detection, flows: Flows, effects: Effects) -> timing.Persistence | None:
    """In how many stretches of time it was slow, and when; None where nobody knows the times."""
    if flows.started is None:
        return None
    slow = effects.residual.value[case.cells] > _tolerance(case, effects)
    later = flows.later[case.cells] if flows.later is not None else np.zeros(slow.size, dtype=bool)
    every = flows.started[effects.residual.sample_cells()]
    return timing.measure_persistence(flows.started[case.cells], every[np.isfinite(every)], slow, later)


def when_slow(stratum: Stratum, flows: Flows, effects: Effects) -> str:
    """When the slow pairs of a host were slow, of all of its pairs; empty where nobody knows."""
    if flows.started is None or stratum.host < 0:
        return ""
    ranks = np.flatnonzero(effects.classes.placement.host == stratum.host)
    sent, received = effects.residual.cells_from(ranks), effects.residual.cells_to(ranks)
    every = tuple(np.concatenate(both) for both in zip(sent, received, strict=True))
    known = ~np.isnan(effects.residual.value[every])
    cells = (every[0][known], every[1][known])
    slow = np.isin(_keys(effects, cells), _keys(effects, stratum.cells))
    found = timing.find_slow_time(flows.started[cells], slow)
    return "" if found is None else found.text


def _shared(case: Detection, effects: Effects) -> str:
    """How much longer its messages took when others shared a link with them, where both was measured."""
    load = effects.classes.load
    if load is None:
        return ""
    codes = effects.classes.of_cells(effects.residual, case.cells)
    time = effects.residual.value[case.cells] + np.array(
        [effects.class_log_time.get(int(code), np.nan) for code in codes]
    )
    alone = load[case.cells] == 0
    if min(np.count_nonzero(alone), np.count_nonzero(~alone)) < FEWEST_SHARED:
        return ""
    ratio = float(np.exp(np.nanmedian(time[~alone]) - np.nanmedian(time[alone])))
    if abs(np.log(ratio)) <= effects.link_tolerance:
        return ""
    return f"{times_text(ratio)} times as long among others as alone"
