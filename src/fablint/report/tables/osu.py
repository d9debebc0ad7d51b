"""Tables in the format of OSU 7.4, which parsers all over the field read; docs/reference/tables.md.

Benchmarks of OSU have its two decimals; figures of kernels have at least three significant digits. A percentile is that
of the message time, and a comment line says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.model.figures.cpu_wait import NOTABLE, rank_shares
from fablint.model.figures.gpu_use import path_words, sharing_words
from fablint.report.tables import osu_names
from fablint.report.tables.cells import Cells, cells, central, ranks
from fablint.report.tables.gpu_copies import is_shown as is_in_gpu_copies
from fablint.report.tables.osu_matrix import matrix, varies
from fablint.report.tables.overlap import is_shown as is_in_overlap
from fablint.report.tables.quantiles import checked, percentile_times
from fablint.report.tables.table import Options, Rendered, Table, TableKind, fixed, medium_words, right
from fablint.report.tables.traffic import (
    COLLECTIVES,
    STARS,
    collective_ranks,
    collective_rates,
    rates,
    repetitions,
    window,
)
from fablint.text import units

PATTERNS = ("pair", "pairs", "fan-in", "fan-out", "world")
_SIZE, _FIELD, _COUNT = 10, 18, 12  # widths of OSU's columns
_NAMES = {
    "min": "Min Latency(us)",
    "max": "Max Latency(us)",
    "iterations": "Iterations",
    "reverse": "Reverse",
    "validation": "Validation",
    "messages_per_s": "Messages/s",
    "algorithm_bandwidth": "Alg BW(MB/s)",
    "bus_bandwidth": "Bus BW(MB/s)",
}


@dataclass(frozen=True)
class Line:
    """One size: figures by the name of their column, in the table's unit."""

    size: int
    figures: dict[str, float | int | str | None] = field(default_factory=dict)


def _parts(_: Run, rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that differ in nothing but their window together, each other row by itself."""
    similar: dict[tuple[Any, ...], list[Row]] = {}
    for row in filter(_is_shown, rows):
        key = (row.kernel, row.pattern, row.sizes, row.medium) if varies(row) else (row.name,)
        similar.setdefault(key, []).append(row)
    parts: list[list[Row]] = []
    for group in similar.values():
        is_matrix = len({window(row, 0) for row in group}) == len(group)
        parts += [group] if is_matrix else [[row] for row in group]
    return parts


def _part_table(run: Run, group: list[Row], options: Options) -> Table:
    """The table of a row; the matrix of several."""
    if len(group) == 1:
        return _table(run, group[0], checked(options.percentiles), options.full)
    rates_of = [[_figure(row, at, _shown(row, at)) for at in range(len(row.sizes))] for row in group]
    pairs = max(_pairs(row, _shown(row, 0)) for row in group)
    return matrix(group, rates_of, pairs, osu_names.rule(run, group[0], pairs))


osu = TableKind[list[Row]](
    "osu",
    options=("percentiles", "full"),
    needs="a row of the patterns pair, pairs, fan-in, fan-out or world",
    measure="measure one with fablint bench",
    parts=_parts,
    section=_part_table,
)


def _is_shown(row: Row) -> bool:
    """Rows of these patterns; of an imported row without pairs only one that says how many pairs its figure is of."""
    is_known = row.pattern != "world" or row.kernel in COLLECTIVES or osu_names.imported_pairs(row) > 0
    return row.pattern in PATTERNS and is_known and not is_in_gpu_copies(row) and not is_in_overlap(row)


def _merged(row: Row, index: int) -> Cells:
    """One cell per ordered pair (of a collective: per rank), all repeats together."""
    return cells(row, index, [central(row)]).by_pair(ranks(row))


def _leading(row: Row, merged: Cells) -> Cells:
    """The cells whose figures OSU shows: that of the lower rank of every pair; all of a star, a collective, a file."""
    return merged if row.pattern in ("world", *STARS) else merged.where(merged.src < merged.dst)


def _shown(row: Row, index: int) -> Cells:
    return _leading(row, _merged(row, index))


def _figure(row: Row, index: int, shown: Cells) -> float | None:
    """us, or the MB/s of all pairs together: OSU divides all bytes by the mean time of the senders."""
    if not len(shown):
        return None
    seconds = float(shown.times[central(row)].mean())
    if row.quantity == "latency":
        return seconds * 1e6
    return _pairs(row, shown) * float(rates(row.counted_bytes(row.sizes[index]), seconds)) / 1e6


def _pairs(row: Row, shown: Cells) -> int:
    """Number of pairs whose figure this is: one of each cell, or those of all pairs together in an imported file."""
    return osu_names.imported_pairs(row) or len(shown)


def _groups(run: Run, row: Row, shown: Cells) -> int:
    """Number of pairs of a size, or of ranks of a collective; an imported file has one figure for all of them."""
    if row.kernel in COLLECTIVES and osu_names.is_imported(run):
        return collective_ranks(run, row)
    pairs = len({(min(pair), max(pair)) for pair in zip(shown.src, shown.dst, strict=True)})
    return osu_names.imported_pairs(row) or pairs


def _table(run: Run, row: Row, percentiles: tuple[float, ...], full: bool) -> Rendered:
    groups, lines = 0, []
    for index, size in enumerate(row.sizes):
        merged = _merged(row, index)
        shown = _leading(row, merged)
        groups = max(groups, _groups(run, row, shown))
        figures: dict[str, Any] = {"figure": _figure(row, index, shown)}
        if osu_names.message_rate(row) and figures["figure"] is not None:
            figures["messages_per_s"] = figures["figure"] * 1e6 / size
        if row.kernel in COLLECTIVES and full and len(shown):
            figures |= _of_collective(run, row, index, shown)
        if row.facts.sampling.validate:
            figures["validation"] = _validation(row, size)
        figures |= _percentiles(row, index, percentiles, _pairs(row, shown))
        figures |= _reverse(row, index, merged)
        lines.append(Line(size, figures))
    return _rendered(run, row, lines, groups, percentiles, full)


def _of_collective(run: Run, row: Row, index: int, shown: Cells) -> dict[str, Any]:
    """OSU's full columns, and the bandwidths that nccl-tests computes.

    They are in MB/s here.
    """
    seconds, count, size = shown.times[central(row)], collective_ranks(run, row), row.sizes[index]
    figures: dict[str, Any] = {"min": float(seconds.min()) * 1e6, "max": float(seconds.max()) * 1e6}
    figures["iterations"] = repetitions(row, index)[0]
    if row.kernel != "barrier":
        algorithm, bus = collective_rates(row.kernel, size, count, float(seconds.mean()))
        figures |= {"algorithm_bandwidth": algorithm / 1e6, "bus_bandwidth": bus / 1e6}
    return figures


def _validation(row: Row, size: int) -> str:
    return "Fail" if any(entry.size == size for entry in row.facts.result.corrupt) else "Pass"


def _percentiles(row: Row, index: int, percentiles: tuple[float, ...], groups: int) -> dict[str, float | None]:
    """Return the percentiles of the time of a message; as a rate, that of all groups together if each took so long."""
    names = [f"P{percentile:g}" for percentile in percentiles]
    kept = np.asarray(row.arrays["count"][..., index]) > 0
    if row.pattern not in ("world", *STARS):
        kept &= np.arange(kept.shape[-2])[:, None] < _partners(row)
    if not kept.any():
        return dict.fromkeys(names)

    def figure(time: float | None) -> float | None:
        if time is None or row.quantity == "latency":
            return time and time * 1e6
        return groups * float(rates(row.counted_bytes(row.sizes[index]), time)) / 1e6

    times = percentile_times(row, index, kept, percentiles)
    return {name: figure(time) for name, time in zip(names, times, strict=True)}


def _partners(row: Row) -> np.ndarray:
    """Destination of every cell, in a shape that broadcasts against a cell array."""
    if row.layout == "list":
        return np.asarray(row.arrays["dst"][:])
    return np.arange(row.arrays["count"].shape[2])


def _reverse(row: Row, index: int, merged: Cells) -> dict[str, float | None]:
    """Return the same figure of the other direction, where the row measured it by itself."""
    if row.is_duplex or row.pattern in ("world", *STARS):
        return {}
    back = merged.where(merged.src > merged.dst)
    return {"reverse": _figure(row, index, back)} if len(back) else {}


def _rendered(
    run: Run, row: Row, lines: list[Line], groups: int, percentiles: tuple[float, ...], full: bool
) -> Rendered:
    keys = [key for key in ("figure", "messages_per_s", "min", "max", "iterations", "validation") if _has(lines, key)]
    keys += [f"P{percentile:g}" for percentile in percentiles]
    keys += [key for key in ("algorithm_bandwidth", "bus_bandwidth") if _has(lines, key)]
    keys += ["reverse"] if full and _has(lines, "reverse") else []
    rate = row.quantity == "bandwidth"
    tail = "Tail BW(MB/s)" if rate else "Tail Lat(us)"
    names = {**_NAMES, "figure": osu_names.figure_name(row), "reverse": f"Reverse {'BW(MB/s)' if rate else 'Lat(us)'}"}
    names |= {key: f"{key} {tail}" for key in keys if key.startswith("P")}
    measured = [line for line in lines if line.figures["figure"] is not None]
    shown = [_text_line(row, line, keys) for line in measured]
    windows = sorted({window(row, at) for at in range(len(row.sizes))})
    comments = _comments(run, row, osu_names.rule(run, row, groups), bool(percentiles))
    head = osu_names.head(row, groups, str(windows[-1]), comments)
    facts = {
        "table": "osu",
        "row": row.name,
        "kernel": row.kernel,
        "pattern": row.pattern,
        "title": osu_names.title(row).removeprefix("# "),
        "unit": "MB/s" if rate else "us",
        "groups": groups,
        "windows": windows,
        "sizes": [{"size": line.size, **line.figures} for line in lines],
    }
    return Rendered((*head, _header(row, keys, names), *shown, *_closing_comments(row, lines)), facts)


def _has(lines: list[Line], key: str) -> bool:
    return key == "figure" or any(key in line.figures for line in lines)


def _header(row: Row, keys: list[str], names: dict[str, str]) -> str:
    cells = [right(names[key], _COUNT if key == "iterations" else _FIELD) for key in keys]
    if row.kernel == "barrier":  # it has no size: `# ` takes the place of the first column's blanks
        return f"# {names['figure']}" + "".join(cells[1:])
    return "# Size".ljust(_SIZE) + "".join(cells)


def _text_line(row: Row, line: Line, keys: list[str]) -> str:
    cells = []
    for key in keys:
        value = line.figures.get(key)
        words = str(value) if isinstance(value, str | int) else fixed(value, 0 if osu_names.is_of_osu(row) else 3)
        width = _COUNT if key == "iterations" else _FIELD
        cells.append(right(words, width - 1 if row.kernel == "barrier" and key == "figure" else width))
    return ("" if row.kernel == "barrier" else str(line.size).ljust(_SIZE)) + "".join(cells)


def _comments(run: Run, row: Row, rule: str, percentiles: bool) -> list[str]:
    statistic = central(row)
    words = [f"format of OSU {osu_names.VERSION}; {rule}", *medium_words(row)]
    if path := path_words(row.medium.gpu_memory, row.facts.carrier.gpu_path):
        words += filter(None, [path, sharing_words(run)])
    if statistic != "mean":
        words.append(f"the run has no means: figures are made of the {statistic} of every pair")
    if percentiles:
        words.append("percentiles are those of the time of a message: P99 is the slow end of a bandwidth too")
    windows = [window(row, at) for at in range(len(row.sizes))]
    if len(set(windows)) > 1:
        at = [f"{count} at {units.size(size)}" for count, size in zip(windows, row.sizes, strict=True)]
        words.append("messages in flight: " + ", ".join(at))
    if row.is_duplex:
        counted = ", both are counted" if row.quantity == "bandwidth" else ""
        words.append(f"both directions at once{counted}, by the clock of the lower rank")
    return words + osu_names.deviations(row)


def _closing_comments(row: Row, lines: list[Line]) -> list[str]:
    """Return what is known after the last size: the lines above are printed while the row is measured."""
    missing = [units.size(line.size) for line in lines if line.figures["figure"] is None]
    words = [f"not measured: {', '.join(missing)}"] if missing else []
    return [f"# fablint: {line}" for line in words + _on_reverse(row, lines) + _on_cpu_waits(row)]


def _on_reverse(row: Row, lines: list[Line]) -> list[str]:
    """A line that says by how much the other direction is worse; none without figures of both directions."""
    behind = []
    for line in lines:
        there, back = line.figures.get("figure"), line.figures.get("reverse")
        if isinstance(there, float) and isinstance(back, float) and there > 0 and back > 0:
            behind.append((back / there - 1 if row.quantity == "latency" else 1 - back / there, line.size))
    if not behind:
        return []
    worst, size = max(behind)
    factor = 1 + worst if row.quantity == "latency" else 1 / (1 - worst)
    loss = f"{factor:.2g} x as slow" if factor >= 2 else f"{units.share_text(worst)} worse"
    how = f"up to {loss} ({units.size(size)})" if worst > 0 else "nowhere worse"
    return [f"sent by the lower rank of each pair; the reverse was {how}, see --table pairs"]


def _on_cpu_waits(row: Row) -> list[str]:
    """A line that says how long ranks waited for a CPU; none if that is too short to change a figure."""
    shares = np.nan_to_num(rank_shares([row], len(row.facts.result.cpu_wait_s)))
    longest = int(np.argmax(shares)) if shares.size else 0
    if not shares.size or shares[longest] < NOTABLE:
        return []
    return [
        "ranks waited for a CPU that other processes used, rank "
        f"{longest} {units.share_text(shares[longest])} of the time: figures include these times"
    ]
