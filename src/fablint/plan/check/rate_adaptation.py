"""Kernel lines for the rate that a network turned out to have: a slow one gets smaller messages and windows.

With 16 MiB in flight a window takes 2.7 s at 50 Mbit/s, and a round never less than five of them in each direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.model import Run
from fablint.plan.rows.cost import BYTES_TO_ONE, DEFAULT_WINDOW, windows
from fablint.plan.rows.grammar import parse_row, split_row, write_row
from fablint.plan.rows.values import format_bytes, parse_sizes

REACH = "reach"  # the level that tells the rate
STREAM = "bandwidth --sizes 1M --warmup 2"
SMALLEST, LARGEST = 64 << 10, 1 << 20  # bytes: of a stream's messages
LONGEST_MESSAGE_S = 0.0105  # of a stream: 64 KiB at 50 Mbit/s
LONGEST_PING_S = 0.1
WINDOW_SHARE = 0.25  # of a round's time
FEWEST_IN_FLIGHT = 2
FEWEST_SAMPLES = 3  # of the engine, whatever the time
HEALTHY = 0.75  # quantile of the rates that stands for the network: a few slow parts do not pull it down


def rate_of(run: Run) -> float | None:
    """Bytes/s that a healthy rank streams while all others do, by the rows of the level `reach`; None: not known."""
    rates = [np.zeros(0)]
    for row in run.rows:
        if row.name.startswith(f"{REACH}-") and row.quantity == "bandwidth" and row.statistics:
            size = max(row.sizes)
            statistic = "median" if "median" in row.statistics else row.statistics[0]
            sent = np.asarray(row.observations(size, statistic).sent, dtype=np.float64)
            rates.append(size / sent[np.isfinite(sent) & (sent > 0)])
    found = np.concatenate(rates)
    return float(np.quantile(found, HEALTHY)) if found.size else None


def bandwidth_line(rate: float | None, share_s: float) -> str:
    """The stream that a network of `rate` bytes/s is measured with, in rounds of `share_s` seconds.

    Messages of 64 KiB to 1 MiB, a power of two, that take 10 ms at most where that goes, and as many in flight as a
    quarter of the time carries, at least two. The usual 1 MiB where the rate is not known, or no reason for less.
    """
    return at_rate(STREAM, rate, share_s)


def at_rate(line: str, rate: float | None, share_s: float) -> str:
    """A kernel line with sizes, window and warm-up that suit the rate; as it is where that is high, or not known."""
    if rate is None:
        return line
    kernel, texts = split_row(line.split())
    row = parse_row(line.split())
    if not row.does.windowed:
        kept = [size for size in row.sizes if size <= rate * LONGEST_PING_S] or [min(row.sizes)]
        return line if len(kept) == len(row.sizes) else write_row(kernel, {**texts, "sizes": _sizes(kept)})
    carried = rate * share_s * WINDOW_SHARE
    if max(size * window for size, window in zip(row.sizes, windows(row), strict=True)) <= carried:
        return line
    most = SMALLEST
    while 2 * most <= min(LARGEST, rate * LONGEST_MESSAGE_S):
        most *= 2
    sizes = list(dict.fromkeys(min(size, most) for size in row.sizes))
    usual = row.window or min(DEFAULT_WINDOW, BYTES_TO_ONE // max(sizes))
    window = max(FEWEST_IN_FLIGHT, min(usual, int(carried / max(sizes))))
    texts |= {"sizes": _sizes(sizes), "window": str(window)}
    if row.warmup[0]:
        texts["warmup"] = "1"
    return write_row(kernel, texts)


def lines_at(lines: Sequence[str], rate: float | None, share_s: float) -> tuple[str, ...]:
    """All of them for a rate, each once."""
    return tuple(dict.fromkeys(at_rate(line, rate, share_s) for line in lines))


def slowest_seconds(line: str, rate: float | None) -> float:
    """Seconds that a round of a pair takes at least at a rate: warm-up, calibration and the fewest samples."""
    if not rate:
        return 0.0
    row = parse_row(line.split())
    samples = min(FEWEST_SAMPLES, row.samples or FEWEST_SAMPLES)
    repetitions = samples + (row.warmup[1] > 0) + (row.batch is None)
    ways = row.directions_measured * (1 if row.does.windowed else 2)  # a round trip goes both ways
    carried = sum(size * window for size, window in zip(row.sizes, windows(row), strict=True))
    return repetitions * ways * carried / rate


def _sizes(sizes: Sequence[int]) -> str:
    text = ",".join(map(format_bytes, sizes))
    first, last = sizes[0], sizes[-1]
    folded = f"{format_bytes(first)}:{format_bytes(last)}"
    return folded if len(sizes) > 2 and parse_sizes(folded) == tuple(sizes) else text
