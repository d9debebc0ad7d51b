"""OSU tables -> cells: of one pair of ranks each, or of many if the program prints one figure for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fablint.model.figures.percentiles import STATISTICS_AT, Statistic
from fablint.model.names import plural
from fablint.model.registry import SYNCS, WINS
from fablint.store.importing.captions import distinct_captions
from fablint.store.importing.cells import (
    Body,
    Cells,
    Damage,
    Imported,
    Kernel,
    LeftOut,
    RankName,
    left_out,
    measurable,
    ranks_named,
    sharpest,
    world_body,
)
from fablint.store.importing.job_maps import JobHosts
from fablint.store.importing.lines import marked, text_of
from fablint.store.importing.osu import OsuRow, OsuTable, OsuText, parse_osu
from fablint.store.importing.osu_tests import LATENCIES, RECORDED, OsuTest, buffers_of, language_of, test_of

MARK = marked(
    rb" *# (?:OSU (?:(?:Open )?MPI|One Sided|[NR]CCL|[\w-]+ Test$)|OMB[- ]Py|Size[ \t]+\S.*(?:[(\[]us[)\]]|MB/s))"
)


_WIN = {osu: name for name, osu in WINS.items()}
_SYNC = {osu: name for name, osu in SYNCS.items()}
_RATES = ("Bandwidth (MB/s)", "Bi-Bandwidth (MB/s)", "MB/s")
_LATENCY_TAIL, _RATE_TAIL = re.compile(r"P([0-9.]+) Tail Lat"), re.compile(r"P([0-9.]+) Tail BW")
_OF_TIME = "percentiles are those of the time"  # in a comment of fablint's own tables
_OVERLAPPED = "Pure Comm.(us)"  # of a non-blocking collective: its time without computation
_WORKERS = ("Number of {} threads", "Number of forked processes in {}")
_US, _MB = 1e-6, 1e6
_HALF = 0.005  # of the last of two decimals


def read_osu(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import tables: tables of the same test become one row, a table the cells of one pair.

    A table below a line `hostA,hostB`, as Latency_Test writes it, is one program start for that pair; the hosts in the
    order in which they appear are those of the job.
    """
    parsed = parse_osu(text_of(data))
    reader = _Reader(parsed, hosts)
    for table in _without_twins(parsed.tables):
        reader.take(table)
    order = list(dict.fromkeys(host for launch in parsed.launches for host in launch.hosts))
    skipped = [*left_out(parsed.foreign), *left_out(parsed.unknown, "a column that is not known"), *reader.skipped]
    skipped += [
        LeftOut(parsed.launches[at].line, ",".join(parsed.launches[at].hosts), "no figures") for at in reader.empty
    ]
    return Imported(
        tool=" ".join(["osu", *sorted({table.version for table in parsed.tables if table.version})]),
        rank_names=tuple(reader.rank_names),
        bodies=reader.bodies(),
        left_out=tuple(sorted(skipped, key=lambda line: line.line)),
        missing=reader.missing(),
        launch="pair" if parsed.launches else "all",
        allocation=tuple(order) if len(order) > 2 else (),
    )


def _without_twins(tables: Sequence[OsuTable]) -> list[OsuTable]:
    """Tables without duplicates: -V prints each result as MB/s and as messages/s, which has more digits for few
    messages.
    """

    def are_twins(table: OsuTable, second: OsuTable) -> bool:
        if (table.title, table.windows, table.launch) != (second.title, second.windows, second.launch):
            return False
        is_repeated = table.columns[0].startswith("MB/s") and second.columns[0].startswith("Messages/s")
        return bool(table.windows) and is_repeated

    return [
        table
        for table, following in zip(tables, [*tables[1:], None], strict=True)
        if following is None or not are_twins(table, following)
    ]


@dataclass
class _Gathered:
    """Cells of all tables of one test."""

    test: OsuTest
    facts: Mapping[str, Any]
    launches: list[int] = field(default_factory=list)
    entries: list[tuple[int, int, int, int]] = field(default_factory=list)  # src, dst, launch, size
    seconds: list[Mapping[Statistic, float]] = field(default_factory=list)
    checked: bool = False
    damage: list[Damage] = field(default_factory=list)


class _Reader:
    """State of a reader that takes the tables one by one."""

    def __init__(self, parsed: OsuText, hosts: Sequence[str]) -> None:
        self.parsed, self.hosts = parsed, hosts
        self.skipped: list[LeftOut] = []
        self.gathered: dict[str, _Gathered] = {}
        self.captions = distinct_captions((table.title, table.caption) for table in parsed.tables)
        self.world: list[Body] = []
        self.rank_names: dict[RankName, int] = {}
        full = {table.launch for table in parsed.tables if table.rows}
        self.empty = [at for at in range(len(parsed.launches)) if at not in full]
        for launch in parsed.launches:
            for host in launch.hosts:
                self._rank_index(RankName(host))
        if (hosts and not isinstance(hosts, JobHosts)) or any(table.launch is None for table in parsed.tables):
            for rank_name in ranks_named(self._ranks(), hosts):
                self._rank_index(rank_name)

    def _ranks(self) -> int:
        """Number of ranks in the tables; the number of hosts given by the user if a table does not state it."""
        most = 2 * max((_pairs(table) or 1 for table in self.parsed.tables), default=1)
        tests = [(test_of(table)[0], table) for table in self.parsed.tables]
        open_ended = any(
            test is None or test.collective or (test.many and _pairs(table) is None) for test, table in tests
        )
        return max(most, len(self.hosts)) if open_ended else most

    def _rank_index(self, rank_name: RankName) -> int:
        return self.rank_names.setdefault(rank_name, len(self.rank_names))

    def missing(self) -> str:
        if self.empty:
            empty, launches = self.empty, self.parsed.launches
            first = launches[empty[0]].line
            return f"{len(empty)} of {len(launches)} pairs have no figures, the first is on line {first}"
        if self.parsed.unknown:
            return f"the column '{self.parsed.unknown[0].text}' is not known (line {self.parsed.unknown[0].line})"
        if self.parsed.aborted:
            return f"a program was aborted (line {self.parsed.aborted})"
        if short := _cut_short(self.parsed):
            return f"{plural(len(short), 'table')} without all sizes of the test, the first is on line {short[0].line}"
        return "the last line is cut off" if self.parsed.truncated else ""

    def take(self, table: OsuTable) -> None:
        test, carrier = test_of(table)
        if reason := self._refusal(table, test):
            self.skipped.append(LeftOut(table.line, table.title or "a table without a title", reason))
            return
        assert test is not None
        facts = _facts(table, self.captions) | dict(carrier)
        for at in range(max(1, len(table.windows))):
            facts_of_window = facts | ({"window": table.windows[at]} if table.windows else {})
            figures = [(row, _seconds(table, test, row, at)) for row in table.rows]
            self.skipped += [
                LeftOut(row.line, _words(row), "no figure above 0") for row, seconds in figures if not seconds
            ]
            usable = [(row.size or 0, seconds) for row, seconds in figures if seconds]
            pairs = self._pairs_together(table, test)
            if test.collective or pairs > 1:
                together = facts_of_window | (
                    {"collective_ranks": self._ranks()} if test.collective else {"pairs": pairs}
                )
                self.world += [self._world_body(table, test, usable, together)] if usable else []
            else:
                self._gather(table, test, facts_of_window, usable)

    def _world_body(
        self,
        table: OsuTable,
        test: OsuTest,
        usable: Sequence[tuple[int, dict[Statistic, float]]],
        facts: Mapping[str, Any],
    ) -> Body:
        body = world_body(test.name or test.kernel.name, test.kernel, usable, **facts)
        return replace(body, checked=table.is_checked, damage=tuple(Damage(row.size or 0) for row in table.damaged))

    def _pairs_together(self, table: OsuTable, test: OsuTest) -> int:
        """Number of pairs of which the table has one figure."""
        return (_pairs(table) or (len(self.hosts) // 2 if table.launch is None else 1)) if test.many else 1

    def _refusal(self, table: OsuTable, test: OsuTest | None) -> str:
        """Reason why the table cannot be imported; '' if it can."""
        if not table.rows:
            return "no figures"
        if test is None:
            return "not a supported test of messages"
        names = LATENCIES if test.kernel.quantity == "latency" else _RATES
        if not table.windows and table.columns[0] not in names and _OVERLAPPED not in table.columns:
            return f"the column '{table.columns[0]}' is not the title's: fan-in and fan-out print MB/s under it"
        unknown = test.collective or (test.many and _pairs(table) is None)
        if unknown and table.launch is None and not self.hosts:
            wrong = len(table.damaged)
            damage = f"payloads of {plural(wrong, 'size')} are damaged; " if wrong else ""
            return f"{damage}the number of ranks is not stated: name their hosts with --hosts"
        if any(row.size is None for row in table.rows) and test.kernel.name not in ("barrier", RECORDED.name):
            return "it has no sizes"
        return ""

    def _gather(
        self,
        table: OsuTable,
        test: OsuTest,
        facts: Mapping[str, Any],
        figures: Sequence[tuple[int, dict[Statistic, float]]],
    ) -> None:
        key = repr((test.kernel.name, sorted(facts.items())))
        gathered = self.gathered.setdefault(key, _Gathered(test, facts))
        launch, ends = table.launch, (0, 1)
        if launch is None:
            launch = len(self.parsed.launches) + len(gathered.launches)
        else:
            first, second = (RankName(host) for host in self.parsed.launches[launch].hosts)
            ends = self._rank_index(first), self._rank_index(second)
        if launch not in gathered.launches:
            gathered.launches.append(launch)
        gathered.checked |= table.is_checked
        for row in table.damaged:
            gathered.damage += [Damage(row.size or 0, src, dst) for src, dst in _directions(ends, test.kernel)]
        gathered.entries += [(*ends, launch, size) for size, _ in figures]
        gathered.seconds += [seconds for _, seconds in figures]

    def bodies(self) -> tuple[Body, ...]:
        """Body of each test. A program start without output may have been of any test."""
        return (*(self._body(gathered) for gathered in self.gathered.values() if gathered.entries), *self.world)

    def _body(self, gathered: _Gathered) -> Body:
        order = sorted({*gathered.launches, *self.empty})
        number = {launch: at for at, launch in enumerate(order)}
        entries = np.array(gathered.entries, np.int64)
        rounds = np.array([number[launch] for launch in entries[:, 2].tolist()], np.int64)
        names = dict.fromkeys(name for seconds in gathered.seconds for name in seconds)
        seconds = {name: np.array([times.get(name, np.nan) for times in gathered.seconds]) for name in names}
        ones = np.ones(len(entries), np.int64)
        cells = Cells(entries[:, 0], entries[:, 1], entries[:, 3], rounds, ones, seconds)
        kernel = gathered.test.kernel
        return Body(
            kernel.name,
            kernel,
            cells,
            planned=[1] * len(order),
            order="serial",
            pattern="all-pairs" if self.parsed.launches else "pair",
            facts=gathered.facts,
            checked=gathered.checked,
            damage=tuple(gathered.damage),
        )


def _cut_short(parsed: OsuText) -> list[OsuTable]:
    """Return the tables whose program was stopped: without the last sizes of an equal test, or without any figure."""
    tables = [*parsed.tables, *(table for table in parsed.bare if test_of(table)[0])]
    sizes = {table.line: tuple(row.size for row in table.rows) for table in tables}
    kinds = {table.line: repr((table.title, table.version, table.facts, table.caption)) for table in parsed.tables}
    longest: dict[str, tuple[int | None, ...]] = {}
    for line, kind in kinds.items():
        longest[kind] = max(longest.get(kind, ()), sizes[line], key=len)
    return [
        table
        for table in tables
        if not sizes[table.line]
        or (
            len(sizes[table.line]) < len(whole := longest[kinds[table.line]])
            and sizes[table.line] == whole[: len(sizes[table.line])]
        )
    ]


def _directions(ends: tuple[int, int], kernel: Kernel) -> tuple[tuple[int, int], ...]:
    """Return sender and receiver of the payloads that a pair checks: both directions of a round trip."""
    return (ends,) if kernel.payload == "src" else (ends, ends[::-1])


def _pairs(table: OsuTable) -> int | None:
    declared = table.facts.get("pairs", "")
    return min(int(declared), 1 << 20) if declared.isdecimal() and len(declared) < 9 and int(declared) else None


def _facts(table: OsuTable, captions: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Attributes that tables must share to become one row: releases measure the same test with different methods.

    Parameters
    ----------
    table
        The table.
    captions
        What distinguishes the line of a script above the table, by its title and that line.
    """
    declared = table.facts
    datatype = declared.get("Datatype", "MPI_CHAR")
    source, _, target = buffers_of(table).lower().partition(" ")
    words = [
        table.version,
        language_of(table.title),
        datatype if datatype != "MPI_CHAR" else "",
        f"{source} to {target}" if source != target else "managed" if source == "managed" else "",
        captions[table.title, table.caption],
    ]
    facts: dict[str, Any] = {"variant": " ".join(filter(None, words))} if any(words) else {}
    facts |= {"win": _WIN.get(declared["Window creation"], "")} if "Window creation" in declared else {}
    facts |= {"sync": _SYNC.get(declared["Synchronization"], "")} if "Synchronization" in declared else {}
    facts |= _workers(declared)
    window = declared.get("window size", "")
    facts |= {"window": int(window)} if window.isdecimal() and 0 < len(window) < 9 else {}
    return facts


def _workers(declared: Mapping[str, str]) -> dict[str, Any]:
    """Numbers of threads, or of processes, of sender and receiver."""
    for name in _WORKERS:
        counts = [declared.get(name.format(end), "") for end in ("Sender", "Receiver")]
        counts = counts if any(counts) else [declared.get(name.format(end), "") for end in ("sender", "receiver")]
        if all(count.isdecimal() and len(count) < 7 for count in counts):
            return {"workers": [int(count) for count in counts]}
    return {}


def _seconds(table: OsuTable, test: OsuTest, row: OsuRow, at: int) -> dict[Statistic, float]:
    """Times of a message, by statistic; of the mean pair if the figure is of many pairs. Empty without a mean."""
    at = table.columns.index(_OVERLAPPED) if _OVERLAPPED in table.columns else at
    value, size = row.values[at], row.size or 0
    if test.kernel.quantity == "latency":
        mean = value * _US if value is not None else None
        times = {"mean": mean, **{name: time * _US for name, time in _percentiles(table, row, _LATENCY_TAIL)}}
    else:
        pairs = (_pairs(table) or 1) * test.directions
        rate = _tail(table, row, "Messages/s") if not table.windows else None
        if table.windows and table.columns[at].startswith("Messages/s"):
            value, rate = None, value
        mean = sharpest(
            (value, _HALF, size * pairs / (value * _MB) if value else 0.0), (rate, _HALF, pairs / rate if rate else 0.0)
        )
        tails = _percentiles(table, row, _RATE_TAIL)
        times = {"mean": mean, **{name: size * pairs / (tail * _MB) for name, tail in tails if tail}}
    seconds = {name: time for name, time in times.items() if time is not None and measurable(time)}
    return seconds if "mean" in seconds else {}


def _percentiles(table: OsuTable, row: OsuRow, tail: re.Pattern[str]) -> Iterator[tuple[Statistic, float]]:
    """Yield the figures of -z, each with the statistic of the time of a message that it is.

    OSU sorts bandwidths upwards, so that its P99 is the fast end: the first percentile of the time.
    """
    is_fast_end = tail is _RATE_TAIL and not any(_OF_TIME in comment for comment in table.comments)
    for name, value in zip(table.columns, row.values, strict=True):
        if (match := tail.match(name)) and value is not None:
            percentile = round(100 - float(match[1]), 9) if is_fast_end else float(match[1])
            yield STATISTICS_AT.get(percentile, percentile), value


def _tail(table: OsuTable, row: OsuRow, name: str) -> float | None:
    return row.values[table.columns.index(name)] if name in table.columns else None


def _words(row: OsuRow) -> str:
    return " ".join(str(value) for value in (row.size, *row.values) if value is not None)
