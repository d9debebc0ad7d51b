"""A row as the log of LinkTest 2.x: a line per step, running aggregates, the slowest pairs and their re-test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.model.registry.linktest_modes import LINKTEST_MODE, LINKTEST_MODES
from fablint.report.tables.cells import cells, central, ranks
from fablint.report.tables.pairs import slowest
from fablint.report.tables.steps import Aggregate, Step, aggregates, factor, rate_words, starts, steps, time_words
from fablint.report.tables.table import Rendered, TableKind, fixed, medium_words, program
from fablint.report.tables.traffic import PAIRS, messages, rates, warmups
from fablint.text import units

SLOWEST = 10  # LinkTest's --num-slowest


def _parts(_: Run, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    of_pairs = [row for row in rows if row.pattern in PAIRS and not row.facts.schedule.retest_of and row.statistics]
    return [(row, index) for row in of_pairs for index in range(len(row.sizes))]


# The log of every row of pairs, a section for each size. Option: how many of the slowest pairs are listed.
linktest = TableKind[tuple[Row, int]](
    "linktest",
    options=("slowest",),
    needs="a row of pairs",
    measure="measure one with --pattern all-pairs",
    parts=_parts,
    section=lambda run, part, options: _section(run, *part, SLOWEST if options.slowest is None else options.slowest),
)


def _section(run: Run, row: Row, index: int, count: int) -> Rendered:
    size = row.sizes[index]
    steps_of_size = steps(row, index)
    sofar = aggregates(steps_of_size)
    again = next((other for other in run.rows if other.facts.schedule.retest_of == row.name), None)
    slow = _slow_pairs(run, row, index, count, again)
    lines = [*_head(run, row, index), *_step_lines(row, size, steps_of_size, sofar)]
    if sofar:
        last = sofar[-1]
        lines += _results(row, size, (last.low, last.high, last.mean), "")
    lines += [_slow_line(place, row, size, pair) for place, pair in enumerate(slow)]
    if seconds := [pair["second"] for pair in slow if pair["second"] is not None]:
        lines += _results(row, size, (min(seconds), max(seconds), sum(seconds) / len(seconds)), " Stest")
    facts = {
        "table": "linktest",
        "row": row.name,
        "size": size,
        "factor": factor(row),
        "steps": [asdict(step) for step in steps_of_size],
        "aggregated": asdict(sofar[-1]) if sofar else None,
        "slowest": slow,
    }
    return Rendered(tuple(lines), facts)


def _head(run: Run, row: Row, index: int) -> list[str]:
    """Return what was asked for, as LinkTest 1.2 prints it (the header of 2.x is not published)."""
    kernel = (
        "bidirectional" if row.is_duplex else "unidirectional" if row.quantity == "bandwidth" else "semi-directional"
    )
    count, exact = messages(row, index)
    transport = row.facts.carrier.transport
    modes = {options["transport"]: mode for mode, options in LINKTEST_MODES.items() if len(options) == 1}
    settings = {
        LINKTEST_MODE: modes.get(transport, transport),
        "Number of MPI-Task": run.ranks,
        "Message length": f"{row.sizes[index]} Bytes",
        "Number of Iteration": f"{count}" if exact else f"{count} or more",
        "Number of Iter. (Warmup)": warmups(row, index),
        "serial test": int(row.facts.schedule.order == "serial"),
    }
    counted = "both directions, 2 x size / time" if row.is_duplex else "one direction, size / time"
    return [
        f"# {program()}: row {row.name} as LinkTest 2.x logs it; kernel {row.kernel} ({kernel}), pattern {row.pattern}",
        f"# bandwidth of a pair: {counted}; GiB/s is 2^30 bytes/s; a pair's time is the {central(row)} of its messages",
        *(f"# {line}" for line in medium_words(row)),
        *(f"linktest: {f'{name}:':<32}{value}" for name, value in settings.items()),
    ]


def _step_lines(row: Row, size: int, steps: Sequence[Step], sofar: Sequence[Aggregate]) -> Iterator[str]:
    word = "Serial" if row.facts.schedule.order == "serial" else "Parallel"
    rounds, repeats = row.facts.schedule.rounds, max(1, row.facts.schedule.repeats)
    per_repeat = max(1, rounds // repeats)
    began = starts(row) if len(row.sizes) == 1 else np.full(rounds, np.nan)
    for place, (step, total) in enumerate(zip(steps, sofar, strict=True)):
        number = step.number % per_repeat + 1
        if repeats > 1 and (place == 0 or number <= steps[place - 1].number % per_repeat + 1):
            yield f"# iteration {step.number // per_repeat + 1} of {repeats}"
        if not step.complete:
            yield f"# step {number}: {step.cells} of {units.plural(step.planned, 'directed pair')} measured"
        yield f"{word} Results for step {number}: {_figures(row, size, step)}"
        yield f"Aggregated Results: {_figures(row, size, total)}"
        following = steps[place + 1].number if place + 1 < len(steps) else None
        end = row.facts.result.wall_s if following is None else began[following] - began[steps[0].number]
        if end is not None and np.isfinite(end) and np.isfinite(began[steps[0].number]):
            yield _timing(float(end), place + 1, per_repeat - number, rounds - step.number - 1)


def _timing(elapsed: float, done: int, left: int, left_in_all: int) -> str:
    each = elapsed / done
    return (
        f"Timing Summary: Elapsed time: {time_words(elapsed)} ({time_words(each)}/step). "
        f"Estimated time remaining for iteration: {time_words(each * left)} ({left} steps). "
        f"Estimated total time remaining: {time_words(each * left_in_all)}"
    )


def _figures(row: Row, size: int, aggregate: Step | Aggregate) -> str:
    words = [
        f"{name}: {time_words(seconds)} ({rate_words(_rate(row, size, seconds))})"
        for name, seconds in (("min", aggregate.low), ("avg", aggregate.mean), ("max", aggregate.high))
    ]
    if row.pattern == "bisection":
        words.append(f"avg. bisection bw: {rate_words(aggregate.bandwidth)}")
    return " ".join(words)


def _rate(row: Row, size: int, seconds: float) -> float:
    return float(factor(row) * rates(size, seconds))


def _results(row: Row, size: int, low_high_mean: tuple[float, float, float], which: str) -> list[str]:
    return [
        f"RESULT: {name} Time{which}: {time_words(seconds)} ({rate_words(_rate(row, size, seconds))})"
        for name, seconds in zip(("Min", "Max", "Avg"), low_high_mean, strict=True)
    ]


def _slow_pairs(run: Run, row: Row, index: int, count: int, again: Row | None) -> list[dict[str, Any]]:
    """The slowest pairs, slowest first; all those that were re-tested. `second` is what the re-test found, in s."""
    name, size, hosts = central(row), row.sizes[index], run.rank_host
    second: dict[tuple[int, int], float] = {}
    if again is not None and size in again.sizes:
        retest = cells(again, again.sizes.index(size), [central(again)]).by_pair(ranks(again))
        retested_pairs = zip(retest.src, retest.dst, retest.times[central(again)], strict=True)
        second = {(int(src), int(dst)): float(time) for src, dst, time in retested_pairs}
    worst = slowest(row, index, count, also=second)
    return [
        {
            "src": int(src),
            "dst": int(dst),
            "src_host": hosts[src],
            "dst_host": hosts[dst],
            "first": float(first),
            "second": second.get((int(src), int(dst))),
        }
        for src, dst, first in zip(worst.src, worst.dst, worst.times[name], strict=True)
    ]


def _slow_line(place: int, row: Row, size: int, pair: dict[str, Any]) -> str:
    """Format as LinkTest 1.2 prints it, with MiB/s called MiB/s and the hosts at the end."""

    def figures(seconds: float | None) -> str:
        if seconds is None:
            return "not re-tested"
        return f"{seconds * 1e6:10.4f}us ({fixed(_rate(row, size, seconds) / 2**20):>7} MiB/s)"

    ends = f"{pair['src']:6d}  <->  {pair['dst']:6d}"
    both = f"1st: {figures(pair['first'])}    2nd: {figures(pair['second'])}"
    return f" {place:6d}: PINGPONG {ends}:  {both}  {pair['src_host']} <-> {pair['dst_host']}"
