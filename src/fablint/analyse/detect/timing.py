"""When measurements were slow: periods in which most hosts were, a drift, and since when a component was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.pair_matrix import Codes
from fablint.analyse.data.robust_stats import MEDIAN_ERROR, Floats, average_ranks, robust_sd
from fablint.analyse.settings import Settings
from fablint.model import Placement
from fablint.text import units
from fablint.text.names import plural

Mask = npt.NDArray[np.bool_]
Quantity = Literal["latency", "bandwidth"]

MOST_WINDOWS = 32  # into which a row's time is cut
FEWEST_CELLS = 30  # in a window
FEWEST_HOSTS = 6  # slow ones in a window, from which it is the time and not the hosts
MOST_OF = 0.6  # of a window's hosts
MOSTLY = 0.7  # of a part's measurements inside a stretch of time are slow, and as many outside are not
ALMOST_ALL = 0.95  # from which a part was slow all the time
FEWEST_OUTSIDE = 3  # measurements that were not slow, without which nothing began or ended
SHUFFLES = 500
SHORT = 0.5  # of the time: what is slow for longer than that is the norm
FEWEST_TIMED = 6  # measurements with a time, from which is said when a component was slow


@dataclass(frozen=True)
class TimedCells:
    """The measured pairs of one view."""

    row: str
    quantity: Quantity
    size: int
    src: Codes  # (k,) ranks
    dst: Codes
    excess: Floats  # (k,) log time less its class, whatever parts add still in it
    started: Floats  # (k,) s since the run's start, NaN where unknown

    @property
    def name(self) -> str:
        return f"{self.row} {units.size(self.size)}"


@dataclass(frozen=True)
class Period:
    """Some time in which pairs of many hosts were slow."""

    begin: float  # s since the run's start
    end: float
    excess: float  # log-effect
    hosts: int  # that were slow in it


def slow_periods(view: TimedCells, placement: Placement, settings: Settings) -> list[Period]:
    """Times in which most hosts were slow: cells that began in them say nothing about their parts."""
    windows = windows_of(view)
    if len(windows) < 4:
        return []
    middles = np.array([np.median(view.excess[window]) for window in windows])
    usual = float(np.median(middles))
    slow = np.flatnonzero(middles > usual + settings.tolerance)
    if not slow.size or slow.size > SHORT * len(windows):
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
    """Cells in order of time, in windows of equally many; a round is not divided."""
    known = np.flatnonzero(np.isfinite(view.started) & np.isfinite(view.excess))
    known = known[np.argsort(view.started[known], kind="stable")]
    count = min(MOST_WINDOWS, known.size // FEWEST_CELLS)
    if count < 1:
        return []
    began = view.started[known]
    bounds = np.unique(np.searchsorted(began, began[(np.arange(1, count) * known.size) // count]))
    return [window for window in np.split(known, bounds) if window.size >= FEWEST_CELLS]


def _slow_hosts(view: TimedCells, placement: Placement, cells: Codes, limit: float) -> int | None:
    """How many hosts were slow in these cells; None if it were few of them, or one that all the others met."""
    a, b = placement.host[view.src[cells]], placement.host[view.dst[cells]]
    slow = view.excess[cells] > limit
    count = np.bincount(np.concatenate([a, b]), minlength=len(placement.hosts))
    # Without the host that is in most of the slow cells: it may be the slow one, and the others its victims.
    busiest = int(np.bincount(np.concatenate([a[slow], b[slow]]), minlength=count.size).argmax())
    rest = (a != busiest) & (b != busiest)
    if rest.sum() < FEWEST_CELLS or slow[rest].mean() < MOST_OF:
        return None
    slow_with = np.bincount(np.concatenate([a[slow & rest], b[slow & rest]]), minlength=count.size)
    with_rest = np.bincount(np.concatenate([a[rest], b[rest]]), minlength=count.size)
    slow_hosts = int((slow_with > with_rest / 2).sum())
    met = int((with_rest > 0).sum())
    return slow_hosts if slow_hosts >= max(FEWEST_HOSTS, MOST_OF * met) and met > len(placement.hosts) / 2 else None


def drift_of(view: TimedCells, windows: list[Codes]) -> float:
    """Log-effect from the first window to the last, where the windows go one way; else 0."""
    if len(windows) < 8:
        return 0.0
    middles = np.array([np.median(view.excess[window]) for window in windows])
    order = np.arange(middles.size)
    if np.ptp(middles) == 0.0:
        return 0.0
    # Rank correlation (Spearman): by chance beyond 0.95 with eight windows less than once in a thousand times.
    if abs(np.corrcoef(order, average_ranks(middles))[0, 1]) < 0.95:
        return 0.0
    i, j = np.triu_indices(middles.size, 1)
    slope = float(np.median((middles[j] - middles[i]) / (j - i)))  # Theil and Sen
    return slope * (middles.size - 1)


@dataclass(frozen=True)
class SlowTime:
    """During which part of the measurement a part was slow."""

    kind: Literal["always", "since", "until", "between", "now and then"]
    begin: float  # s since the run's start, of the first and the last slow measurement
    end: float
    slow: int
    measured: int

    @property
    def text(self) -> str:
        """As a finding quotes it."""
        share = f"{self.slow} of {plural(self.measured, 'measurement')}"
        return {
            "always": "slow all the time",
            "since": f"slow since {self.begin:.3g} s after the start",
            "until": f"slow until {self.end:.3g} s after the start",
            "between": f"slow between {self.begin:.3g} s and {self.end:.3g} s after the start",
            "now and then": f"slow now and then ({share})",
        }[self.kind]


STRETCHES = 4  # of the time of a row, each with as many of its measurements
FEWEST_STRETCHES = 2  # in which a component has to be slow
FEWEST_IN_STRETCH = 3  # measurements
NOISIER = 2.0  # times the usual noise, that a component may have without varying over time
CONFIRMED = 3  # later measurements that were slow, from which what began at some time is lasting


@dataclass(frozen=True)
class Persistence:
    """In how many stretches of the time of its row a component was slow, and since when."""

    stretches: int
    when: SlowTime | None
    confirmed: bool  # was it slow as well when it was measured again later?

    @property
    def is_lasting(self) -> bool:
        """Was it slow in two stretches at least, and not only from some time on or up to some time?"""
        begins = self.when is not None and self.when.kind in ("since", "until", "between")
        return self.confirmed or (self.stretches >= FEWEST_STRETCHES and not begins)


def measure_persistence(started: Floats, every: Floats, slow: Mask, later: Mask) -> Persistence | None:
    """How lasting a component's slowness is; None where its measurements have no times.

    Parameters
    ----------
    started
        (k,) s, when each measurement of the component began; NaN where unknown.
    every
        The same of all measurements of the row: they decide on the stretches.
    slow
        (k,) was the measurement slow?
    later
        (k,) was it made to confirm earlier ones?
    """
    known = np.isfinite(started)
    if not known.any():
        return None
    edges = np.nanquantile(every, np.arange(1, STRETCHES) / STRETCHES)
    number = np.searchsorted(edges, started[known], side="right")
    measured, of_these = (np.bincount(n, minlength=STRETCHES) for n in (number, number[slow[known]]))
    again = int(np.count_nonzero(slow & later))
    confirmed = again >= CONFIRMED and 2 * again > int(later.sum())
    return Persistence(
        int(np.count_nonzero((measured > 0) & (2 * of_these > measured))), find_slow_time(started, slow), confirmed
    )


def error_over_time(excess: Floats, started: Floats | None, noise: float) -> float:
    """Standard error of the median of a component's cells for what varies over time: stretches differ beyond the noise.

    Stretches beside each other may be slow together; the fewer independent ones there are, the larger it is. Where the
    times are not known (None), all cells may be of one stretch: it is what they differ by beyond the noise.
    """
    if started is None:
        return float(np.sqrt(max(0.0, robust_sd(excess) ** 2 - (NOISIER * noise) ** 2)))
    stretches = min(2 * STRETCHES, started.size // FEWEST_IN_STRETCH)
    if stretches < FEWEST_STRETCHES:
        return 0.0
    parts = np.array_split(excess[np.argsort(started, kind="stable")], stretches)
    middle = np.array([np.median(part) for part in parts])
    each = (MEDIAN_ERROR * noise) ** 2 / (excess.size / stretches)
    own = max(0.0, float(np.var(middle, ddof=1)) - each)
    beside = middle - middle.mean()
    total = float((beside**2).sum())
    related = float((beside[1:] * beside[:-1]).sum()) / total if total else 0.0
    independent = stretches * (1 - max(0.0, related)) / (1 + max(0.0, related))
    return float(np.sqrt(own / max(1.0, independent)))


def find_slow_time(started: npt.ArrayLike, slow: npt.ArrayLike) -> SlowTime | None:
    """When a convicted part was slow; None where too few of its measurements have a time.

    The stretch of time with the largest surplus of slow measurements is compared with those of 500 random orders of
    the same measurements: a permutation test at 1 in 500.

    Args:
        started: (k,) s, when each of its pairs was measured; NaN where unknown.
        slow: (k,) bool, was the pair slower than tolerated?
    """
    time, flag = np.asarray(started, dtype=np.float64), np.asarray(slow, dtype=bool)
    known = np.isfinite(time)
    order = np.argsort(time[known], kind="stable")
    time, flag = time[known][order], flag[known][order]
    if flag.size < FEWEST_TIMED or not flag.any():
        return None
    first, last = np.flatnonzero(flag)[[0, -1]]
    counts = int(flag.sum()), flag.size
    begin, end = _stretch(flag)
    inside, outside = flag[begin:end], np.concatenate([flag[:begin], flag[end:]])
    apart = inside.size > 0 and outside.size >= FEWEST_OUTSIDE
    apart = apart and inside.mean() >= MOSTLY and outside.mean() <= 1 - MOSTLY
    if flag.mean() < ALMOST_ALL and apart and _ordered(flag):
        kind: Literal["since", "until", "between"] = (
            "until" if begin == 0 else "since" if end == flag.size else "between"
        )
        return SlowTime(kind, float(time[begin]), float(time[end - 1]), *counts)
    measure_persistence = flag.mean() >= MOSTLY
    return SlowTime("always" if measure_persistence else "now and then", float(time[first]), float(time[last]), *counts)


def _surplus(flags: Mask) -> Floats:
    """(rows, k + 1) running sums of what is more slow than on average."""
    excess = flags - flags.mean(axis=1, keepdims=True)
    return np.concatenate([np.zeros((len(flags), 1)), np.cumsum(excess, axis=1)], axis=1)


def _stretch(flag: Mask) -> tuple[int, int]:
    """Begin and end of the stretch with the largest surplus of slow ones."""
    total = _surplus(flag[None])[0]
    lowest = np.minimum.accumulate(total)
    end = int(np.argmax(total - lowest))
    return int(np.argmin(total[: end + 1])), end


def _ordered(flag: Mask) -> bool:
    """Do the slow ones stand together more than by chance?"""
    shuffled = np.random.default_rng(flag.size).permuted(np.tile(flag, (SHUFFLES, 1)), axis=1)
    rise = [
        (total - np.minimum.accumulate(total, axis=1)).max(axis=1)
        for total in (_surplus(flag[None]), _surplus(shuffled))
    ]
    return bool((rise[1] >= rise[0] - 1e-9).sum() == 0)
