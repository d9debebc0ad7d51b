"""Victims alone and beside aggressors: impact factors, of all together as GPCNeT prints them, and of every pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.report.conditions import alone, loaded
from fablint.report.tables.quantiles import knows, percentile_times, stored
from fablint.report.tables.table import Rendered, TableKind, medium_words, program
from fablint.text import units

_TAILS = (99.0, 99.9)
_WIDTHS = (33, 14, 14, 14)


@dataclass(frozen=True)
class Times:
    """Seconds per message; None where it was not stored."""

    mean: float
    p99: float | None
    p999: float | None

    def over(self, other: Times) -> dict[str, float | None]:
        """Return how many times as long as `other`: the impact factors."""
        times, theirs = asdict(self), asdict(other)
        return {name: times[name] / theirs[name] if times[name] and theirs[name] else None for name in times}


# A section for each victim-aggressor row. Option: so many of the slowest pairs of a size.
congestion = TableKind[Row](
    "congestion",
    options=("slowest",),
    needs="a row of the pattern victim-aggressor",
    measure="measure one with fablint bench congestion_latency",
    parts=lambda _, rows: [row for row in rows if row.pattern == "victim-aggressor" and "mean" in row.statistics],
    section=lambda run, row, options: _section(run, row, options.slowest),
)


def _section(run: Run, row: Row, count: int | None) -> Rendered:
    quiet, busy = alone(row), loaded(row)
    sizes = [entry for index in range(len(row.sizes)) if (entry := _size(run, quiet, busy, index))]
    aggressors = list(row.facts.schedule.aggressors)
    traffic = row.facts.schedule.aggressor or "unknown"
    lines = [
        f"# {program()}: victims of row {row.name} alone and beside {units.plural(len(aggressors), 'aggressor')}"
        f" ({traffic})",
        "# impact factor: time of a message beside the aggressors over the time alone; 1: no impact, both for latency"
        " and for bandwidth",
        "# Avg is the mean over the victim pairs; 99% and 99.9% are those of the time of a message: of a bandwidth, the"
        " slow end",
        *(f"# {line}" for line in medium_words(row)),
    ]
    names = [f"{row.kernel} ({units.size(entry['size'])})" for entry in sizes]
    unit = "MB/s/pair" if row.quantity == "bandwidth" else "usec"
    for title, part in (("Victims alone", "alone"), ("Victims beside aggressors", "loaded")):
        figures = [[*_figures(row, entry["size"], entry[part]), unit] for entry in sizes]
        lines += [*_box(title, ("Avg", "99%", "99.9%", "Units"), names, figures), ""]
    factors = [[_factor(value) for value in entry["impact"].values()] for entry in sizes]
    lines += [*_box("Congestion Impact Factor", ("Avg", "99%", "99.9%"), names, factors), ""]
    for entry in sizes:
        lines += _pair_lines(row, entry, count)
    facts = {"table": "congestion", "row": row.name, "kernel": row.kernel, "quantity": row.quantity}
    return Rendered(tuple(lines), {**facts, "aggressor": traffic, "aggressors": aggressors, "sizes": sizes})


def _size(run: Run, quiet: Row, busy: Row, index: int) -> dict[str, Any]:
    """Figures of the pairs that were measured under both conditions; empty where none was."""
    both = sorted(_measured(quiet, index) & _measured(busy, index))
    if not both:
        return {}
    hosts, pairs = run.rank_host, []
    for src, dst in both:
        without, with_load = (_times(part, index, _cells(part, index, src, dst)) for part in (quiet, busy))
        entry: dict[str, Any] = {"src": src, "dst": dst, "src_host": hosts[src], "dst_host": hosts[dst]}
        entry |= {"alone": asdict(without), "loaded": asdict(with_load), "impact": with_load.over(without)}
        pairs.append(entry)
    whole = [_overall(part, index, pairs, name) for part, name in ((quiet, "alone"), (busy, "loaded"))]
    overall = {"alone": asdict(whole[0]), "loaded": asdict(whole[1]), "impact": whole[1].over(whole[0])}
    return {"size": quiet.sizes[index], **overall, "pairs": pairs}


def _measured(row: Row, index: int) -> set[tuple[int, int]]:
    src, number = np.nonzero(np.asarray(row.arrays["count"][:, :, index]))
    return set(zip(src.tolist(), np.asarray(row.arrays["dst"])[src, number].tolist(), strict=True))


def _cells(row: Row, index: int, src: int, dst: int) -> np.ndarray:
    """Mask of the cells of an ordered pair: its rounds."""
    kept = np.zeros(row.arrays["count"].shape[:2], dtype=bool)
    kept[src] = (row.arrays["dst"][src] == dst) & (row.arrays["count"][src, :, index] > 0)
    return kept


def _times(row: Row, index: int, kept: np.ndarray) -> Times:
    weight = row.arrays["count"][..., index][kept]
    return Times(float(np.average(stored(row, "mean", index)[kept], weights=weight)), *_tails(row, index, kept))


def _tails(row: Row, index: int, kept: np.ndarray) -> list[float | None]:
    return [percentile_times(row, index, kept, [tail])[0] if knows(row, tail) else None for tail in _TAILS]


def _overall(row: Row, index: int, pairs: list[dict[str, Any]], part: str) -> Times:
    """Every pair counts the same in the mean; percentiles are those of all samples together."""
    kept = np.zeros(row.arrays["count"].shape[:2], dtype=bool)
    for pair in pairs:
        kept |= _cells(row, index, pair["src"], pair["dst"])
    return Times(float(np.mean([pair[part]["mean"] for pair in pairs])), *_tails(row, index, kept))


def _figures(row: Row, size: int, times: dict[str, float | None]) -> list[str]:
    """Return the figures in the table's unit."""
    if row.quantity == "latency":
        return ["-" if time is None else units.significant(time * 1e6) for time in times.values()]
    return ["-" if not time else units.significant(row.counted_bytes(size) / time / 1e6) for time in times.values()]


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{units.significant(value)}X"


def _box(title: str, heads: Sequence[str], names: Sequence[str], figures: Sequence[Sequence[str]]) -> list[str]:
    """A table in GPCNeT's frame."""
    first = max([_WIDTHS[0], *(len(name) + 2 for name in names)])
    widths = [first, *([_WIDTHS[1]] * len(heads))]
    rule = "+" + "+".join("-" * width for width in widths) + "+"
    whole = sum(widths) + len(widths) - 1
    lines = [f"+{'-' * whole}+", f"|{title:^{whole}}|", rule]
    for cells in [("Name", *heads), *((name, *row) for name, row in zip(names, figures, strict=True))]:
        lines += [
            "|" + "|".join(f"{cell:>{width - 1}} " for cell, width in zip(cells, widths, strict=True)) + "|",
            rule,
        ]
    return lines


def _pair_lines(row: Row, entry: dict[str, Any], count: int | None) -> list[str]:
    pairs = entry["pairs"]
    if count is not None:
        pairs = sorted(pairs, key=lambda pair: -float(pair["impact"]["mean"] or 0))[:count]
    unit = "MB/s" if row.quantity == "bandwidth" else "us"
    head = ["# src", "host", "dst", "host", "size", f"alone ({unit})", f"loaded ({unit})", "Avg", "99%", "99.9%"]
    body = [
        [
            str(pair["src"]),
            pair["src_host"],
            str(pair["dst"]),
            pair["dst_host"],
            str(entry["size"]),
            _figures(row, entry["size"], pair["alone"])[0],
            _figures(row, entry["size"], pair["loaded"])[0],
            *(_factor(value) for value in pair["impact"].values()),
        ]
        for pair in pairs
    ]
    return units.columns([head, *body], left=0)
