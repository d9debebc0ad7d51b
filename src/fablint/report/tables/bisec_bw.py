"""The lines of HPE's bisec_bw: rank i and i + n/2 send to each other at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.report.tables.cells import Cells, cells, central, ranks
from fablint.report.tables.table import Options, Rendered, TableKind, fixed, medium_words, program
from fablint.report.tables.traffic import messages, rates

_PATTERNS = ("pair", "pairs")
# A section for each row of a kernel with both directions at once on pairs i, i + n/2. Options: so many of the slowest
# pairs of a size, and the hosts as well.
bisec_bw = TableKind[Row](
    "bisec_bw",
    options=("full", "slowest"),
    needs="a row of exchange or bibandwidth on the pattern pairs",
    measure="measure one with fablint bench bisec_bw",
    parts=lambda _, rows: [row for row in rows if row.is_duplex and row.pattern in _PATTERNS and row.statistics],
    section=lambda run, row, options: _section(run, row, options),
)


def _section(run: Run, row: Row, options: Options) -> Rendered:
    count, exact = messages(row, 0)
    per_host = run.ranks / len(run.hosts)
    lines = [
        f"# {program()}: row {row.name} in the lines of bisec_bw; MB is 10^6 and GB 10^9 bytes",
        "# every rank's bytes sent, by its own clock; hosts are those of the run; an elapsed time is that of all"
        " repetitions",
        *(f"# {line}" for line in medium_words(row)),
        f" Number of Process {run.ranks}",
        f"PPN: {per_host:g}, Number of nodes: {len(run.hosts)}, Num_reps = {count}{'' if exact else ' or more'}",
    ]
    facts = []
    for index, size in enumerate(row.sizes):
        merged = cells(row, index, [central(row)]).by_pair(ranks(row))
        if not len(merged):
            lines.append(f"# not measured: {size} bytes")
            continue
        entry = _size(run, row, index, merged)
        facts.append(entry)
        lines.append(
            f"{run.ranks} Ranks, Msg Size: {size:9d} bytes, "
            f"Node BW: {fixed(entry['bytes_per_s_per_host'] / 1e6):>9} MB/sec/node,  "
            f"Aggregate BW: {fixed(entry['bytes_per_s'] / 1e9):>6} GB/sec"
        )
        lines += [_pair_line(pair) for pair in _chosen(entry["pairs"], options.slowest)]
        if options.full:
            hosts = sorted(entry["hosts"].items(), key=lambda item: float(item[1]))
            lines += [f"Host {host} {fixed(rate / 1e6):>9} MB/sec" for host, rate in hosts]
    return Rendered(tuple(lines), {"table": "bisec_bw", "row": row.name, "ranks": run.ranks, "sizes": facts})


def _size(run: Run, row: Row, index: int, merged: Cells) -> dict[str, Any]:
    """All figures of one size: rates in bytes/s, times in s."""
    size, hosts = row.sizes[index], run.rank_host
    rate = rates(size, merged.times[central(row)])
    host_rates = dict.fromkeys(run.hosts, 0.0)
    for src, speed in zip(merged.src, rate, strict=True):
        host_rates[hosts[src]] += float(speed)
    pair_rates = {(int(a), int(b)): float(r) for a, b, r in zip(merged.src, merged.dst, rate, strict=True)}
    moved = 2 * messages(row, index)[0] * size
    pairs = []
    for (a, b), there in pair_rates.items():
        back = pair_rates.get((b, a))
        if a < b and back is not None:
            both = there + back
            pairs.append({"ranks": [a, b], "hosts": [hosts[a], hosts[b]], "seconds": moved / both, "bytes_per_s": both})
    total = float(np.sum(rate))
    return {
        "size": size,
        "bytes_per_s": total,
        "bytes_per_s_per_host": total / len(run.hosts),
        "hosts": host_rates,
        "pairs": pairs,
    }


def _chosen(pairs: list[dict[str, Any]], slowest: int | None) -> list[dict[str, Any]]:
    return pairs if slowest is None else sorted(pairs, key=lambda pair: float(pair["bytes_per_s"]))[:slowest]


def _pair_line(pair: dict[str, Any]) -> str:
    """The reference's line, which it never prints; the hosts at the end are ours."""
    a, b = pair["ranks"]
    figures = f"Elapsed time = {fixed(pair['seconds']):>9} sec ({fixed(pair['bytes_per_s'] / 1e6):>9} MB/sec)"
    return f"Pair ({a}<->{b}) {figures}  {pair['hosts'][0]} <-> {pair['hosts'][1]}"
