"""LinkTest's logs and result files -> cells. A figure is half a round trip."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Ints
from fablint.model.registry.linktest_modes import LINKTEST_MODE, LINKTEST_MODES
from fablint.store.importing.cells import (
    LATENCY,
    Body,
    Imported,
    Order,
    RankName,
    cells_of,
    left_out,
    matrix_cells,
    measurable,
    ranks_named,
    refuse_hosts,
    world_body,
)
from fablint.store.importing.lines import INTEGER, marked, text_of
from fablint.store.importing.linktest import LinktestLog, SlowPair, Step, parse_linktest
from fablint.store.importing.sion import MAGIC, LinktestSion, parse_sion

MARK = marked(
    rb" *(?:linktest: \w|(?:Parallel|Serial) +PingPong for step|(?:Parallel|Serial) Results for step|"
    rb"RESULT: (?:Min|Avg|Max) Time)"
)
SION = MAGIC

MOST_RANKS = 1 << 21  # more than any run had

_RETEST = "latency-retest"


def read_sion(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import a SION file: all pairs, and the retests of the slowest."""
    refuse_hosts(hosts)
    parsed = parse_sion(data)
    n = len(parsed.hosts)
    body = _sweep(parsed, n)
    slowest = _retest_body(parsed.retest_src, parsed.retest_dst, parsed.retest_seconds.tolist(), parsed.size)
    return Imported(
        tool="linktest " + ".".join(map(str, parsed.version[:2])),
        rank_names=tuple(RankName(host, str(rank)) for rank, host in enumerate(parsed.hosts)),
        bodies=(body, *([slowest] if len(slowest.cells) else [])),
    )


def _sweep(parsed: LinktestSion, n: int) -> Body:
    """Cells of the sweep. In every step all ranks are in pairs; each pair is measured from one end and then the
    other.
    """
    steps = max(1, n - 1)
    cells = matrix_cells(parsed.seconds, parsed.size, np.clip(parsed.step - 1, 0, steps - 1), max(1, parsed.messages))
    order: Order = "serial" if parsed.serial else "parallel"
    planned = np.bincount(np.clip(parsed.step - 1, 0, steps - 1)[~np.eye(n, dtype=bool)], minlength=steps)
    return Body("latency", LATENCY, cells, planned.tolist(), order, facts={"directions": "both"})


def _retest_body(src: Ints, dst: Ints, seconds: Sequence[float], size: int, name: str = _RETEST) -> Body:
    """Cells of pairs that were measured again, one after the other."""
    good = [at for at, value in enumerate(seconds) if measurable(value)]
    entries = [(int(src[at]), int(dst[at]), size, seconds[at]) for at in good]
    cells = cells_of(entries, list(range(len(entries))))
    facts = {"retest_of": "latency", "directions": "one"}
    return Body(name, LATENCY, cells, [1] * len(entries), "serial", "rounds", facts)


def read_linktest(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import a log. For parallel steps it names only the slowest pairs, with the extremes of the others.

    The slowest pairs were selected because they were slow, so that they alone allow no judgement of a host: they become
    retests of a row `latency`, which a parallel log does not have.

    Raises
    ------
    UsageError
        The log does not state the message length, or is not one of LinkTest.
    """
    log = parse_linktest(text_of(data))
    size, ranks = _size(log), _ranks(log)
    if size is None:
        raise UsageError("the log does not state the message length", "give the complete output of linktest")
    carrier = _carrier(log)
    bodies = [
        replace(body, facts={**body.facts, **carrier})
        for body in (*_serial(log, size, ranks), *_slowest(log, size), *_steps(log, size))
    ]
    paired = bool(log.pairs)
    return Imported(
        tool=f"linktest {'1' if 'Number of MPI-Task' in log.facts else '2'}",
        rank_names=_rank_names(log.hosts, ranks, hosts),
        bodies=tuple(body for body in bodies if len(body.cells)),
        left_out=left_out(log.foreign),
        not_judged="" if paired else _slowest_pairs(log),
        remedy="" if paired else "a log of parallel steps names the slowest pairs only: give the .sion file",
    )


def _slowest_pairs(log: LinktestLog) -> str:
    """Return what the slowest pairs of a log have in common: the most frequent rank, and pairs named several times."""
    pairs = [(pair.src, pair.dst) for pair in log.slowest if pair.src != pair.dst]
    if not pairs:
        return "no single pairs, only sums of steps"
    words = []
    rank, count = Counter(rank for pair in pairs for rank in set(pair)).most_common(1)[0]
    if count > 1:
        words.append(f"{rank} in {count} of {len(pairs)}")
    times = {2: "twice"}
    for (low, high), named in Counter((min(pair), max(pair)) for pair in pairs).most_common(2):
        if named > 1:
            words.append(f"{low}<->{high} {times.get(named, f'{named} times')}")
    return f"slowest pairs only: {', '.join(words) or 'no rank in two of them'}"


def _carrier(log: LinktestLog) -> dict[str, str]:
    """Transport of the messages as an attribute of a row: of 2.x as its header states it; 1.x has MPI only."""
    mode = log.facts.get(LINKTEST_MODE)
    if mode is None:
        return {"transport": "mpi" if "Number of MPI-Task" in log.facts else "unknown"}
    return {name.replace("-", "_"): word for name, word in LINKTEST_MODES.get(mode, {"transport": mode}).items()}


def _size(log: LinktestLog) -> int | None:
    """Message size in bytes, from the header, else from a time and its rate."""
    if match := re.match(rf"({INTEGER}) Bytes", log.facts.get("Message length", "")):
        return int(match[1])
    figure = next((step.avg for step in log.steps if step.avg.seconds > 0), None)
    return round(figure.seconds * figure.rate) if figure else None


def _ranks(log: LinktestLog) -> int:
    """Return the number of ranks: 1.x states it, in 2.x the sum of a step is that of half as many pairs."""
    declared = log.facts.get("Number of MPI-Task", "")
    named = [rank for pair in log.pairs for rank in (pair.src, pair.dst)]
    named += [rank for pair in log.slowest for rank in (pair.src, pair.dst)]
    sums = [step for step in (*log.steps, *log.aggregated) if step.bisection and step.avg.rate > 0]
    pairs = max((round(step.bisection / step.avg.rate) for step in sums if step.bisection), default=1)
    declared_ranks = int(declared) if re.fullmatch(INTEGER, declared) else 2 * max(pairs, 1)
    count = max([declared_ranks, *(rank + 1 for rank in (*named, *log.hosts))])
    if count > MOST_RANKS:
        raise UsageError(f"rank {count - 1} is more than LinkTest can have", "the log is damaged")
    return count


def _rank_names(host_of_rank: Mapping[int, str], ranks: int, hosts: Sequence[str]) -> tuple[RankName, ...]:
    if len(host_of_rank) < ranks:  # its stderr, which has the names, is not in the text
        return ranks_named(ranks, hosts)
    refuse_hosts(hosts)
    return tuple(RankName(host_of_rank[rank], str(rank)) for rank in range(ranks))


def _serial(log: LinktestLog, size: int, ranks: int) -> list[Body]:
    """The steps of a serial sweep, which list every pair."""
    if not log.pairs:
        return []
    starts = [step.line for step in log.steps if step.serial]  # the line of its sums, which follows its pairs
    usable = [pair for pair in log.pairs if measurable(pair.figure.seconds) and pair.src != pair.dst]
    rounds = np.searchsorted(starts, [pair.line for pair in usable]).tolist()
    entries = [(pair.src, pair.dst, size, pair.figure.seconds) for pair in usable]
    cells = cells_of(entries, rounds, _iterations(log))
    planned = [ranks] * max(ranks - 1, max(rounds, default=0) + 1)
    return [Body("latency", LATENCY, cells, planned, "serial", facts={"directions": "both"})]


def _iterations(log: LinktestLog) -> int:
    declared = log.facts.get("Number of Iteration", "")
    return max(1, int(declared)) if re.fullmatch(INTEGER, declared) else 1


def _slowest(log: LinktestLog, size: int) -> list[Body]:
    def body(name: str, pairs: Sequence[SlowPair], seconds: Sequence[float]) -> Body:
        src, dst = (np.array([getattr(pair, end) for pair in pairs], np.int64) for end in ("src", "dst"))
        return _retest_body(src, dst, seconds, size, name)

    pairs = [pair for pair in log.slowest if pair.src != pair.dst]
    again = [pair for pair in pairs if pair.second is not None]
    bodies = [body(_RETEST, again, [pair.second.seconds for pair in again if pair.second])]
    if not log.pairs:  # otherwise the steps contain the first times
        bodies.append(body("latency-slowest", pairs, [pair.first.seconds for pair in pairs]))
    return bodies


def _steps(log: LinktestLog, size: int) -> list[Body]:
    """Shortest, mean and longest time of the pairs of each step."""

    def seconds(step: Step) -> dict[str, float]:
        return {"min": step.min.seconds, "mean": step.avg.seconds, "max": step.max.seconds}

    times = [seconds(step) for step in log.steps]
    entries = [(size, extremes) for extremes in times if all(map(measurable, extremes.values()))]
    return [world_body("steps", LATENCY, entries)] if entries else []
