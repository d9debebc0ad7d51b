"""Fit the time of a healthy pair and the effect of each component: class, sender, receiver, segments of the path.

    log time(i -> j) = class(i, j) + sent(i) + received(j) + max over segments of the path from i to j + noise

by medians throughout (Tukey's median polish, in which partners that are outliers are ignored), so that a few faulty
components do not change the healthy values. Segments are fitted last, to the residuals of the ends, and the slowest
segment of a path counts alone: the tolerance applies once per pair, not once per component in series.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from fablint.analyse.null_model.comparison_groups import Classes
from fablint.analyse.null_model.drift import drift_of
from fablint.analyse.null_model.effects import Effects, leftover_of, sample_noise
from fablint.analyse.null_model.few_switches import usual_without_slow_switch
from fablint.analyse.null_model.host_populations import (
    best_of_ranks,
    effect_error,
    find_populations,
    has_reached_line_rate,
    subtract_populations,
)
from fablint.analyse.null_model.host_spread import spread_beyond_noise
from fablint.analyse.null_model.recorded_facts import are_slow_by_themselves
from fablint.analyse.observations.balance import HostPairNumbers, balanced_cells, end_cells
from fablint.analyse.observations.message_paths import MessagePaths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.resolution import ONE_STEP, ROUNDING_NOISE, are_within_step, means_of_rounded
from fablint.analyse.observations.robust_stats import (
    MEDIAN_ERROR,
    interval_ranks,
    robust_sd,
    row_medians,
)
from fablint.analyse.settings import (
    CONFIDENCE,
    FEWEST_OF_CLASS,
    FEWEST_PEERS,
    FEWEST_POOL,
    FEWEST_VALUES,
    FINEST_NOISE,
    MOST_FEW,
    STANDS_OUT,
    Settings,
)
from fablint.model import SCOPES, Placement, Scope
from fablint.model.arrays import Codes, Floats, Mask, Values

PASSES = 3
SEGMENT_CELLS = 1 << 22  # cells of the sample from which segments are fitted


def fit(
    pairs: Pairs,
    classes: Classes,
    message_paths: MessagePaths,
    settings: Settings,
    *,
    bidirectional: bool,
    started: Floats | None = None,
    stream: int | None = None,
) -> Effects:
    """Fit the model to log times. Changes `pairs` in place to residuals from class, population and time.

    Messages within a host do not depend on the fabric: they have a class of their own and are then excluded, except in
    a run on one host.

    Parameters
    ----------
    pairs
        Log times.
    classes
        Classes of the pairs.
    message_paths
        Paths of the pairs.
    settings
        Tolerances.
    bidirectional
        Whether the messages of a cell cross the path back as well.
    started
        (n, m) s since the start of the run; None: unknown.
    stream
        Bytes of a message of a stream; None for other kernels.

    Returns
    -------
    Effects
        The model; its `residual` is `pairs`.
    """
    numbers = HostPairNumbers.of(pairs, classes.placement)
    equal_cells = balanced_cells(pairs, numbers)
    offsets = _class_offsets(pairs, classes, None, equal_cells, settings.tolerance)
    _subtract_classes(pairs, classes, offsets, fabric_only=len(classes.placement.hosts) > 1)
    informative = end_cells(pairs, numbers, *classes.informative(pairs, offsets, settings.tolerance))
    sent, received = _polish(_of_ends(pairs, informative.both))
    effects = Effects(
        class_log_time=offsets,
        residual=pairs,
        classes=classes,
        message_paths=message_paths,
        bidirectional=bidirectional,
        host_pairs=numbers,
        informative=informative,
        sent_bounds=sent,
        received_bounds=received,
        segment=np.zeros(message_paths.count + 1, dtype=np.float32),
        segment_upper=np.full(message_paths.count, np.nan, dtype=np.float32),
        noise=FINEST_NOISE,
        host_tolerance=settings.tolerance,
        link_tolerance=settings.tolerance,
        step=pairs.step,
    )
    effects = _in_populations(effects, settings, stream)
    effects = _recentred(effects, equal_cells, settings.tolerance)
    effects = _without_drift(effects, started)
    effects = replace(effects, noise=_noise(effects))
    crossed, segment, upper = _segments(effects)
    effects = replace(effects, segment=np.append(segment, np.float32(0)), segment_upper=upper)
    return _with_tolerances(effects, crossed, settings)


def _with_tolerances(effects: Effects, crossed: Codes, settings: Settings) -> Effects:
    """Return the model with its noise, and with the effects that healthy hosts and links may have.

    They have at least the tolerance of the settings, and more where the effects spread more than the noise explains.
    `crossed` is the (segments,) number of cells that each segment was fitted from.
    """
    pairs, message_paths, noise = effects.residual, effects.message_paths, _noise(effects)
    measured = max(1, int(np.count_nonzero(~np.isnan(pairs.value))))
    ends = (effects.sent_bounds, effects.received_bounds)
    rounded = means_of_rounded(_of_ends(pairs, effects.informative.both)) if pairs.step else ()
    effect_sets = (*(bounds[1] for bounds in ends), *rounded)
    host_spread = max(spread_beyond_noise(effect, noise, measured / pairs.ranks) for effect in effect_sets)
    if rounded and all(are_within_step(means, pairs.step) for means in rounded):
        host_spread = 0.0  # rounding alone explains it, and one step is tolerated
    fitted = np.flatnonzero(crossed[: message_paths.known_links] >= FEWEST_POOL)
    link_spread = 0.0
    if fitted.size:
        link_spread = spread_beyond_noise(effects.segment[fitted], noise, float(np.median(crossed[fitted])))
    return replace(
        effects,
        noise=noise,
        host_tolerance=max(settings.tolerance, settings.spread_factor * host_spread + ONE_STEP * pairs.step),
        link_tolerance=max(settings.tolerance, settings.spread_factor * link_spread + ONE_STEP * pairs.step),
    )


def _in_populations(effects: Effects, settings: Settings, stream: int | None) -> Effects:
    """Return the model with each host compared with its own population, if there are several populations."""
    pairs, placement = effects.residual, effects.classes.placement
    if len(placement.hosts) < 2:
        return effects
    residuals = leftover_of(effects, pairs.sample_cells())
    pairs_per_rank = np.count_nonzero(~np.isnan(pairs.value)) / pairs.ranks
    error, ends = max(effect_error(residuals, pairs_per_rank), effects.step), _of_ends(pairs, effects.informative.both)
    candidates = tuple(
        find_populations(
            pairs, bounds[1], best_of_ranks(ends, sent=sent), error, placement, settings.tolerance, sent=sent
        )
        for bounds, sent in ((effects.sent_bounds, True), (effects.received_bounds, False))
    )
    fastest = min(effects.class_log_time.values(), default=0.0)
    rate = placement.line_rate, settings.line_rate_share
    kept = [
        None
        if population is None
        or (stream and has_reached_line_rate(population, fastest, stream, *rate))
        or are_slow_by_themselves(population, effects.classes.facts, settings.log_loss_in_scope)
        else population
        for population in candidates
    ]
    if not any(kept):
        return effects
    subtract_populations(pairs, effects.classes, placement, kept[0], kept[1])
    sent, received = _polish(_of_ends(pairs, effects.informative.both))
    return replace(effects, sent_bounds=sent, received_bounds=received, populations=(kept[0], kept[1]))


def _without_drift(effects: Effects, started: Floats | None) -> Effects:
    """Return the model without the effect of the time of measurement on the pairs of all hosts."""
    pairs = effects.residual
    if started is None:
        return effects
    drift = drift_of(
        pairs, started, effects.classes, effects.classes.placement, lambda cells: leftover_of(effects, cells)
    )
    if drift is None:
        return effects
    for rows in pairs.blocks():
        pairs.value[rows] -= drift[rows]
    sent, received = _polish(_of_ends(pairs, effects.informative.both))
    return replace(effects, sent_bounds=sent, received_bounds=received, drift=drift)


def with_healthy_classes(effects: Effects, explained: Mask, least: float = 0.0) -> Effects:
    """Return the model with the classes of the cells that are not explained; itself if none moves by more than `least`.

    A component that has most cells of a class makes its slow state the usual state of that class, until its cells are
    explained, (n, m). All residuals are changed in place.
    """
    pairs, classes = effects.residual, effects.classes
    of_explained = pairs.value[explained]
    pairs.value[explained] = np.nan
    rest = _with_other_ends(effects)
    after = _class_offsets(pairs, classes, rest, balanced_cells(pairs, rest.host_pairs), effects.host_tolerance)
    pairs.value[explained] = of_explained
    moved = {code: time for code, time in after.items() if abs(time - effects.class_log_time.get(code, time)) > least}
    if not moved:
        return effects
    rest = _with_classes(rest, moved)
    return replace(rest, noise=_noise(rest))


def without(effects: Effects, explained: Mask) -> Effects:
    """Return the model refitted without the explained cells of an (n, m) mask.

    Changes the residuals in place. Classes, ends and segments are fitted again; tolerances are kept.
    """
    effects = with_healthy_classes(effects, explained)
    effects.residual.value[explained] = np.nan
    effects = _with_other_ends(effects)
    _, segment, upper = _segments(effects)
    return replace(effects, segment=np.append(segment, np.float32(0)), segment_upper=upper)


def _with_other_ends(effects: Effects) -> Effects:
    """Return the model with effects of the ends for other residuals, and without segments."""
    ends = _of_ends(effects.residual, effects.informative.both)
    sent = _medians(ends, ends.sent, effects.received_bounds[1])
    received = _medians(ends, ends.received, sent[1])
    return replace(effects, sent_bounds=sent, received_bounds=received, segment=np.zeros_like(effects.segment))


def _class_offsets(
    pairs: Pairs, classes: Classes, effects: Effects | None, equal_cells: Mask | None, least: float
) -> dict[int, float]:
    """Return the log time of each class that occurs: the median over a sample, without the effects of components.

    Parameters
    ----------
    effects
        Model whose effects are subtracted; None: no effects are known yet.
    equal_cells
        (n, m) cells of pairs that were measured equally often; None: all.
    least
        Smallest log-effect that matters.
    """
    cells = pairs.sample_cells()
    if equal_cells is not None:
        chosen = equal_cells[cells]
        cells = (cells[0][chosen], cells[1][chosen])
    values = pairs.value[cells] if effects is None else leftover_of(effects, cells)
    earlier = {} if effects is None else effects.class_log_time
    codes = classes.of_cells(pairs, cells)
    offsets, counts = {}, {}
    for code, count in zip(*(values.tolist() for values in np.unique(codes, return_counts=True)), strict=True):
        if code == SCOPES.index(Scope.UNKNOWN) and _count_unlocated_hosts(classes.placement) < FEWEST_PEERS:
            continue  # a host alone in its class would be its own reference
        if code < len(SCOPES) or count >= FEWEST_OF_CLASS:  # a class of few pairs has no reference
            of_class = codes == code
            usual = float(np.median(values[of_class]))
            a, b = (classes.placement.switch[end[of_class]] for end in (cells[0], pairs.destination(cells)))
            # with more switches, a small class is one of several distances
            is_few = len(classes.placement.switches) <= MOST_FEW
            if is_few and ((a != b) & (a >= 0) & (b >= 0)).all():
                usual = usual_without_slow_switch(values[of_class], a, b, usual, least)
            offsets[code], counts[code] = usual + earlier.get(code, 0.0), count
    return classes.limit_small_classes(offsets, counts)


def _count_unlocated_hosts(placement: Placement) -> int:
    """Return the number of hosts missing from the topology (all hosts without a topology)."""
    return np.unique(placement.host[placement.switch < 0]).size if placement.switches else len(placement.hosts)


def _subtract_classes(pairs: Pairs, classes: Classes, offsets: dict[int, float], *, fabric_only: bool) -> None:
    """Subtract the class offsets from the values in place; classes without an offset become NaN."""
    offset_of_class = np.full(classes.count, np.nan, dtype=np.float32)
    for code, offset in offsets.items():
        offset_of_class[code] = offset
    if fabric_only:
        offset_of_class[SCOPES.index(Scope.INTRA_NODE) :: len(SCOPES)] = np.nan
    for rows in pairs.blocks():
        pairs.value[rows] -= offset_of_class[classes.of_rows(pairs, rows)]


def _recentred(effects: Effects, equal_cells: Mask | None, least: float) -> Effects:
    """Return the model with noise around 0 in every class.

    The class offsets were medians of sums of uneven effects. Now that the effects are known, the residuals give the
    true offset. Without this step all links look slow to few, uneven hosts.
    """
    return _with_classes(effects, _class_offsets(effects.residual, effects.classes, effects, equal_cells, least))


def _with_classes(effects: Effects, after: dict[int, float]) -> Effects:
    """Return the model with other log times of some classes. Changes the residuals in place."""
    before = effects.class_log_time
    shift = {code: after.get(code, time) - time for code, time in before.items()}
    _subtract_classes(effects.residual, effects.classes, shift, fabric_only=False)
    return replace(effects, class_log_time={**before, **after})


def _of_ends(pairs: Pairs, informative: Mask | None) -> Pairs:
    """Return the pairs that show how fast their ends are; other values become NaN."""
    return (
        pairs if informative is None else replace(pairs, value=np.where(informative, pairs.value, np.float32(np.nan)))
    )


def _polish(pairs: Pairs) -> tuple[Floats, Floats]:
    """Return bounds and medians of the effects of senders and receivers, (3, n) each, both centred on 0."""
    sent = received = np.zeros((3, pairs.ranks))
    for _ in range(PASSES):
        before = sent
        sent = _medians(pairs, pairs.sent, received[1])
        received = _medians(pairs, pairs.received, sent[1])
        step = np.abs(sent[1] - before[1])
        if not np.any(step > FINEST_NOISE):
            break
    return sent, received


def _medians(pairs: Pairs, values_of: Callable[[slice], Values], partner_effect: Floats) -> Floats:
    """Return the (3, n) median of each rank over its partners, without the effects of the partners."""
    finite = np.nan_to_num(partner_effect)
    centre, scatter = np.median(finite), max(robust_sd(finite), FINEST_NOISE)
    is_outlier = np.abs(finite - centre) > STANDS_OUT * scatter
    effect = finite.astype(np.float32)
    usual_effect = np.where(is_outlier, np.float32(np.nan), effect)
    bounds = np.empty((3, pairs.ranks))
    for rows in pairs.blocks():
        partners = pairs.partners(rows)
        values = values_of(rows) - usual_effect[partners]
        is_sparse = np.count_nonzero(~np.isnan(values), axis=1) < FEWEST_PEERS
        if is_sparse.any():  # too few other partners: outliers count as well
            values[is_sparse] = values_of(rows)[is_sparse] - effect[np.broadcast_to(partners, values.shape)[is_sparse]]
        bounds[:, rows] = row_medians(values)
    with np.errstate(all="ignore"):
        return bounds - np.nan_to_num(np.nanmedian(bounds[1])) if not np.isnan(bounds[1]).all() else bounds


def _noise(effects: Effects) -> float:
    """Return the robust standard deviation of a sample of the noise."""
    return max(robust_sd(sample_noise(effects)[0]), FINEST_NOISE, ROUNDING_NOISE * effects.residual.step)


def _segments(effects: Effects) -> tuple[Codes, Values, Values]:
    """Return pairs that cross each segment, the median of their residuals, and its upper 95 % bound.

    Each is (segments,); pairs are those of the sample. The bound is that of the median by order statistics, or that of
    a median of as many pairs with the noise of the whole fabric, for all segments together; the smaller one counts. The
    median is 0 for fewer than FEWEST_POOL pairs, the bound is NaN for fewer than FEWEST_VALUES.
    """
    message_paths, pairs = effects.message_paths, effects.residual
    median, upper = np.zeros(message_paths.count, np.float32), np.full(message_paths.count, np.nan, np.float32)
    if not message_paths.count:
        return np.zeros(0, dtype=np.int64), median, upper
    crossed, middle, highest = np.zeros(message_paths.count, dtype=np.int64), median.copy(), upper.copy()
    cells = pairs.sample_cells(SEGMENT_CELLS)
    residuals = leftover_of(effects, cells)
    for part, grouped in message_paths.on_each(pairs, cells, residuals, bidirectional=effects.bidirectional):
        crossed[part], middle[part] = grouped.count, grouped.upper_medians()
        highest[part] = grouped.at(interval_ranks(grouped.count)[1])
    fitted, bounded = crossed >= FEWEST_POOL, crossed >= FEWEST_VALUES
    median[fitted] = middle[fitted]
    bound = np.minimum(highest, middle + median_error(crossed, effects.noise))
    upper[bounded] = bound[bounded]
    return crossed, median, upper


def median_error(pairs: Codes, noise: float) -> Floats:
    """Return by how much medians of (k,) `pairs` values each may be too small, all of them together in 95 % of runs.

    Few pairs alone give a wide bound of their median; the noise of the whole fabric gives a narrower one.
    """
    return np.asarray(MEDIAN_ERROR * noise * -ndtri((1 - CONFIDENCE) / pairs.size) / np.sqrt(np.maximum(pairs, 1)))
