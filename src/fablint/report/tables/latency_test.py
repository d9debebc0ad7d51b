"""The file of SDSC's latency test: for every pair of hosts a line with their names, then an OSU table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fablint.model import Row, Run
from fablint.report.tables.cells import cells, central, ranks
from fablint.report.tables.osu_names import VERSION
from fablint.report.tables.table import Rendered, TableKind, fixed, medium_words, program, right
from fablint.report.tables.traffic import PAIRS


def _parts(_: Run, rows: Sequence[Row]) -> list[Row]:
    of_pairs = [row for row in rows if row.kernel == "latency" and row.pattern in PAIRS and row.statistics]
    return [row for row in of_pairs if not row.facts.schedule.retest_of]


# A section for each latency row of pairs. Option: so many pairs, the slowest at the smallest size first.
latency_test = TableKind[Row](
    "latency_test",
    options=("slowest",),
    needs="a latency row of pairs",
    measure="measure one with fablint bench latency_test",
    parts=_parts,
    section=lambda run, row, options: _section(run, row, options.slowest),
)


def _section(run: Run, row: Row, slowest: int | None) -> Rendered:
    hosts, name = run.rank_host, central(row)
    times_by_pair: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for index, size in enumerate(row.sizes):
        merged = cells(row, index, [name]).by_pair(ranks(row))
        for src, dst, seconds in zip(merged.src.tolist(), merged.dst.tolist(), merged.times[name], strict=True):
            times_by_pair.setdefault((src, dst), []).append((size, float(seconds)))
    pairs = sorted(times_by_pair)
    if slowest is not None:
        pairs = sorted(pairs, key=lambda pair: -times_by_pair[pair][0][1])[:slowest]
    lines = [f"# {program()}: row {row.name}, the {name} of half a round trip; a table per ordered pair"]
    lines += [f"# {line}" for line in medium_words(row)]
    facts: list[dict[str, Any]] = []
    for src, dst in pairs:
        lines += [f"{hosts[src]},{hosts[dst]}", f"# OSU MPI Latency Test v{VERSION}"]
        lines.append("# Size".ljust(10) + right("Latency (us)", 18))
        lines += [str(size).ljust(10) + right(fixed(seconds * 1e6), 18) for size, seconds in times_by_pair[src, dst]]
        sizes = [{"size": size, "seconds": seconds} for size, seconds in times_by_pair[src, dst]]
        facts.append({"src": src, "dst": dst, "src_host": hosts[src], "dst_host": hosts[dst], "sizes": sizes})
    return Rendered(tuple(lines), {"table": "latency_test", "row": row.name, "statistic": name, "pairs": facts})
