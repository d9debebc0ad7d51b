"""The row behind `fablint bench`: one pair, one kernel."""

from __future__ import annotations

from fablint.plan.grammar import parse_row


def bench_row(
    kernel: str, sizes: str | None = None, *, pattern: str = "pair", **options: str | float | bool | None
) -> str:
    """One line of a plan: `kernel` between ranks 0 and 1 (or between all of `pattern`).

    Args:
        kernel: `latency`, `bandwidth`, `bibandwidth`, `exchange`.
        sizes: as on the command line, `8`, `1K:4M`; None for the kernel's own.
        pattern: `pair` or `pairs`, the patterns that have a table.
        options: any other row option with `_` for `-` (`samples=1000`, `histogram=True`); None and False leave it out.

    Raises:
        UsageError: the engine would refuse the row.

    >>> bench_row("latency", "1:4K", histogram=True, samples=None)
    'latency --pattern pair --sizes 1:4K --histogram'
    """
    words = [kernel]
    for option, value in {"pattern": pattern, "sizes": sizes, **options}.items():
        if value is True:
            words.append(f"--{option.replace('_', '-')}")
        elif value is not None and value is not False:
            words += [f"--{option.replace('_', '-')}", str(value)]
    parse_row(words)
    return " ".join(words)
