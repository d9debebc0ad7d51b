"""Parsers of programs that measure the loopback bandwidth or latency of a NIC."""

from __future__ import annotations

import re

_FIGURE = r"\d{1,9}(?:\.\d{1,9})?"
_CXI_ROW = re.compile(rf"\s*\d{{1,15}}\s+\d{{1,15}}\s+({_FIGURE})\s+{_FIGURE}\s*$")
_IB_ROW = re.compile(rf"\s*\d{{1,15}}\s+\d{{1,15}}\s+{_FIGURE}\s+({_FIGURE})\s+{_FIGURE}\s*$")
_LATENCY_ROW = re.compile(  # bytes, iterations, least, most and typical time; later releases print more
    rf"\s*\d{{1,15}}\s+\d{{1,15}}\s+{_FIGURE}\s+{_FIGURE}\s+({_FIGURE})(?:\s+{_FIGURE})*\s*$"
)


def cxi_loopback_gbit(text: str) -> float | None:
    """Return the rate in the last row of cxi_gpu_loopback_bw in Gb/s; None without a row."""
    return _last(_CXI_ROW, text)


def ib_loopback_gbit(text: str) -> float | None:
    """Return the average rate in the last row of `ib_write_bw --report_gbits` in Gb/s; None without a row."""
    return _last(_IB_ROW, text)


def ib_loopback_us(text: str) -> float | None:
    """Return the typical time in the last row of `ib_write_lat` in microseconds; None without a row."""
    return _last(_LATENCY_ROW, text)


def _last(row: re.Pattern[str], text: str) -> float | None:
    rates = [float(match[1]) for match in map(row.match, text.splitlines()) if match]
    return rates[-1] if rates else None
