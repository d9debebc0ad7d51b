"""The table of nccl-tests for collectives: out of place and in place side by side, with algorithm and bus bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fablint.model import Row, Run
from fablint.model.registry import KERNELS
from fablint.report.tables.cells import cells, central, ranks
from fablint.report.tables.table import Rendered, TableKind, program
from fablint.report.tables.traffic import collective_bytes, collective_ranks, collective_rates
from fablint.text import units

_FLOAT = 4  # bytes
_PLACES = ("out_of_place", "in_place")
_HALF = f"  {'time':>7}  {'algbw':>6}  {'busbw':>6} #wrong"
_HEAD = (
    f"#{'out-of-place':>74}{'in-place':>31}{'':10}",
    f"# {'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}  {'root':>6}" + _HALF * 2,
    f"# {'(B)':>10}  {'(elements)':>12}{'':26}" + f"  {'(us)':>7}  (GB/s)  (GB/s){'':7}" * 2,
)


def is_shown(row: Row) -> bool:
    """Return whether nccl-tests has a program for the kernel of the row."""
    return (
        row.kernel in KERNELS
        and bool(KERNELS[row.kernel].nccl_test)
        and row.pattern == "world"
        and bool(row.statistics)
    )


def _parts(_: Run, rows: Sequence[Row]) -> list[dict[str, Row]]:
    """Rows by place, those of the same collective together."""
    groups: dict[tuple[str, str, bool, str], dict[str, Row]] = {}
    for row in filter(is_shown, rows):
        place = _PLACES[bool(row.facts.sampling.in_place)]
        key = row.kernel, row.facts.carrier.transport, row.facts.sampling.validate, row.facts.variant
        groups.setdefault(key, {}).setdefault(place, row)
    return list(groups.values())


# A section for each collective; its rows in place and out of place share the lines.
nccl_tests = TableKind[dict[str, Row]](
    "nccl_tests",
    options=(),
    needs="a row of a collective other than the barrier",
    measure="measure one with fablint bench all_reduce_perf",
    parts=_parts,
    section=lambda run, group, _: _table(run, group),
)


def _table(run: Run, group: dict[str, Row]) -> Rendered:
    row = next(iter(group.values()))
    kernel, members = KERNELS[row.kernel], collective_ranks(run, row)
    operation, root = "sum" if kernel.adds_floats else "none", 0 if kernel.is_rooted else -1
    sizes = sorted({size for each in group.values() for size in each.sizes})
    lines = [{place: _figures(run, each, size) for place, each in group.items()} for size in sizes]
    measured_figures = [figures for line in lines for figures in line.values() if figures]
    average = (
        sum(figures["bus_bandwidth"] for figures in measured_figures) / len(measured_figures)
        if measured_figures
        else 0.0
    )
    text = [f"# Collective test starting: {kernel.nccl_test}_perf", *_comments(run, row), "#", "# Using devices"]
    text += [_device(run, rank) for rank in range(run.ranks)]
    text += ["#", *_HEAD]
    for size, line in zip(sizes, lines, strict=True):
        elements, datatype = (size // _FLOAT, "float") if _is_of_floats(row, size) else (size, "uint8")
        total = collective_bytes(row.kernel, size, members)
        halves = "".join(_half(line.get(place)) for place in _PLACES)
        text.append(f"{total:12}  {elements:12}  {datatype:>8}  {operation:>6}  {root:6}{halves}")
    wrong = sum(figures["wrong"] or 0 for figures in measured_figures)  # 0 without a check as well, as in nccl-tests
    text.append(f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}")
    text += [f"# Avg bus bandwidth    : {average / 1e9:g} ", "#"]
    facts = {
        "table": "nccl_tests",
        "test": kernel.nccl_test,
        "rows": [each.name for each in group.values()],
        "ranks": members,
        "average_bus_bandwidth": average,
        "sizes": [
            {"size": collective_bytes(row.kernel, size, members), **line}
            for size, line in zip(sizes, lines, strict=True)
        ],
    }
    return Rendered(tuple(text), facts)


def _comments(run: Run, row: Row) -> list[str]:
    """Return what was timed."""
    transport, memory = row.facts.carrier.transport, row.facts.carrier.memory
    batch = row.facts.sampling.batch or 1
    calls = "each call after a barrier" if batch == 1 else f"{batch} calls one after another, after a barrier"
    members = units.plural(collective_ranks(run, row), "rank")
    calls += " and until the device has completed them" * (transport == "nccl")
    return [
        f"# {program()}: format of nccl-tests; transport {transport}, {memory} memory",
        f"# fablint: times are those of a call, mean over {members}; timed: {calls}",
    ]


def _device(run: Run, rank: int) -> str:
    """The line of a rank: its host and, where the run has it, number, PCI bus and model of its GPU."""
    gpu, pci, model = (
        names[rank] if names else "" for names in (run.facts.rank_gpu, run.facts.rank_gpu_pci, run.facts.rank_gpu_model)
    )
    bus = f" [0x{pci.split(':')[1]}] {model}" if pci.count(":") == 2 else ""
    return f"#  Rank {rank:2} Group  0 on {run.rank_host[rank]:>10} device {gpu.removeprefix('gpu') or '-':>2}{bus}"


def _is_of_floats(row: Row, size: int) -> bool:
    """NCCL copies floats where the size allows it; MPI copies bytes."""
    return KERNELS[row.kernel].adds_floats or (row.facts.carrier.transport == "nccl" and size % _FLOAT == 0)


def _figures(run: Run, row: Row, size: int) -> dict[str, Any]:
    """Seconds, bytes/s, and the number of results that were wrong (None: not checked); empty if not measured."""
    if size not in row.sizes:
        return {}
    name = central(row)
    merged = cells(row, row.sizes.index(size), [name]).by_pair(ranks(row))
    if not len(merged):
        return {}
    seconds = float(merged.times[name].mean())
    algorithm, bus = collective_rates(row.kernel, size, collective_ranks(run, row), seconds)
    wrong = None
    if row.facts.sampling.validate:
        wrong = sum(entry.size == size for entry in row.facts.result.corrupt)
    return {"seconds": seconds, "algorithm_bandwidth": algorithm, "bus_bandwidth": bus, "wrong": wrong}


def _half(figures: dict[str, Any] | None) -> str:
    if not figures:
        return f"  {'N/A':>7}  {'N/A':>6}  {'N/A':>6}  {'N/A':>5}"
    us = figures["seconds"] * 1e6
    time = f"{us:7.0f}" if us >= 10_000 else f"{us:7.1f}" if us >= 100 else f"{us:7.2f}"
    wrong = "N/A" if figures["wrong"] is None else str(figures["wrong"])
    algorithm, bus = figures["algorithm_bandwidth"] / 1e9, figures["bus_bandwidth"] / 1e9
    return f"  {time}  {algorithm:6.2f}  {bus:6.2f}  {wrong:>5}"
