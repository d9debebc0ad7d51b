"""Time of slow measurements: periods in which most hosts were slow, drift, and begin and end of a component's
slowness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from fablint.analyse.observations.robust_stats import MEDIAN_ERROR, average_ranks, parts_of_time, robust_sd
from fablint.analyse.settings import (
    CHANCE,
    FEWEST_INDEPENDENT,
    FEWEST_OF_SPREAD,
    FEWEST_PEERS,
    FEWEST_POOL,
    FEWEST_VALUES,
    HALF,
    LONG_STRETCHES,
    MOST,
    MOSTLY,
    NEARLY_ALL,
    NOISIER,
    RANDOM_ORDERS,
    STRETCHES,
    Settings,
)
from fablint.model import EvidenceRecord, Placement
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.figures.grouped_values import GroupedValues
from fablint.model.registry import Quantity
from fablint.text import evidence as seen, units

PERIODS = frozenset({"since", "until", "between"})  # kinds of slow times that begin or end within the run
MOST_WINDOWS = 32  # windows into which the time of a row is cut


@dataclass(frozen=True)
class TimedCells:
    """The measured pairs of one view."""

    row: str
    quantity: Quantity
    size: int
    src: Codes  # (k,) ranks
    dst: Codes
    excess: Floats  # (k,) log time less its class, with the effects of components
    started: Floats  # (k,) s since the start of the run, NaN where unknown
    unexplained: Floats | None = None  # (k,) `excess` without what the model takes out as the time; None: the same

    @property
    def name(self) -> str:
        """Name of the row and size."""
        return f"{self.row} {units.size(self.size)}"


@dataclass(frozen=True)
class Period:
    """A period in which pairs of many hosts were slow."""

    begin: float  # s since the run's start
    end: float
    excess: float  # log-effect
    hosts: int  # number of slow hosts


def slow_periods(view: TimedCells, placement: Placement, settings: Settings) -> list[Period]:
    """Return the periods in which most hosts were slow: cells that began in them are not evidence about components."""
    windows = windows_of(view)
    if len(windows) < 4:
        return []
    middles = np.array([np.median(view.excess[window]) for window in windows])
    usual = float(np.median(middles))
    slow = np.flatnonzero(middles > usual + settings.tolerance)
    if not slow.size or slow.size > HALF * len(windows):
        return []
    periods = []
    for stretch in np.split(slow, np.flatnonzero(np.diff(slow) > 1) + 1):
        cells = np.concatenate([windows[window] for window in stretch])
        hosts = _slow_hosts(view, placement, cells, usual + settings.tolerance)
        if hosts is not None:
            began = view.started[cells]
            excess = float(np.median(view.excess[cells])) - usual
            periods.append(Period(float(began.min()), float(began.max()), excess, hosts))
    return periods


def windows_of(view: TimedCells) -> list[Codes]:
    """Return the cells in order of time, in windows of equally many cells; a round is not divided."""
    timed = np.flatnonzero(np.isfinite(view.started) & np.isfinite(view.excess))
    timed = timed[np.argsort(view.started[timed], kind="stable")]
    count = min(MOST_WINDOWS, timed.size // FEWEST_POOL)
    if count < 1:
        return []
    began = view.started[timed]
    bounds = np.unique(np.searchsorted(began, began[(np.arange(1, count) * timed.size) // count]))
    return [window for window in np.split(timed, bounds) if window.size >= FEWEST_POOL]


def _slow_hosts(view: TimedCells, placement: Placement, cells: Codes, limit: float) -> int | None:
    """Return the number of slow hosts in these cells; None if few hosts were slow, or one host that all others met."""
    a, b = placement.host[view.src[cells]], placement.host[view.dst[cells]]
    slow = view.excess[cells] > limit
    count = np.bincount(np.concatenate([a, b]), minlength=len(placement.hosts))
    # Without the host with the most slow cells: it may be faulty, and the other hosts only its partners.
    busiest = int(np.bincount(np.concatenate([a[slow], b[slow]]), minlength=count.size).argmax())
    others = (a != busiest) & (b != busiest)
    if others.sum() < FEWEST_POOL or slow[others].mean() < MOST:
        return None
    slow_with_others = np.bincount(np.concatenate([a[slow & others], b[slow & others]]), minlength=count.size)
    measured_with_others = np.bincount(np.concatenate([a[others], b[others]]), minlength=count.size)
    slow_hosts = int((slow_with_others > measured_with_others / 2).sum())
    hosts_met = int((measured_with_others > 0).sum())
    return (
        slow_hosts
        if slow_hosts >= max(FEWEST_VALUES, MOST * hosts_met) and hosts_met > len(placement.hosts) / 2
        else None
    )


def drift_of(view: TimedCells, placement: Placement) -> float:
    """Return the log-effect from the first window to the last if the windows of most hosts rise or fall steadily;
    else 0.
    """
    windows = windows_of(view)
    if len(windows) < FEWEST_OF_SPREAD:
        return 0.0
    middles = np.array([np.median(view.excess[window]) for window in windows])
    order = np.arange(middles.size)
    if np.ptp(middles) == 0.0:
        return 0.0
    # Rank correlation (Spearman): by chance beyond 0.95 with eight windows less than once in a thousand times.
    if abs(np.corrcoef(order, average_ranks(middles))[0, 1]) < 0.95:
        return 0.0
    i, j = np.triu_indices(middles.size, 1)
    change = float(np.median((middles[j] - middles[i]) / (j - i))) * (middles.size - 1)  # Theil and Sen
    return change if _hosts_that_changed(view, placement, windows, change) >= MOST else 0.0


def _hosts_that_changed(view: TimedCells, placement: Placement, windows: list[Codes], change: float) -> float:
    """Return the share of hosts that changed by half of a drift between the halves of the time, or more.

    The pairs do not show the share: those of a third of the hosts are more than half of all pairs.
    """
    cells = np.concatenate(windows)
    hosts = placement.host[np.stack([view.src[cells], view.dst[cells]])].astype(np.int64)
    half = np.arange(cells.size) * 2 // cells.size
    levels = GroupedValues.of(np.tile(view.excess[cells], 2), (2 * hosts + half).ravel(), 2 * len(placement.hosts))
    before, after = levels.medians().reshape(-1, 2).T
    difference = (after - before)[np.isfinite(before) & np.isfinite(after)]
    # The middles of the halves are half of the time apart.
    return float((difference / change > HALF * HALF).mean()) if difference.size else 0.0


@dataclass(frozen=True)
class SlowTime:
    """Period of the measurement in which a component was slow."""

    kind: Literal["always", "since", "until", "between", "now and then"]
    begin: float  # s since the start of the run, of the first slow measurement
    end: float  # of the last slow measurement
    slow: int  # number of slow measurements
    measured: int  # number of all measurements

    @property
    def evidence(self) -> EvidenceRecord:
        """Return the period as evidence."""
        return seen.slow_when(when=self.kind, begin=self.begin, end=self.end, slow=self.slow, measured=self.measured)


@dataclass(frozen=True)
class Persistence:
    """Number of stretches of time in which a component was slow, and the begin and end of its slowness."""

    stretches: int
    when: SlowTime | None
    confirmed: bool  # whether follow-up measurements were slow as well

    @property
    def is_lasting(self) -> bool:
        """True if it was slow in at least two stretches, without a begin or an end."""
        begins = self.when is not None and self.when.kind in PERIODS
        return self.confirmed or (self.stretches >= FEWEST_INDEPENDENT and not begins)


def measure_persistence(started: Floats, times_of_row: Floats, slow: Mask, later: Mask) -> Persistence | None:
    """Return how lasting a component's slowness is; None if its measurements have no times.

    Parameters
    ----------
    started
        (k,) s, start of each measurement of the component; NaN where unknown.
    times_of_row
        Start of all measurements of the row, which define the stretches.
    slow
        (k,) whether the measurement was slow.
    later
        (k,) whether it was a follow-up measurement.
    """
    is_timed = np.isfinite(started)
    if not is_timed.any():
        return None
    edges = np.nanquantile(times_of_row, np.arange(1, LONG_STRETCHES) / LONG_STRETCHES)
    number = np.searchsorted(edges, started[is_timed], side="right")
    measured, slow_measured = (np.bincount(n, minlength=LONG_STRETCHES) for n in (number, number[slow[is_timed]]))
    slow_later = int(np.count_nonzero(slow & later))
    confirmed = slow_later >= FEWEST_PEERS and 2 * slow_later > int(later.sum())
    return Persistence(
        int(np.count_nonzero((measured > 0) & (2 * slow_measured > measured))), find_slow_time(started, slow), confirmed
    )


def error_over_time(excess: Floats, started: Floats | None, noise: float) -> float:
    """Return the standard error of the median of a component's cells due to variation over time, beyond the noise.

    Adjacent stretches may be slow together; the fewer of them are independent, the larger is the error. If the times
    are unknown (None), all cells may be of one stretch: the error is their spread beyond the noise.

    Parameters
    ----------
    excess
        (k,) log-effects of the cells.
    started
        (k,) s, start of each; None: unknown.
    noise
        Robust standard deviation of the noise of a cell.
    """
    if started is None:
        return float(np.sqrt(max(0.0, robust_sd(excess) ** 2 - (NOISIER * noise) ** 2)))
    return float(errors_over_time(excess[np.argsort(started, kind="stable")], noise))


def errors_over_time(excess: Floats, noise: float) -> Floats:
    """Return the (...) errors of `error_over_time`, of (..., k) log-effects of cells in the order of their times."""
    stretches = min(STRETCHES, excess.shape[-1] // FEWEST_PEERS)
    if stretches < FEWEST_INDEPENDENT:
        return np.zeros(excess.shape[:-1])
    middle = np.stack([np.median(values, axis=-1) for values in np.array_split(excess, stretches, axis=-1)], axis=-1)
    expected = (MEDIAN_ERROR * noise) ** 2 / (excess.shape[-1] / stretches)
    variance = np.maximum(0.0, np.var(middle, axis=-1, ddof=1) - expected)
    deviation = middle - middle.mean(axis=-1, keepdims=True)
    total = (deviation**2).sum(axis=-1)
    related = (deviation[..., 1:] * deviation[..., :-1]).sum(axis=-1) / np.where(total > 0, total, 1.0)
    related = np.maximum(0.0, related)
    independent = stretches * (1 - related) / (1 + related)
    return np.asarray(np.sqrt(variance / np.maximum(1.0, independent)))


def find_slow_time(started: npt.ArrayLike, slow: npt.ArrayLike) -> SlowTime | None:
    """Return when a component was slow; None if too few of its measurements have a time.

    The stretch of time with the largest surplus of slow measurements is compared with those of 500 random orders of the
    same measurements: a permutation test at 1 in 500.

    Parameters
    ----------
    started
        (k,) s, start of each measurement; NaN where unknown.
    slow
        (k,) whether the measurement was slower than tolerated.
    """
    time, flag = np.asarray(started, dtype=np.float64), np.asarray(slow, dtype=bool)
    is_timed = np.isfinite(time)
    order = np.argsort(time[is_timed], kind="stable")
    time, flag = time[is_timed][order], flag[is_timed][order]
    if flag.size < FEWEST_VALUES or not flag.any():
        return None
    first, last = np.flatnonzero(flag)[[0, -1]]
    counts = int(flag.sum()), flag.size
    begin, end = _stretch(flag)
    inside, outside = flag[begin:end], np.concatenate([flag[:begin], flag[end:]])
    is_distinct = inside.size > 0 and outside.size >= FEWEST_PEERS
    is_distinct = is_distinct and inside.mean() >= MOSTLY and outside.mean() <= 1 - MOSTLY
    if flag.mean() < NEARLY_ALL and is_distinct and _is_clustered(flag):
        kind: Literal["since", "until", "between"] = (
            "until" if begin == 0 else "since" if end == flag.size else "between"
        )
        return SlowTime(kind, float(time[begin]), float(time[end - 1]), *counts)
    is_mostly_slow = flag.mean() >= MOSTLY
    return SlowTime("always" if is_mostly_slow else "now and then", float(time[first]), float(time[last]), *counts)


def _surplus(flags: Mask) -> Floats:
    """Return (rows, k + 1) cumulative sums of slow measurements beyond the average."""
    excess = flags - flags.mean(axis=1, keepdims=True)
    return np.concatenate([np.zeros((len(flags), 1)), np.cumsum(excess, axis=1)], axis=1)


def _stretch(flag: Mask) -> tuple[int, int]:
    """Return begin and end of the stretch with the largest surplus of slow measurements."""
    total = _surplus(flag[None])[0]
    lowest = np.minimum.accumulate(total)
    end = int(np.argmax(total - lowest))
    return int(np.argmin(total[: end + 1])), end


def _is_clustered(flag: Mask) -> bool:
    """Return whether slow measurements are clustered more than by chance."""
    shuffled = np.random.default_rng(flag.size).permuted(np.tile(flag, (RANDOM_ORDERS, 1)), axis=1)
    rise = [
        (total - np.minimum.accumulate(total, axis=1)).max(axis=1)
        for total in (_surplus(flag[None]), _surplus(shuffled))
    ]
    return bool((rise[1] >= rise[0] - 1e-9).sum() == 0)


def uneven_times(started: Floats, slow: Mask, cluster: Codes) -> EvidenceRecord | None:
    """Return why measurements were not equally slow at all times: of one period, or uneven; None: they were.

    Parameters
    ----------
    started
        (k,) s, start of each measurement; NaN where unknown.
    slow
        (k,) whether each was slow.
    cluster
        (k,) what each is a repetition of: such measurements depend on each other.
    """
    when = find_slow_time(started, slow)
    if when is not None and when.kind in PERIODS:
        return when.evidence
    stretches = min(STRETCHES, slow.size // FEWEST_VALUES)
    part = parts_of_time(started, stretches) if stretches >= FEWEST_INDEPENDENT else None
    return None if part is None or _is_even(part, slow, cluster) else seen.unsteady()


def _is_even(part: Codes, slow: Mask, cluster: Codes) -> bool:
    """Return whether the shares of slow measurements in the parts of the time differ little, or by chance.

    The test is Pearson's (1900), with the statistic divided by the design effect of the clusters (Rao and Scott 1981).
    """
    share = float(slow.mean())
    if not 0.0 < share < 1.0:
        return True
    variance, deviation = share * (1 - share), slow - share
    measured, surplus = np.bincount(part), np.bincount(part, weights=deviation)
    measured, surplus = measured[measured > 0], surplus[measured > 0]
    shares = share + surplus / measured
    number = np.unique(cluster, return_inverse=True)[1].ravel()
    dependence = (np.bincount(number, weights=deviation) ** 2).sum() / (variance * slow.size)
    statistic = (surplus**2 / (measured * variance)).sum() / max(1.0, dependence)
    return bool(shares.min() >= HALF * shares.max() or chdtrc(measured.size - 1, statistic) >= CHANCE)
