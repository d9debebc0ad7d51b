"""Logs of LinkTest 1.x and 2.x, and fablint's own in their format -> numbers, in seconds and bytes/s.

LinkTest 1.x divides by 2^20 and prints MB/s; 2.x says GiB/s. Both are returned as bytes/s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fablint.errors import UsageError
from fablint.model.registry.linktest_modes import LINKTEST_MODE
from fablint.store.importing.lines import INTEGER, PLAIN, Foreign, numbered, second_of

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BYTES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "PiB": 2.0**50, "MB": 2.0**20}

_TIME = rf"({PLAIN}) *({'|'.join(sorted(_SECONDS, key=len, reverse=True))})"
_RATE = rf"({PLAIN}) *({'|'.join(sorted(_BYTES, key=len, reverse=True))})/s"
_FIGURE = rf"{_TIME} +\( *{_RATE}\)"
_NAMED = re.compile(rf"\b(min|avg|max)[:=] *{_FIGURE}")
_BISECTION = re.compile(rf"avg\. bisection bw: *{_RATE}")
_ALL_TO_ALL = re.compile(r"\[ *alltoall[^]]*\]")
_STEP_2 = re.compile(rf"(Parallel|Serial) Results for step ({INTEGER}): (.*)")
_STEP_1 = re.compile(rf"(Parallel|Serial) +PingPong for step +({INTEGER}):(.*)")
_SUM_1 = re.compile(rf"avg= *{_FIGURE} min= *{_FIGURE} max= *{_FIGURE}")
_PAIR = re.compile(rf"({INTEGER}) *-> *({INTEGER}): *{_FIGURE}")
_RESULT = re.compile(rf"RESULT: (Min|Max|Avg) Time( Stest)?: *{_FIGURE}")
_SLOW = re.compile(
    rf"({INTEGER}): PINGPONG +({INTEGER}) +<-> +({INTEGER}): +1st: *{_FIGURE} +2nd: *(?:{_FIGURE}|not re-tested)"
)
_FACT = re.compile(r"linktest: ([^:]+): +(.*\S)")
_MODE = re.compile(rf"(?:linktest: )?{LINKTEST_MODE}: *(\w+)", re.IGNORECASE)
_TIMING = re.compile(rf"Timing Summary: Elapsed time: *{_TIME}")
_REMAINING = re.compile(rf"Timing Summary: .*\( *{_TIME}/step\).*Estimated total time remaining: *{_TIME}")
_CHATTER = re.compile(
    r"Starting Test of all connections|PE[0-9]+: psum=|\.\.\. after getpartner|PE\[[0-9]+\] disp|"
    r"[0-9]+: starting collect for stride|linktest_output_sion|OUTPUT: writing"
)
_TASK = re.compile(rf"task\[({INTEGER})\] on (\S+) ")
_MARK = re.compile(rf"timings\[[0-9]+\] \[([^\]]+)\] +t= *({PLAIN})s")


@dataclass(frozen=True)
class Figure:
    """A time in s and the printed bandwidth of the same measurement, bytes/s."""

    seconds: float
    rate: float


@dataclass(frozen=True)
class Step:
    """Extremes and mean over the pairs of a step. `bisection`: bytes/s of all pairs together, where printed."""

    line: int
    number: int
    serial: bool
    min: Figure
    avg: Figure
    max: Figure
    bisection: float | None = None


@dataclass(frozen=True)
class Pair:
    """One directed pair of a serial step."""

    line: int
    src: int
    dst: int
    figure: Figure


@dataclass(frozen=True)
class SlowPair:
    """One of the slowest pairs, and the result of its retest."""

    line: int
    src: int
    dst: int
    first: Figure
    second: Figure | None


@dataclass(frozen=True)
class LinktestLog:
    """Contents of a log; `aggregated` is printed by 2.x after each step, `results` are the RESULT lines by their
    words.
    """

    facts: dict[str, str]
    steps: tuple[Step, ...]
    aggregated: tuple[Step, ...]
    pairs: tuple[Pair, ...]
    results: dict[str, Figure]
    slowest: tuple[SlowPair, ...]
    elapsed: tuple[float, ...]  # s, of the timing summaries of 2.x
    timings: dict[str, float]  # s, the marks of 1.x
    foreign: tuple[Foreign, ...] = ()
    hosts: Mapping[int, str] = field(default_factory=dict)  # by rank; 1.x prints them on stderr


@dataclass
class _Reader:
    """State of a reader that takes the lines one by one."""

    facts: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    aggregated: list[Step] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    results: dict[str, Figure] = field(default_factory=dict)
    slowest: list[SlowPair] = field(default_factory=list)
    elapsed: list[float] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    foreign: list[Foreign] = field(default_factory=list)
    hosts: dict[int, str] = field(default_factory=dict)
    remaining: float = math.inf  # steps of all iterations that the last timing summary of 2.x expects
    serial: int | None = None  # the serial step of 1.x whose pairs are being listed

    def take(self, number: int, line: str) -> None:
        """Read a line of LinkTest, skip a blank line, a ruler or a comment, record any other line as foreign."""
        if self._step(number, line) or self._figures(number, line):
            return
        if self._begins_again(line):
            raise second_of("run of LinkTest", number)
        understood = self._fact(line) or _CHATTER.match(line)
        if not understood and line and not line.startswith("#") and set(line) != {"-"}:
            self.foreign.append(Foreign(number, line))

    def _begins_again(self, line: str) -> bool:
        """Tell whether a line of the head of a run follows figures, and says again what the head before them said.

        Steps say nothing, since one run of 2.x has the same in each of its iterations; but fewer and fewer remain.
        """
        if not (self.steps or self.pairs or self.results):
            return False
        if remaining := _REMAINING.match(line):
            step, total = (float(remaining[at]) * _SECONDS[remaining[at + 1]] for at in (1, 3))
            before, self.remaining = self.remaining, round(total / step) if step > 0 else self.remaining
            return self.remaining > before
        fact, task, mark = _FACT.match(line), _TASK.match(line), _MARK.match(line)
        return bool(
            (fact and fact[1].strip() in self.facts)
            or (task and int(task[1]) in self.hosts)
            or (mark and mark[1] == "first sync" and mark[1] in self.timings)
        )

    def _step(self, number: int, line: str) -> bool:
        if match := _STEP_2.match(line):
            return self._add(self.steps, number, int(match[2]), match[1] == "Serial", match[3])
        if line.startswith("Aggregated Results:"):
            last = self.steps[-1] if self.steps else None
            words = line.removeprefix("Aggregated Results:")
            return self._add(self.aggregated, number, last.number if last else 0, bool(last and last.serial), words)
        if match := _STEP_1.match(line):
            if match[1] == "Serial":
                self.serial = int(match[2])
                return not match[3].strip()
            return self._add(self.steps, number, int(match[2]), False, match[3])
        if self.serial is not None and _SUM_1.match(line):
            return self._add(self.steps, number, self.serial, True, line)
        return False

    def _add(self, steps: list[Step], number: int, step: int, serial: bool, words: str) -> bool:
        named = {groups[0]: _figure(*groups[1:]) for groups in _NAMED.findall(words)}
        bisection = _BISECTION.search(words)
        left_over = _BISECTION.sub("", _NAMED.sub("", _ALL_TO_ALL.sub("", words)))
        if set(named) != {"min", "avg", "max"} or left_over.strip():
            return False  # cut off, or mixed with the output of another program
        rate = float(bisection[1]) * _BYTES[bisection[2]] if bisection else None
        steps.append(Step(number, step, serial, named["min"], named["avg"], named["max"], rate))
        return True

    def _figures(self, number: int, line: str) -> bool:
        if match := _PAIR.match(line):
            self.pairs.append(Pair(number, int(match[1]), int(match[2]), _figure(*match.groups()[2:6])))
        elif match := _RESULT.match(line):
            self.results[f"{match[1]} Time{match[2] or ''}"] = _figure(*match.groups()[2:6])
        elif match := _SLOW.match(line):
            words = match.groups()
            again = _figure(*words[7:11]) if words[7] else None
            self.slowest.append(SlowPair(number, int(words[1]), int(words[2]), _figure(*words[3:7]), again))
        else:
            return False
        return True

    def _fact(self, line: str) -> bool:
        if match := _TIMING.match(line):
            self.elapsed.append(float(match[1]) * _SECONDS[match[2]])
        elif match := _TASK.match(line):
            self.hosts[int(match[1])] = match[2]
        elif match := _MARK.match(line):
            self.timings[match[1]] = float(match[2])
        elif match := _MODE.match(line):
            self.facts[LINKTEST_MODE] = match[1].lower()
        elif match := _FACT.match(line):
            self.facts.setdefault(match[1].strip(), match[2])  # 1.x states the length in bytes, then in KBytes
        else:
            return False
        return True


def parse_linktest(text: str) -> LinktestLog:
    """Read a log of LinkTest.

    Raises
    ------
    UsageError
        The text has no line of LinkTest, or is that of two runs.
    """
    reader = _Reader()
    whole, _, cut = text.rpartition("\n")
    for number, line in numbered(whole):
        reader.take(number, line.strip())
    if cut.strip():  # without a line end the line may be incomplete, except a line of figures, which ends in a unit
        last = whole.count("\n") + 2 if whole else 1
        if _FACT.match(cut.strip()):
            reader.foreign.append(Foreign(last, cut))
        else:
            reader.take(last, cut.strip())
    if not (reader.facts or reader.steps or reader.pairs or reader.results):
        raise UsageError("the text has no log of LinkTest", "give the output of LinkTest")
    return LinktestLog(
        facts=reader.facts,
        steps=tuple(reader.steps),
        aggregated=tuple(reader.aggregated),
        pairs=tuple(reader.pairs),
        results=reader.results,
        slowest=tuple(reader.slowest),
        elapsed=tuple(reader.elapsed),
        timings=reader.timings,
        foreign=tuple(reader.foreign),
        hosts=reader.hosts,
    )


def _figure(time: str, unit: str, rate: str, prefix: str) -> Figure:
    return Figure(float(time) * _SECONDS[unit], float(rate) * _BYTES[prefix])
