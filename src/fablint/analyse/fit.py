"""Fit what a healthy pair takes, and what each part adds: class offsets, senders, receivers, pairs of switches.

    log time(i -> j) = class(scope of i, j) + sent(i) + received(j) + between(switch of i, switch of j) + noise

by medians throughout (Tukey's median polish, in which partners that stand out themselves have no say), so that a
few sick parts do not change what healthy is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fablint.analyse.pairs import Pairs, Values
from fablint.analyse.places import Codes, Places
from fablint.analyse.quantiles import FEWEST_VALUES, Floats, interval_ranks, robust_sd, row_medians
from fablint.analyse.settings import Settings
from fablint.model import SCOPES, Scope

PASSES = 3
STANDS_OUT = 3.3  # robust standard deviations from which a partner has no say
LEVELS = 512  # of the histogram that finds the medians between switches
FEW_PARTS = 5  # so many parts have their spread doubled
FINEST_NOISE = 1e-3  # times are not known better than 0.1 %


@dataclass(frozen=True)
class Effects:
    """The fitted model. Arrays named `*_bounds` hold lower 95 % bound, median and upper bound in their first axis."""

    class_log_time: dict[int, float]  # by position in SCOPES
    residual: Pairs  # log times less their class; NaN where missing or not judged
    sent_bounds: Floats  # (3, n)
    received_bounds: Floats  # (3, n)
    between: Values  # (S + 1, S + 1) log-effect of source and destination switch; 0 in the last, which -1 finds
    between_upper: Values  # (S + 1, S + 1) its upper 95 % bound, NaN where not fitted
    noise: float  # robust standard deviation of what is left over
    host_tolerance: float  # how much slower than its peers a healthy host may be
    link_tolerance: float

    @property
    def sent(self) -> Values:
        """(n,) log-effect of each rank as sender, 0 where unknown."""
        return _known(self.sent_bounds[1])

    @property
    def received(self) -> Values:
        """(n,) as receiver."""
        return _known(self.received_bounds[1])


def _known(effect: Floats) -> Values:
    return np.where(np.isnan(effect), 0.0, effect).astype(np.float32)


def fit(pairs: Pairs, places: Places, settings: Settings) -> Effects:
    """Fit the model to log times; `pairs` is changed in place to residuals from the class.

    Messages that stay on a host tell nothing about the fabric: they get a class of their own and are then left out,
    except in a run on one host alone.
    """
    classes = _class_offsets(pairs, places, pairs.value[pairs.sample_rows()])
    _subtract_classes(pairs, places, classes, fabric_only=len(places.hosts) > 1)
    sent, received = _polish(pairs)
    size = len(places.switches) + 1
    effects = Effects(
        class_log_time=classes,
        residual=pairs,
        sent_bounds=sent,
        received_bounds=received,
        between=np.zeros((size, size), dtype=np.float32),
        between_upper=np.full((size, size), np.nan, dtype=np.float32),
        noise=FINEST_NOISE,
        host_tolerance=settings.tolerance,
        link_tolerance=settings.tolerance,
    )
    effects = _recentred(effects, places)
    noise = _noise(effects, places)
    between, upper = _between_switches(effects, places, noise, settings)
    effects = replace(effects, between=between, between_upper=upper)
    noise = _noise(effects, places)
    measured = max(1, int(np.count_nonzero(~np.isnan(pairs.value))))
    hosts = max(_own_spread(bounds[1], noise, measured / pairs.ranks) for bounds in (sent, received))
    blocks = max(1, int(np.count_nonzero(~np.isnan(upper))))
    links = _own_spread(between[~np.isnan(upper)], noise, measured / blocks)
    return replace(
        effects,
        noise=noise,
        host_tolerance=max(settings.tolerance, settings.spread_factor * hosts),
        link_tolerance=max(settings.tolerance, settings.spread_factor * links),
    )


def leftover(effects: Effects, places: Places, rows: slice | Codes, *, cap: bool = False) -> Values:
    """(rows, m) what the model does not explain.

    With `cap`, effects of parts explain at most what is tolerated of them: what is left of a healthy pair is noise,
    and of a sick one its loss beyond the tolerance.
    """
    pairs = effects.residual
    partners = pairs.partners(rows)
    rank_rows = np.arange(pairs.ranks)[rows]
    host, link = (effects.host_tolerance, effects.link_tolerance) if cap else (np.inf, np.inf)
    left = pairs.value[rows] - np.clip(effects.sent, -host, host)[rank_rows, None]
    left -= np.clip(effects.received, -host, host)[partners]
    if places.switches:
        between = np.clip(effects.between, -link, link)
        left -= between[places.switch[rank_rows][:, None], places.switch[partners]]
    return left


def pair_scopes(pairs: Pairs, places: Places, rows: slice | Codes) -> npt.NDArray[np.uint8]:
    """(rows, m) scope of each pair, as its position in SCOPES."""
    return places.placement.scopes(np.arange(pairs.ranks)[rows][:, None], pairs.partners(rows))


def _class_offsets(pairs: Pairs, places: Places, values: Values) -> dict[int, float]:
    """Median of each scope that occurs; `values` are those of the sampled rows of a large run."""
    scopes = np.broadcast_to(pair_scopes(pairs, places, pairs.sample_rows()), values.shape)
    scopes = np.where(np.isnan(values), len(SCOPES), scopes)
    return {int(code): float(np.median(values[scopes == code])) for code in np.unique(scopes) if code < len(SCOPES)}


def _subtract_classes(pairs: Pairs, places: Places, classes: dict[int, float], *, fabric_only: bool) -> None:
    offsets = np.zeros(len(SCOPES), dtype=np.float32)
    for code, offset in classes.items():
        offsets[code] = offset
    if fabric_only:
        offsets[SCOPES.index(Scope.INTRA_NODE)] = np.nan
    for rows in pairs.blocks():
        pairs.value[rows] -= offsets[pair_scopes(pairs, places, rows)]


def _recentred(effects: Effects, places: Places) -> Effects:
    """The same model with noise around 0 in every class.

    The class offsets were medians of sums of uneven effects; now that the effects are known, what is left over says
    where the class really is. Without this, few and uneven hosts make all links look slow.
    """
    pairs = effects.residual
    shift = _class_offsets(pairs, places, leftover(effects, places, pairs.sample_rows()))
    _subtract_classes(pairs, places, shift, fabric_only=False)
    classes = {code: offset + shift.get(code, 0.0) for code, offset in effects.class_log_time.items()}
    return replace(effects, class_log_time=classes)


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


def _noise(effects: Effects, places: Places) -> float:
    sample = leftover(effects, places, effects.residual.sample_rows())
    return max(robust_sd(sample), FINEST_NOISE)


def _own_spread(effect: npt.NDArray[np.floating], noise: float, pairs: float) -> float:
    """Robust standard deviation of the parts themselves, beyond the noise of a median of so many pairs.

    Of few parts it may come out far too small by chance, and is widened for that.
    """
    parts = max(1, int(np.count_nonzero(~np.isnan(effect))))
    own = np.sqrt(max(0.0, robust_sd(effect) ** 2 - (1.2533 * noise) ** 2 / pairs))
    return float(own * (1 + FEW_PARTS / parts))


def _between_switches(effects: Effects, places: Places, noise: float, settings: Settings) -> tuple[Values, Values]:
    """(S + 1, S + 1) medians of what is left between every two switches, and their upper 95 % bounds.

    From histograms of steps of an eighth of the noise, so that one pass over the pairs does for all blocks.
    """
    size = len(places.switches) + 1
    median, upper = np.zeros((size, size), np.float32), np.full((size, size), np.nan, np.float32)
    if not places.switches:
        return median, upper
    step = max(noise / 8, 4 * settings.tolerance / LEVELS)
    pairs = effects.residual
    for switch in np.unique(places.switch[places.switch >= 0]):
        rows = np.nonzero(places.switch == switch)[0]
        left = leftover(effects, places, rows)
        other = np.broadcast_to(places.switch[pairs.partners(rows)], left.shape)
        use = ~np.isnan(left) & (other >= 0)
        level = np.clip(left[use] / step + LEVELS / 2, 0, LEVELS - 1).astype(np.int64)
        counts = np.bincount(other[use] * LEVELS + level, minlength=size * LEVELS).reshape(size, LEVELS)
        total = counts.sum(axis=1)
        below = counts.cumsum(axis=1)
        fitted = total >= FEWEST_VALUES
        for ranks, found in ((total // 2, median), (interval_ranks(total)[1], upper)):
            at = (below <= ranks[:, None]).sum(axis=1)  # the level that holds the value of this rank
            found[switch, fitted] = ((at - LEVELS / 2 + 0.5) * step)[fitted]
    return median, upper


def healthy_scatter(effects: Effects, places: Places) -> tuple[Values, npt.NDArray[np.uint8]]:
    """A sample of what the model leaves over, and the scope of each value.

    Fitting k parameters to n values makes the rest too small by sqrt(1 - k / n); this is undone.
    """
    pairs = effects.residual
    rows = pairs.sample_rows()
    left = leftover(effects, places, rows)
    use = ~np.isnan(left)
    cells = int(np.count_nonzero(~np.isnan(pairs.value)))
    parameters = sum(
        int(np.count_nonzero(~np.isnan(bounds[1]))) for bounds in (effects.sent_bounds, effects.received_bounds)
    )
    parameters += int(np.count_nonzero(~np.isnan(effects.between_upper)))
    inflate = np.sqrt(cells / max(cells - parameters, cells / 16, 1))
    return left[use] * np.float32(inflate), pair_scopes(pairs, places, rows)[use]
