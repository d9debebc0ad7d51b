"""One pass over the arrays of a row, in blocks: maps, distributions and worst pairs of all its sizes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fablint.model import SCOPES, Fit, Placement, Row, Scope
from fablint.model.arrays import Codes
from fablint.report.survey.heatmap import HeatMap

BLOCK_CELLS = 4_000_000  # of one block of sources, all sizes and repeats: about 400 MB at work
WORST_PAIRS = 100
_BIN = 2e-3  # width of a bin of the logarithm: quantiles are good to 0.1 %
_LOWEST = float(np.log(1e-10))
_BINS = round((np.log(1e4) - _LOWEST) / _BIN)


@dataclass(frozen=True)
class Block:
    """Some source ranks: partners (b or 1, m) int32, -1 where idle, and log times (b, m, sizes), NaN where missing."""

    src: np.ndarray
    dst: np.ndarray
    log_time: np.ndarray


@dataclass(frozen=True)
class OutlierPair:
    """A directed pair that stands out. `residual` is the log of its time over the model's; NaN without a model."""

    src: int
    dst: int
    seconds: float
    residual: float


def blocks(row: Row) -> Iterator[Block]:
    """The row's times, a bounded number of cells at a time."""
    values = row.times
    shape = values.shape if row.layout == "list" else values.shape[1:]
    repeats = 1 if row.layout == "list" else values.shape[0]
    step = max(1, BLOCK_CELLS // max(1, repeats * shape[1] * shape[2]))
    everyone = np.arange(shape[1], dtype=np.int32)[None]
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        if row.layout == "list":
            times, dst = values[start:stop], row.arrays["dst"][start:stop]
        else:
            times, dst = _over_repeats(values[:, start:stop]), everyone
        times = np.asarray(times, dtype=np.float32)
        log_time = np.log(times, where=times > 0, out=np.full_like(times, np.nan))
        yield Block(np.arange(start, stop), np.asarray(dst), log_time)


def _over_repeats(times: np.ndarray) -> np.ndarray:
    """(repeat, b, m, size) to (b, m, size): the median of the repeats that were measured."""
    if times.shape[0] == 1:
        return np.asarray(times[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cell that no repeat measured stays NaN
        return np.asarray(np.nanmedian(times, axis=0))


def counted(row: Row) -> str:
    """Return what a distribution counts: pairs, measurements where a list has a pair twice, ranks of a collective."""
    if row.pattern == "world":
        return "rank"
    if row.layout != "list":
        return "pair"
    partners = np.sort(np.asarray(row.arrays["dst"][:]), axis=1)
    repeated = (partners[:, 1:] == partners[:, :-1]) & (partners[:, 1:] >= 0)
    return "measurement" if repeated.any() else "pair"


class Distribution:
    """Counts of pair times in narrow bins of the logarithm, per scope; extremes are exact."""

    def __init__(self) -> None:
        self.counts = np.zeros((len(SCOPES), _BINS), dtype=np.int64)
        self.lowest, self.highest = np.full(len(SCOPES), np.inf), np.full(len(SCOPES), -np.inf)

    def add(self, log_time: np.ndarray, scope: np.ndarray) -> None:
        """Log times and scope codes of measured pairs, both (k,)."""
        bins = np.clip(((log_time - _LOWEST) / _BIN).astype(np.int32), 0, _BINS - 1)
        joint = np.bincount(scope.astype(np.int32) * _BINS + bins, minlength=self.counts.size)
        self.counts += joint.reshape(self.counts.shape)
        for code in np.flatnonzero(np.bincount(scope, minlength=len(SCOPES))):
            scope_times = log_time if (scope == code).all() else log_time[scope == code]
            self.lowest[code] = min(self.lowest[code], scope_times.min())
            self.highest[code] = max(self.highest[code], scope_times.max())

    def scopes(self) -> list[Scope]:
        """Scopes in which anything was measured."""
        return [scope for code, scope in enumerate(SCOPES) if self.counts[code].any()]

    def pairs(self, *scopes: Scope) -> int:
        """Return the number of measured pairs of these scopes; of all scopes without an argument."""
        return int(sum(self.counts[SCOPES.index(scope)].sum() for scope in scopes or SCOPES))

    def quantile(self, share: float, *scopes: Scope) -> float:
        """Seconds below which a share of the pairs of these scopes (default: all) lies; NaN without pairs."""
        codes = [SCOPES.index(scope) for scope in scopes or SCOPES]
        counts = self.counts[codes].sum(axis=0)
        total = counts.sum()
        if not total:
            return float("nan")
        low, high = self.lowest[codes].min(), self.highest[codes].max()
        cumulated = np.cumsum(counts)
        at = int(np.searchsorted(cumulated, share * total, side="left"))
        before = cumulated[at] - counts[at]
        inside = (share * total - before) / counts[at] if counts[at] else 0.0
        return float(np.exp(np.clip(_LOWEST + (at + inside) * _BIN, low, high)))

    def mean(self, scope: Scope, *, inverse: bool = False) -> float:
        """Mean time of a scope's pairs in seconds, `inverse` of 1 / time; good to 0.1 %. NaN without pairs."""
        counts = self.counts[SCOPES.index(scope)]
        used = np.flatnonzero(counts)
        if not used.size:
            return float("nan")
        log_time = _LOWEST + (used + 0.5) * _BIN
        return float(np.average(np.exp(-log_time if inverse else log_time), weights=counts[used]))

    def histogram(self, scope: Scope, edges: np.ndarray) -> np.ndarray:
        """Pairs of a scope between the edges (seconds), the last bin with everything above: (len(edges) - 1,)."""
        cumulated = np.concatenate([[0], np.cumsum(self.counts[SCOPES.index(scope)])])
        places = np.clip((np.log(edges) - _LOWEST) / _BIN, 0, _BINS)
        below = np.rint(np.interp(places, np.arange(_BINS + 1), cumulated))  # whole pairs, none lost between bins
        below[0], below[-1] = 0, cumulated[-1]
        return np.diff(below)


class SizeSurvey:
    """What the report shows of one size of a row."""

    def __init__(self, row: Row, size: int, fit: Fit | None, placement: Placement, heatmap: HeatMap | None) -> None:
        self.row, self.size, self.fit, self.heatmap = row, size, fit, heatmap
        self.placement = placement
        self.distribution = Distribution()
        self.worst: list[OutlierPair] = []
        times = [fit.class_time.get(scope, np.nan) if fit else np.nan for scope in SCOPES]
        with np.errstate(all="ignore"):
            self.class_log = np.log(np.array(times, dtype=np.float32))

    @property
    def worst_ends(self) -> tuple[Codes, Codes]:
        """Senders and receivers of the slowest pairs, (k,) each."""
        src, dst = np.array([(pair.src, pair.dst) for pair in self.worst], dtype=np.int32).reshape(-1, 2).T
        return src, dst

    def add(self, block: Block, log_time: np.ndarray, scope: np.ndarray) -> None:
        """Add the (b, m) logarithms of seconds of this size, NaN where not measured; `scope` (b, m) indexes SCOPES."""
        residual = self._residual(block, log_time, scope)
        measured = np.isfinite(log_time)
        self.distribution.add(log_time[measured], scope[measured])
        if self.heatmap is not None:
            self.heatmap.add(block.src, block.dst, log_time, residual)
        self._keep_worst(block, log_time, residual)

    def _residual(self, block: Block, log_time: np.ndarray, scope: np.ndarray) -> np.ndarray:
        """The log time over that of a healthy fabric: scope, and what a healthy sender and receiver add."""
        if self.fit is None:
            return np.full_like(log_time, np.nan)
        tx, rx = (np.asarray(effect, dtype=np.float32) for effect in self.fit.healthy)
        return np.asarray(log_time - self.class_log[scope] - tx[block.src][:, None] - rx[np.maximum(block.dst, 0)])

    def _keep_worst(self, block: Block, log_time: np.ndarray, residual: np.ndarray) -> None:
        key = (log_time if self.fit is None else residual).ravel()
        key = np.where(np.isnan(key), -np.inf, key)
        count = min(WORST_PAIRS, key.size)
        columns = log_time.shape[1]
        partner = np.broadcast_to(block.dst, log_time.shape)
        for cell in np.argpartition(-key, count - 1)[:count]:
            if np.isfinite(key[cell]):
                line, column = divmod(int(cell), columns)
                seconds = float(np.exp(log_time[line, column]))
                ends = int(block.src[line]), int(partner[line, column])
                self.worst.append(OutlierPair(*ends, seconds, float(residual[line, column])))
        self.worst.sort(key=lambda pair: -(pair.seconds if self.fit is None else pair.residual))
        del self.worst[WORST_PAIRS:]


def survey(
    row: Row, fits: dict[int, Fit], placement: Placement, order: np.ndarray, side: int | None = None
) -> list[SizeSurvey]:
    """Survey all sizes of a row in one pass. `fits` by size; `order` and `side` as in `HeatMap`; None: without maps."""
    rounds = row.arrays["dst"].shape[1] if row.layout == "list" else None
    surveys = [
        SizeSurvey(row, size, fits.get(size), placement, None if side is None else HeatMap(order, side, rounds))
        for size in row.sizes
    ]
    unknown = SCOPES.index(Scope.UNKNOWN)  # a collective has no partner, and so no scope
    for block in blocks(row):
        scope = np.where(block.dst < 0, unknown, placement.scopes(block.src[:, None], np.maximum(block.dst, 0)))
        for index, item in enumerate(surveys):
            item.add(block, block.log_time[:, :, index], scope)
    return surveys
