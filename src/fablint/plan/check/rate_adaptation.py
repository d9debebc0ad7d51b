"""Rows for the rate that a network turned out to have: a slow one gets smaller messages and windows.

With 16 MiB in flight a window takes 2.7 s at 50 Mbit/s, and a round never less than five of them in each direction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fablint.model import Medium, RowSpec, Run
from fablint.model.registry.row_limits import ROW_LIMITS
from fablint.plan.rows.cost import windows

STREAM = RowSpec("bandwidth", sizes=(1 << 20,), warmup=(2, 2))
SMALLEST, LARGEST = 64 << 10, 1 << 20  # bytes: of a stream's messages
LONGEST_MESSAGE_S = 0.0105  # of a stream: 64 KiB at 50 Mbit/s
LONGEST_PING_S = 0.1
WINDOW_SHARE = 0.25  # of a round's time
FEWEST_IN_FLIGHT = 2
FEWEST_SAMPLES = 3  # of the engine, whatever the time
HEALTHY = 0.75  # quantile of the rates that stands for the network: a few slow parts do not pull it down


def rate_of(run: Run) -> float | None:
    """Bytes/s that a healthy rank streams while all others do, by the rows that probe it; None: not known.

    Of several transports that of the slowest: all of them are measured with the same messages.
    """
    rates: dict[Medium, list[np.ndarray]] = defaultdict(list)
    for row in run.rows:
        if row.purpose == "rate_probe" and row.quantity == "bandwidth" and row.statistics:
            size = max(row.sizes)
            statistic = "median" if "median" in row.statistics else row.statistics[0]
            sent = np.asarray(row.observations(size, statistic).sent, dtype=np.float64)
            rates[row.medium].append(size / sent[np.isfinite(sent) & (sent > 0)])
    rate = [np.concatenate(parts) for parts in rates.values()]
    return min((float(np.quantile(part, HEALTHY)) for part in rate if part.size), default=None)


def bandwidth_row(rate: float | None, share_s: float) -> RowSpec:
    """The stream that a network of `rate` bytes/s is measured with, in rounds of `share_s` seconds.

    Messages of 64 KiB to 1 MiB, a power of two, that take 10 ms at most where that goes, and as many in flight as a
    quarter of the time carries, at least two. The usual 1 MiB where the rate is not known, or no reason for less.
    """
    return at_rate(STREAM, rate, share_s)


def at_rate(row: RowSpec, rate: float | None, share_s: float) -> RowSpec:
    """The row with sizes, window and warm-up that suit the rate; unchanged where that is high, or not known."""
    if rate is None:
        return row
    if not row.kernel_info.is_windowed:
        return replace(
            row, sizes=tuple(size for size in row.sizes if size <= rate * LONGEST_PING_S) or (min(row.sizes),)
        )
    carried = rate * share_s * WINDOW_SHARE
    if max(size * window for size, window in zip(row.sizes, windows(row), strict=True)) <= carried:
        return row
    most = SMALLEST
    while 2 * most <= min(LARGEST, rate * LONGEST_MESSAGE_S):
        most *= 2
    sizes = tuple(dict.fromkeys(min(size, most) for size in row.sizes))
    usual = row.window or min(ROW_LIMITS.default_window, ROW_LIMITS.window_bytes_to_one // max(sizes))
    window = max(FEWEST_IN_FLIGHT, min(usual, int(carried / max(sizes))))
    return replace(row, sizes=sizes, window=window, warmup=(1, 1) if row.warmup[0] else row.warmup)


def rows_at(rows: Sequence[RowSpec], rate: float | None, share_s: float) -> tuple[RowSpec, ...]:
    """The rows for a rate, each once."""
    return tuple(dict.fromkeys(at_rate(row, rate, share_s) for row in rows))


def slowest_seconds(row: RowSpec, rate: float | None) -> float:
    """Seconds that a round of a pair takes at least at a rate: warm-up, calibration and the fewest samples."""
    if not rate:
        return 0.0
    samples = min(FEWEST_SAMPLES, row.samples or FEWEST_SAMPLES)
    repetitions = samples + (row.warmup[1] > 0) + (row.batch is None)
    directions = row.directions_measured * (1 if row.kernel_info.is_windowed else 2)  # a round trip has both
    carried = sum(size * window for size, window in zip(row.sizes, windows(row), strict=True))
    return repetitions * directions * carried / rate
