"""Fit what a healthy pair takes, and what each part adds: class offsets, senders, receivers, segments between switches.

    log time(i -> j) = class(i, j) + sent(i) + received(j) + max over segments of the way from i to j + noise

by medians throughout (Tukey's median polish, in which partners that stand out themselves have no say), so that a
few sick parts do not change what healthy is. Segments are fitted last, to what the ends leave over, and the slowest of
a way counts alone: what is tolerated is tolerated once per pair, not once per part that lies in series.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from fablint.analyse.data.balance import Mask, balanced
from fablint.analyse.data.message_paths import MessagePaths
from fablint.analyse.data.pair_matrix import Cells, Codes, Pairs, Values
from fablint.analyse.data.resolution import step_of
from fablint.analyse.data.robust_stats import (
    FEWEST_VALUES,
    MEDIAN_ERROR,
    Floats,
    interval_ranks,
    robust_sd,
    row_medians,
)
from fablint.analyse.fit.comparison_groups import Classes
from fablint.analyse.fit.drift import drift_of
from fablint.analyse.fit.few_switches import MOST_FEW, usual_without_one
from fablint.analyse.fit.host_populations import (
    Populations,
    best_of_ranks,
    error_of,
    is_anchored,
    populations_of,
    subtract,
)
from fablint.analyse.settings import Settings
from fablint.model import SCOPES, Placement, Scope
from fablint.model.grouped_values import GroupedValues

PASSES = 3
STANDS_OUT = 3.3  # robust standard deviations from which a partner has no say
FEW_PARTS = 5  # so many parts have their spread doubled
FINEST_NOISE = 1e-3  # times are not known better than 0.1 %
FEWEST_STRANGERS = 3  # hosts that the topology does not name, from which they can be compared with each other
FEWEST_ALIKE = 12  # pairs that collided alike, from which they can be compared
ONE_STEP = 1.05  # steps between figures, up to which a difference of medians is rounding
SEGMENT_CELLS = 1 << 22  # cells from which the effects of segments are found
FITTED_FROM = 30  # cells of a segment from which its own effect is taken out: fewer are noise


@dataclass(frozen=True)
class Effects:
    """The fitted model. Arrays named `*_bounds` hold lower 95 % bound, median and upper bound in their first axis."""

    class_log_time: dict[int, float]  # by class code
    residual: Pairs  # log times less their class; NaN where missing or not judged
    classes: Classes
    message_paths: MessagePaths
    bidirectional: bool  # does a cell cross the way back as well?
    informative: npt.NDArray[np.bool_] | None  # (n, m) cells that tell how fast their ends are; None: all
    sent_bounds: Floats  # (3, n)
    received_bounds: Floats  # (3, n)
    segment: Values  # (segments + 1,) log-effect; 0 where too few pairs tell, and in the last, which -1 finds
    segment_upper: Values  # (segments,) upper 95 % bound of it, NaN where too few pairs tell
    noise: float  # robust standard deviation of what is left over
    host_tolerance: float  # how much slower than its peers a healthy host may be
    link_tolerance: float
    populations: tuple[Populations | None, Populations | None] = (None, None)  # of senders and of receivers
    drift: Values | None = None  # (n, m) what the time of measurement added, taken out of the residuals; None: nothing
    step: float = 0.0  # smallest step between two figures, log: an effect below it is none

    @property
    def sent(self) -> Values:
        """(n,) log-effect of each rank as sender, 0 where unknown."""
        return _known(self.sent_bounds[1])

    @property
    def received(self) -> Values:
        """(n,) as receiver."""
        return _known(self.received_bounds[1])

    def path_effect(self, most: float = np.inf) -> Values:
        """(W,) log-effect of each way: that of its slowest segment, `most` of it at most."""
        if not self.message_paths.segments.shape[1]:
            return np.zeros(self.message_paths.segments.shape[0], dtype=np.float32)
        effect = np.append(np.clip(self.segment[:-1], -most, most), -np.inf)[self.message_paths.segments].max(axis=1)
        return np.where(np.isfinite(effect), effect, 0.0).astype(np.float32)


def _known(effect: Floats) -> Values:
    return np.where(np.isnan(effect), 0.0, effect).astype(np.float32)


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
    """Fit the model to log times; `pairs` is changed in place to residuals from the class, population and time.

    `started` (n, m): s since the start of the run, where it is known when each pair was measured. `stream`: bytes of a
    message, of streams.

    Messages that stay on a host tell nothing about the fabric: they get a class of their own and are then left out,
    except in a run on one host alone.
    """
    step = step_of(pairs.value[pairs.sample_cells()])
    once = balanced(pairs, classes.placement)
    offsets = _class_offsets(pairs, classes, None, once, settings.tolerance)
    _subtract_classes(pairs, classes, offsets, fabric_only=len(classes.placement.hosts) > 1)
    informative = balanced(pairs, classes.placement, classes.informative(pairs, offsets, settings.tolerance))
    sent, received = _polish(_of_ends(pairs, informative))
    effects = Effects(
        class_log_time=offsets,
        residual=pairs,
        classes=classes,
        message_paths=message_paths,
        bidirectional=bidirectional,
        informative=informative,
        sent_bounds=sent,
        received_bounds=received,
        segment=np.zeros(message_paths.count + 1, dtype=np.float32),
        segment_upper=np.full(message_paths.count, np.nan, dtype=np.float32),
        noise=FINEST_NOISE,
        host_tolerance=settings.tolerance,
        link_tolerance=settings.tolerance,
        step=step,
    )
    effects = _in_populations(effects, settings, stream)
    effects = _recentred(effects, once, settings.tolerance)
    effects = _without_drift(effects, started)
    effects = replace(effects, noise=_noise(effects))
    crossed, segment, upper = _segments(effects)
    effects = replace(effects, segment=np.append(segment, np.float32(0)), segment_upper=upper)
    noise = _noise(effects)
    measured = max(1, int(np.count_nonzero(~np.isnan(pairs.value))))
    ends = (effects.sent_bounds, effects.received_bounds)
    hosts = max(_own_spread(bounds[1], noise, measured / pairs.ranks) for bounds in ends)
    fitted = np.flatnonzero(crossed[: message_paths.known_links] >= FITTED_FROM)
    links = _own_spread(segment[fitted], noise, float(np.median(crossed[fitted]))) if fitted.size else 0.0
    return replace(
        effects,
        noise=noise,
        host_tolerance=max(settings.tolerance, settings.spread_factor * hosts, ONE_STEP * step),
        link_tolerance=max(settings.tolerance, settings.spread_factor * links, ONE_STEP * step),
    )


def _in_populations(effects: Effects, settings: Settings, stream: int | None) -> Effects:
    """The same model where each host is compared with its own population, if there are several."""
    pairs, placement = effects.residual, effects.classes.placement
    if len(placement.hosts) < 2:
        return effects
    left = leftover_of(effects, pairs.sample_cells())
    each = np.count_nonzero(~np.isnan(pairs.value)) / pairs.ranks
    error, ends = max(error_of(left, each), effects.step), _of_ends(pairs, effects.informative)
    every = tuple(
        populations_of(
            pairs, bounds[1], best_of_ranks(ends, sent=sent), error, placement, settings.tolerance, sent=sent
        )
        for bounds, sent in ((effects.sent_bounds, True), (effects.received_bounds, False))
    )
    fastest = min(effects.class_log_time.values(), default=0.0)
    rate = placement.line_rate, settings.line_rate_share
    undecided = (one and not (stream and is_anchored(one, fastest, stream, *rate)) for one in every)
    found = [one if open_ else None for one, open_ in zip(every, undecided, strict=True)]
    if not any(found):
        return effects
    subtract(pairs, effects.classes, placement, found[0], found[1])
    sent, received = _polish(_of_ends(pairs, effects.informative))
    return replace(effects, sent_bounds=sent, received_bounds=received, populations=(found[0], found[1]))


def _without_drift(effects: Effects, started: Floats | None) -> Effects:
    """The same model without what the time of measurement adds to the pairs of all hosts."""
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
    sent, received = _polish(_of_ends(pairs, effects.informative))
    return replace(effects, sent_bounds=sent, received_bounds=received, drift=drift)


def without(effects: Effects, explained: npt.NDArray[np.bool_]) -> Effects:
    """The same model where the explained cells (n, m) are set aside: what the others allow each part to lose.

    Changes the residuals in place. Only ends and segments are fitted again; what is healthy stays.
    """
    pairs = effects.residual
    pairs.value[explained] = np.nan
    ends = _of_ends(pairs, effects.informative)
    sent = _medians(ends, ends.sent, effects.received_bounds[1])
    received = _medians(ends, ends.received, sent[1])
    effects = replace(effects, sent_bounds=sent, received_bounds=received, segment=np.zeros_like(effects.segment))
    _, segment, upper = _segments(effects)
    return replace(effects, segment=np.append(segment, np.float32(0)), segment_upper=upper)


def leftover(effects: Effects, rows: slice | Codes, *, cap: bool = False) -> Values:
    """(rows, m) what the model does not explain.

    With `cap`, effects of parts explain at most what is tolerated of them: what is left of a healthy pair is noise,
    and of a sick one its loss beyond the tolerance.
    """
    pairs = effects.residual
    host, link = (effects.host_tolerance, effects.link_tolerance) if cap else (np.inf, np.inf)
    left = pairs.value[rows] - np.clip(effects.sent, -host, host)[np.arange(pairs.ranks)[rows], None]
    left -= np.clip(effects.received, -host, host)[pairs.partners(rows)]
    if effects.message_paths.count:
        left -= effects.path_effect(link)[effects.message_paths.of_rows(pairs, rows)]
    return left


def leftover_of(effects: Effects, cells: Cells) -> Values:
    """(k,) what the model does not explain of these cells."""
    pairs = effects.residual
    left = pairs.value[cells] - effects.sent[cells[0]] - effects.received[pairs.destination(cells)]
    if effects.message_paths.count:
        left -= effects.path_effect()[effects.message_paths.of_cells(pairs, cells)]
    return np.asarray(left, dtype=np.float32)


def _class_offsets(
    pairs: Pairs, classes: Classes, effects: Effects | None, once: Mask | None, least: float
) -> dict[int, float]:
    """Log time of each class that occurs: the median, in a sample of a large run; without the effects of the parts.

    `least` is the smallest difference that matters. `once` are the cells of pairs that were measured equally often,
    None: all.
    """
    cells = pairs.sample_cells()
    if once is not None:
        chosen = once[cells]
        cells = (cells[0][chosen], cells[1][chosen])
    values = pairs.value[cells] if effects is None else leftover_of(effects, cells)
    known = {} if effects is None else effects.class_log_time
    codes = classes.of_cells(pairs, cells)
    found, counts = {}, {}
    for code, count in zip(*(values.tolist() for values in np.unique(codes, return_counts=True)), strict=True):
        if code == SCOPES.index(Scope.UNKNOWN) and _strangers(classes.placement) < FEWEST_STRANGERS:
            continue  # alone in its class, a host would be what is usual there
        if code < len(SCOPES) or count >= FEWEST_ALIKE:  # what few others collided like is compared with nobody
            here = codes == code
            usual = float(np.median(values[here]))
            a, b = (classes.placement.switch[end[here]] for end in (cells[0], pairs.destination(cells)))
            few = len(classes.placement.switches) <= MOST_FEW  # of more, a class of few is one distance among several
            if few and ((a != b) & (a >= 0) & (b >= 0)).all():
                usual = usual_without_one(values[here], a, b, usual, least)
            found[code], counts[code] = usual + known.get(code, 0.0), count
    return classes.plausible(found, counts)


def _strangers(placement: Placement) -> int:
    """Hosts that a topology does not name, be there one."""
    return np.unique(placement.host[placement.switch < 0]).size if placement.switches else len(placement.hosts)


def _subtract_classes(pairs: Pairs, classes: Classes, offsets: dict[int, float], *, fabric_only: bool) -> None:
    known = np.full(classes.count, np.nan, dtype=np.float32)
    for code, offset in offsets.items():
        known[code] = offset
    if fabric_only:
        known[SCOPES.index(Scope.INTRA_NODE) :: len(SCOPES)] = np.nan
    for rows in pairs.blocks():
        pairs.value[rows] -= known[classes.of_rows(pairs, rows)]


def _recentred(effects: Effects, once: Mask | None, least: float) -> Effects:
    """The same model with noise around 0 in every class.

    The class offsets were medians of sums of uneven effects; now that the effects are known, what is left over says
    where the class really is. Without this, few and uneven hosts make all links look slow.
    """
    pairs, before = effects.residual, effects.class_log_time
    after = _class_offsets(pairs, effects.classes, effects, once, least)
    shift = {code: after[code] - offset for code, offset in before.items() if code in after}
    _subtract_classes(pairs, effects.classes, shift, fabric_only=False)
    return replace(effects, class_log_time={**before, **after})


def _of_ends(pairs: Pairs, informative: npt.NDArray[np.bool_] | None) -> Pairs:
    """The pairs that tell how fast their ends are."""
    return (
        pairs if informative is None else replace(pairs, value=np.where(informative, pairs.value, np.float32(np.nan)))
    )


def _polish(pairs: Pairs) -> tuple[Floats, Floats]:
    """Bounds and medians of the effects of senders and receivers, both centred on 0."""
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
    """(3, n) median of each rank over its partners, their own effects taken out first."""
    known = np.nan_to_num(partner_effect)
    centre, scatter = np.median(known), max(robust_sd(known), FINEST_NOISE)
    odd = np.abs(known - centre) > STANDS_OUT * scatter
    effect = known.astype(np.float32)
    without_odd = np.where(odd, np.float32(np.nan), effect)
    bounds = np.empty((3, pairs.ranks))
    for rows in pairs.blocks():
        partners = pairs.partners(rows)
        values = values_of(rows) - without_odd[partners]
        silent = np.count_nonzero(~np.isnan(values), axis=1) < 3
        if silent.any():  # nobody else was measured: better an odd partner than none
            values[silent] = values_of(rows)[silent] - effect[np.broadcast_to(partners, values.shape)[silent]]
        bounds[:, rows] = row_medians(values)
    with np.errstate(all="ignore"):
        return bounds - np.nan_to_num(np.nanmedian(bounds[1])) if not np.isnan(bounds[1]).all() else bounds


def _noise(effects: Effects) -> float:
    pairs = effects.residual
    return max(robust_sd(leftover_of(effects, pairs.sample_cells())), FINEST_NOISE)


def _own_spread(effect: npt.NDArray[np.floating], noise: float, pairs: float) -> float:
    """Robust standard deviation of the parts themselves, beyond the noise of a median of so many pairs.

    Of few parts it may come out far too small by chance, and is widened for that.
    """
    parts = max(1, int(np.count_nonzero(~np.isnan(effect))))
    own = np.sqrt(max(0.0, robust_sd(effect) ** 2 - (MEDIAN_ERROR * noise) ** 2 / pairs))
    return float(own * (1 + FEW_PARTS / parts))


def _segments(effects: Effects) -> tuple[Codes, Values, Values]:
    """(segments,) pairs in the sample that cross each, the median of what they leave over, and its upper 95 % bound.

    The bound is the median's own, by order statistics, or that of a median of as many pairs with the noise of all, for
    all segments together; whichever is less. The median is 0 where fewer than FITTED_FROM tell, the bound NaN where
    fewer than FEWEST_VALUES do.
    """
    message_paths, pairs = effects.message_paths, effects.residual
    median, upper = np.zeros(message_paths.count, np.float32), np.full(message_paths.count, np.nan, np.float32)
    if not message_paths.count:
        return np.zeros(0, dtype=np.int64), median, upper
    cells = pairs.sample_cells(SEGMENT_CELLS)
    left = leftover_of(effects, cells)
    taken = [message_paths.of_cells(pairs, cells)]
    if effects.bidirectional:
        taken.append(message_paths.between(pairs.destination(cells), cells[0]))
    segment = np.concatenate([message_paths.segments[path].T.ravel() for path in taken])
    value = np.tile(left, segment.size // max(1, left.size))
    segment, value = segment[segment >= 0], value[segment >= 0]
    if not value.size:
        return np.zeros(message_paths.count, dtype=np.int64), median, upper
    grouped = GroupedValues.of(value, segment, message_paths.count)
    crossed, middle = grouped.count, grouped.upper_medians()
    fitted, known = crossed >= FITTED_FROM, crossed >= FEWEST_VALUES
    median[fitted] = middle[fitted]
    bound = np.minimum(grouped.at(interval_ranks(crossed)[1]), middle + median_error(crossed, effects.noise))
    upper[known] = bound[known]
    return crossed, median, upper


def median_error(pairs: Codes, noise: float) -> Floats:
    """By how much the medians of so many pairs each may be too small, all of them together in 95 % of runs.

    Few pairs bound their median badly by themselves; the fabric's noise, common to all, bounds it better.
    """
    return np.asarray(MEDIAN_ERROR * noise * -ndtri(0.05 / pairs.size) / np.sqrt(np.maximum(pairs, 1)))


def healthy_scatter(effects: Effects) -> tuple[Values, npt.NDArray[np.uint8], Cells]:
    """A sample of what the model leaves over, the class of each value, and the cells.

    Fitting k parameters to n values makes the rest too small by sqrt(1 - k / n); this is undone.
    """
    pairs = effects.residual
    cells = pairs.sample_cells()
    left = leftover_of(effects, cells)
    measured = int(np.count_nonzero(~np.isnan(pairs.value)))
    parameters = sum(
        int(np.count_nonzero(~np.isnan(bounds[1]))) for bounds in (effects.sent_bounds, effects.received_bounds)
    )
    parameters += int(np.count_nonzero(effects.segment))
    inflate = np.sqrt(measured / max(measured - parameters, measured / 16, 1))
    return left * np.float32(inflate), effects.classes.of_cells(pairs, cells), cells
