"""The commitment table of LinkTest: lowest, mean and highest bisection bandwidth, and whether it may be called so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fablint.model import Row, Run
from fablint.report.tables.commitment import SIZE, CommitmentRule, rules
from fablint.report.tables.steps import Aggregate, aggregates, factor, rate_words, steps, time_words
from fablint.report.tables.table import Rendered, TableKind, program
from fablint.report.tables.traffic import messages, rates
from fablint.text import units

_UNITS = ((2.0**40, "TiB/s"), (2.0**30, "GiB/s"), (2.0**20, "MiB/s"), (1.0, "B/s"))


# A section for each row of the pattern bisection, at 16 MiB where that was measured, else at the largest size.
bisection = TableKind[Row](
    "bisection",
    options=(),
    needs="a row of the pattern bisection",
    measure="measure one with --pattern bisection, such as fablint bench linktest_bisection",
    parts=lambda _, rows: [row for row in rows if row.pattern == "bisection" and row.statistics],
    section=lambda run, row, _: _section(run, row),
)


def _section(run: Run, row: Row) -> Rendered:
    size = SIZE if SIZE in row.sizes else max(row.sizes)
    index = row.sizes.index(size)
    whole = [step for step in steps(row, index) if step.complete]  # a step with missing pairs has too small a sum
    checked = rules(run, row, index)
    broken = [rule.name for rule in checked if not rule.kept]
    count, exact = messages(row, index)
    facts: dict[str, Any] = {
        "table": "bisection",
        "row": row.name,
        "commitment": not broken,
        "broken": broken,
        "rules": [asdict(rule) for rule in checked],
        "messages": count,
        "messages_exact": exact,
        "size": size,
        "options": " ".join((["--bidirectional"] if row.is_duplex else []) + ["--bisection"]),
        "nodes": len(run.hosts),
        "tasks_per_node": _per_node(run),
        "directions_counted": factor(row),
        "steps": len(whole),
        "bisection_bytes_per_s": None,
        "aggregated": None,
    }
    sums = ["No step was measured whole."]
    if whole:
        total, bandwidths = aggregates(whole)[-1], [step.bandwidth for step in whole]
        low_mean_high = (min(bandwidths), total.bandwidth, max(bandwidths))
        facts["bisection_bytes_per_s"] = dict(zip(("min", "avg", "max"), low_mean_high, strict=True))
        facts["aggregated"] = asdict(total)
        sums = ["Bisection bandwidth", *_bandwidths(low_mean_high), "", *_aggregated_results(row, size, total)]
    return Rendered((*_configuration(row, facts), "", *sums, "", *_verdict(checked, broken)), facts)


def _configuration(row: Row, facts: Mapping[str, Any]) -> list[str]:
    columns = {
        "Messages": "messages",
        "Size": "size",
        "Options": "options",
        "Nodes": "nodes",
        "Tasks per Node": "tasks_per_node",
        "Steps": "steps",
    }
    return [
        f"# {program()}: bisection bandwidth of row {row.name}, by the rules of the LinkTest commitment",
        f"# bytes counted: {_counted(row)}; GiB/s is 2^30 and TiB/s 2^40 bytes/s",
        "# min and max: of the sums of all pairs of a step, over the steps; avg: their mean, as in the last line of"
        " LinkTest's aggregated results",
        "",
        "Configuration",
        *units.columns([list(columns), [str(facts[name]) for name in columns.values()]], left=3),
    ]


def _aggregated_results(row: Row, size: int, total: Aggregate) -> list[str]:
    lines = ["Aggregated results"]
    for name, seconds in (("Min", total.low), ("Avg", total.mean), ("Max", total.high)):
        pair = float(factor(row) * rates(size, seconds))
        lines.append(f"{name}  {time_words(seconds)}  {rate_words(pair)}")
    return lines


def _verdict(checked: Sequence[CommitmentRule], broken: Sequence[str]) -> list[str]:
    width = max(len(rule.name) for rule in checked)
    lines = [f"{'kept' if rule.kept else 'BROKEN':<8}{rule.name:<{width}}  {rule.found}" for rule in checked]
    verdict = "This is a commitment run: all rules are kept."
    if broken:
        verdict = f"This is NOT a commitment run. Broken: {'; '.join(broken)}."
    return ["Rules", *lines, "", verdict]


def _counted(row: Row) -> str:
    return (
        "both directions of every pair, 2 x size / time"
        if row.is_duplex
        else "one direction of every pair, size / time"
    )


def _per_node(run: Run) -> str:
    counts = set(Counter(run.rank_host).values())
    return str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def _bandwidths(low_mean_high: tuple[float, float, float]) -> list[str]:
    """One unit for the three, that of the smallest."""
    scale, unit = next((pair for pair in _UNITS if low_mean_high[0] >= pair[0]), _UNITS[-1])
    return units.columns([["Unit", "Min", "Avg", "Max"], [unit, *(f"{value / scale:.4f}" for value in low_mean_high)]])
