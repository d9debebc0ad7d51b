"""Numbers with units as reports print them. The only place where seconds become microseconds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fablint.model.names import expanded, fold as fold, plural as plural, printable as printable

if TYPE_CHECKING:
    from fablint.model import Row

_SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
_FOLDED_NAMES = re.compile(r"[A-Za-z0-9._-]+(\[[0-9,-]+\])?(,[A-Za-z0-9._-]+(\[[0-9,-]+\])?)*")


def significant(value: float, digits: int = 3) -> str:
    """A number with at least `digits` significant digits and at least two decimals below 1000.

    >>> significant(0.01234), significant(1.5), significant(12345.6)
    ('0.0123', '1.50', '12346')
    """
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(decimals, 2 if abs(value) < 1000 else 0)}f}"


def duration(seconds: float) -> str:
    """
    >>> duration(1.934e-6), duration(0.25), duration(9.9999e-7), duration(300)
    ('1.93 us', '250 ms', '1.00 us', '5.0 min')
    """
    if not math.isfinite(seconds):
        return "-"
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    unit = next((unit for unit in ("s", "ms", "us") if abs(seconds) >= 0.9995 * _SCALES[unit]), "ns")
    return f"{_plain(seconds / _SCALES[unit])} {unit}"


def rate(bytes_per_second: float) -> str:
    """
    >>> rate(12.34e9), rate(0.5e6), rate(5.457e12)
    ('12.3 GB/s', '0.500 MB/s', '5.46 TB/s')
    """
    if not math.isfinite(bytes_per_second):
        return "-"
    unit = next((unit for unit in ("TB/s", "GB/s") if abs(bytes_per_second) >= 0.9995 * _SCALES[unit]), "MB/s")
    return f"{_plain(bytes_per_second / _SCALES[unit])} {unit}"


def size(count: int) -> str:
    """A message size, in powers of 1024 where that is exact.

    >>> size(8), size(65536), size(1 << 20), size(1000)
    ('8 B', '64 KiB', '1 MiB', '1000 B')
    """
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= scale and count % scale == 0:
            return f"{count // scale} {unit}"
    return f"{count} B"


def percent(fraction: float, *, decimals: int | None = None) -> str:
    """
    A relative change: a factor from twice as much on. `decimals`: None gives one below 10 %.

    >>> percent(-0.412), percent(0.0034), percent(0.98), percent(1.2), percent(24.98)
    ('-41 %', '+0.3 %', '+98 %', '2.2 x', '26 x')
    >>> percent(-0.0002), percent(-0.4781, decimals=1)
    ('+0.0 %', '-47.8 %')
    """
    if not math.isfinite(fraction):
        return "-"
    if fraction >= 1:
        return f"{_plain(1 + fraction, 2)} x"
    return f"{percent_digits(fraction, decimals=decimals)} %"


def percent_digits(fraction: float, *, decimals: int | None = None) -> str:
    """A fraction in percent without its sign for percent.

    >>> percent_digits(-0.412), percent_digits(0.0034), percent_digits(1.2)
    ('-41', '+0.3', '+120')
    """
    value = 100 * fraction if abs(fraction) >= 0.0005 else 0.0
    if decimals is None:
        decimals = 0 if abs(value) >= 9.95 else 1
    return f"{value:+.{decimals}f}"


def share_text(fraction: float) -> str:
    """A share of a whole, or a loss without its sign: two significant digits, three from 100 % on.

    >>> share_text(0.611), share_text(0.05), share_text(0.0034), share_text(0.999), share_text(1.66)
    ('61 %', '5 %', '0.34 %', '99.9 %', '166 %')
    """
    value = 100 * fraction
    if not math.isfinite(value):
        return "-"
    if 99 < value < 100:
        return f"{math.floor(10 * value) / 10:g} %"  # all but one of a million are not all
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.2g} %" if value >= 1e-3 else "0 %"


def known_decimals(interval: tuple[float, float] | None) -> int | None:
    """Return the decimals of percentages that an interval leaves: none where it is wider than two points.

    >>> known_decimals((-0.12, -0.06)), known_decimals((-0.485, -0.481)), known_decimals(None)
    (0, 1, None)
    """
    return None if interval is None else int(abs(interval[1] - interval[0]) < 0.02)


def effect(fraction: float | None, interval: tuple[float, float] | None, quantity: str | None) -> str:
    """
    >>> effect(-0.41, (-0.43, -0.39), "bandwidth")
    'bandwidth -41 % [-43, -39]'
    >>> effect(1.5, (0.9, 2.1), "latency")
    'latency 2.5 x [1.9, 3.1]'
    >>> effect(-0.082, (-0.113, -0.051), "bandwidth"), effect(-0.4781, (-0.483, -0.474), "bandwidth")
    ('bandwidth -8 % [-11, -5]', 'bandwidth -47.8 % [-48.3, -47.4]')
    """
    if fraction is None:
        return ""
    decimals = known_decimals(interval)
    words = [quantity or "", percent(fraction, decimals=decimals)]
    if interval is not None:
        bounds = (f"{1 + end:.2g}" if fraction >= 1 else percent_digits(end, decimals=decimals) for end in interval)
        words.append(f"[{', '.join(bounds)}]")
    return " ".join(word for word in words if word)


def of_expected(measured: float, expected: float, quantity: str) -> str:
    """Two figures in the unit of the second: seconds, or bytes per second.

    >>> of_expected(19.92e9, 24.9e9, "bandwidth"), of_expected(277e-6, 10.8e-6, "latency")
    ('19.9 of 24.9 GB/s', '277 of 10.8 us')
    """
    words = rate(expected) if is_rate(quantity) else duration(expected)
    unit = words.split()[-1]
    return f"{_plain(measured / _SCALES[unit])} of {words}" if unit in _SCALES else words


def is_rate(quantity: str) -> bool:
    """Tell whether the figure of this quantity (`Row.quantity`) is a bandwidth; otherwise it is a time."""
    return quantity == "bandwidth"


def figure(row: Row, message: int, seconds: float) -> str:
    """Time of one message of a row as the figure of its quantity: a time, or a rate."""
    return rate(row.counted_bytes(message) / seconds) if is_rate(row.quantity) and seconds > 0 else duration(seconds)


def change(quantity: str, log_effect: float) -> float:
    """Relative change of the figure of a quantity when the time grows by exp(log_effect)."""
    return math.expm1(-log_effect if is_rate(quantity) else log_effect)


def unfold(names: str) -> list[str]:
    """
    >>> unfold("nid[001-002]"), unfold("a<b")
    (['nid001', 'nid002'], ['a<b'])
    """
    try:
        return list(expanded(names)) if _FOLDED_NAMES.fullmatch(names) else [names]
    except ValueError:
        return [names]


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters; a shortened text ends with a mark."""
    text = printable(text)
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def columns(table: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Lines of a table; the first `left` columns are aligned left, the others right."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def _plain(value: float, digits: int = 3) -> str:
    """Significant digits, zeros included, without an exponent or a useless decimal point."""
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.{max(0, digits - 1 - math.floor(math.log10(abs(rounded))))}f}" if rounded else "0"
