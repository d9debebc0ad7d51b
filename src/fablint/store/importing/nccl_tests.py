"""Output of nccl-tests and rccl-tests -> numbers. All ranks take part in every figure, so that none is of one pair.

The columns are read by their heading: releases and options (`-S`, `-I`, `-C`) differ in them. The printed forms are
those of the sources, 1.0 (2016) to 2.19.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fablint.errors import UsageError
from fablint.model.names import fold, plural
from fablint.model.registry import KERNELS
from fablint.store.importing.cells import (
    Body,
    Damage,
    Imported,
    Kernel,
    RankName,
    left_out,
    measurable,
    ranks_named,
    refuse_hosts,
    world_body,
)
from fablint.store.importing.lines import INTEGER, Foreign, distinct_words, figure, marked, numbered, text_of
from fablint.store.importing.nccl_programs import NcclEvidence, program_of
from fablint.store.importing.nccl_rows import NcclFigures, NcclRow, in_microseconds

MARK = marked(rb"# nThread [0-9]+ nGpus [0-9]+ minBytes |# +(?:size +count|bytes +N) +type .*algbw +busbw")

_DEVICE = re.compile(
    rf"# +Rank +({INTEGER}) +(?:Group +({INTEGER}) +)?(?:Pid +[0-9]+ +)?on +(\S+) device +(\S+)(?: +\[[^\]]*\])?"
)
_BEGIN = re.compile(r"# (?:nThread|Collective test starting|Using devices)")
_SETTING = re.compile(r"(agg iters|graph)(: [0-9]+)")
_NAMED = re.compile(r"# (?:Collective test starting: |Running |)(\w+)_perf\b")
_PROGRAM = re.compile(r"(?:^|[\s/])(\w+)_perf(?:\s|$)")  # of a command line
_PLACES = re.compile(r"# +(?:(?P<out>out-of-place)\W.*)?in-place\b")  # above the heading
_HEADING = re.compile(r"# +((?:size +count|bytes +N) +type .*)")
_WRONG = re.compile(r"(?:#| ) *Out of bounds values *: *([0-9]+) (OK|FAILED)")
_BELOW = "the figure is below the limit that the caller has set"
_END = re.compile(r"(?:#| ) *Avg bus bandwidth")
_OLD = {"bytes": "size", "N": "count", "op": "redop", "res": "error"}  # names of columns until 2018
_FIRST = ("size", "count", "type", "redop", "root")
_BLANK = ((), ("redop",), ("root",), ("redop", "root"))  # columns below which some releases print nothing
_HALF = ("time", "algbw", "busbw", "copybw", "#wrong", "error", "i_min", "i_max", "i_p99", "i_cv%")
_COLUMNS = {*_FIRST, *_HALF, "timestamp"}
_KERNELS = {
    kernel.nccl_test: Kernel(kernel.name, kernel.quantity, kernel.payload)
    for kernel in KERNELS.values()
    if kernel.nccl_test
}
_OTHER = Kernel("collective", "latency", "both")  # reduce, sendrecv, ..., or not stated
_MESSAGE = re.compile(r"(?:\[[0-9]+\] ?)?[A-Za-z][\w.-]*:[0-9]+:[0-9]+ \[[0-9]+\] .*NCCL [A-Z]+ ")
_ANY_MESSAGE = re.compile(_MESSAGE.pattern.replace("[A-Za-z]", r"\b[0-9]"))  # of a host whose name begins with a digit
_CELL = re.compile(r"[0-9][0-9.e+-]*|N/A")


@dataclass
class NcclText:
    """Printed text. `test` is `all_reduce` and so on; releases before 2.17 do not print it."""

    test: str = ""
    hosts: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)  # (group, rank): host, device
    ranked: dict[tuple[int, int], str] = field(default_factory=dict)  # what the line of each rank says
    ranks: int = 0  # as stated in a file that does not name their hosts
    columns: tuple[str, ...] = ()
    rows: list[NcclRow] = field(default_factory=list)
    wrong: int | None = None  # values out of bounds; None: not stated
    tables: int = 0
    ended: int = 0
    foreign: list[Foreign] = field(default_factory=list)
    below: list[Foreign] = field(default_factory=list)  # a mean bandwidth that fails NCCL_TESTS_MIN_BW
    named: list[str] = field(default_factory=list)  # programs in its headings
    started: list[str] = field(default_factory=list)  # programs in command lines
    command: str = ""  # the last command line above the table
    is_in_place: bool = False  # the only figures of a line are those in place
    is_old: bool = False  # columns as they were named until 2018
    parts: list[Foreign] = field(default_factory=list)  # of a line that others divide
    settings: str = ""  # what is measured differently: operations that are timed together, graphs

    @property
    def groups(self) -> int:
        """Number of groups of ranks, each with a communicator of its own."""
        return len({group for group, _ in self.hosts}) or 1


def parse_nccl_tests(text: str) -> list[NcclText]:
    """Read the output of one or several runs of programs of nccl-tests: what each run printed.

    Raises
    ------
    UsageError
        The text has no table of nccl-tests, or one with a column that is not known.
    """
    runs = [NcclText()]
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    for number, line in numbered(text):
        line = line.rstrip()
        if runs[-1].tables and (_BEGIN.match(line) or (runs[-1].ended and _is_command(line))):
            runs.append(NcclText())
        parsed = runs[-1]
        if line.startswith("#") or _WRONG.match(line) or _END.match(line):
            parsed.named.extend(_heading(parsed, number, line))
        elif line and ((cut and number == last) or not _row(parsed, number, line)):
            parsed.foreign.append(Foreign(number, line))
            if started := _PROGRAM.findall(line):
                parsed.started.extend(started)
                parsed.command = line.strip("+$#> ")
    whole = [run for run in runs if run.tables]
    if not whole:
        raise UsageError("the text has no table of nccl-tests", "give the complete output of the program")
    for run in runs[len(whole) :]:  # behind the last table
        whole[-1].foreign += run.foreign
        whole[-1].tables += bool(run.hosts or run.settings)  # it ended before its table
    for run in whole:
        run.foreign += run.parts
        if run.is_old:
            run.rows = in_microseconds(run.rows)
        tests = list(dict.fromkeys(run.named or run.started))
        run.test = tests[0] if len(tests) == 1 else _test_of(run)
    return whole


def _is_command(line: str) -> bool:
    return not line.startswith("#") and _PROGRAM.search(line) is not None


def _heading(parsed: NcclText, number: int, line: str) -> Iterator[str]:
    """Read a line that begins with #; yield the name of a program in it."""
    if device := _DEVICE.match(line):
        _device(parsed, number, device)
    elif heading := _HEADING.match(line):
        columns = tuple(_OLD.get(name, name) for name in heading[1].split())
        parsed.is_old = heading[1].startswith("bytes")
        unknown = [name for name in columns if name not in _COLUMNS]
        if unknown or columns[:3] != _FIRST[:3] or not 1 <= columns.count("time") <= 2:
            name = next(iter(unknown), "time")
            problem = f"the column '{name}' is not known" if unknown else f"{columns.count('time')} columns 'time'"
            raise UsageError(f"line {number}: {problem}", "run the program without the option that prints it")
        if parsed.columns not in ((), columns):
            raise UsageError(f"line {number}: a table with other columns than before", "give each run in its own file")
        parsed.columns = columns
        parsed.tables += 1
    elif places := _PLACES.match(line):
        parsed.is_in_place = places["out"] is None
    elif line.startswith("# nThread"):
        parsed.settings = " ".join(map("".join, _SETTING.findall(line))) or "default"
    elif wrong := _WRONG.match(line):
        parsed.wrong = (parsed.wrong or 0) + int(wrong[1])
    elif _END.match(line):
        parsed.ended += 1
        parsed.below += [Foreign(number, line)] if line.endswith("FAILED") else []
    elif name := _NAMED.match(line):
        yield name[1]


def _device(parsed: NcclText, number: int, device: re.Match[str]) -> None:
    rank = int(device[2] or 0), int(device[1])
    if parsed.ranked.setdefault(rank, device[0]) != device[0]:
        problem = f"line {number}: rank {rank[1]} is there twice: these programs measured apart from each other"
        raise UsageError(problem, "build nccl-tests with MPI=1")
    parsed.hosts[rank] = (device[3], device[4])


def _row(parsed: NcclText, number: int, line: str) -> bool:
    """Read a line of figures, or a part of one; return whether it is one."""
    return _whole(parsed, number, line) or _part(parsed, number, line)


def _whole(parsed: NcclText, number: int, line: str) -> bool:
    """Read a line of figures by the columns of the heading; return whether it is one."""
    words, columns = line.split(), parsed.columns
    if "timestamp" in columns:
        words = [*words[:-2], " ".join(words[-2:])]
    layouts = (tuple(name for name in columns if name not in blank) for blank in _BLANK)
    columns = next((names for names in layouts if _fits(names, words)), ())
    if not columns:
        return False
    middle = columns.index("time")
    second = columns.index("time", middle + 1) if columns.count("time") == 2 else len(columns)
    parts = (slice(middle, second), slice(second, len(columns)))
    halves = tuple(_figures(dict(zip(columns[part], words[part], strict=True))) for part in parts)
    if halves[0].time_us is None and halves[1].time_us is None:
        return False
    first = dict(zip(columns[:middle], words[:middle], strict=True))
    size = int(words[0])
    kind = (first["type"], first.get("redop", ""), first.get("root", ""))
    out, within = reversed(halves) if parsed.is_in_place else halves
    parsed.rows.append(NcclRow(number, size, kind, (out, within)))
    return True


def _part(parsed: NcclText, number: int, line: str) -> bool:
    """Read a part of a line of figures, which lines of NCCL divide; return whether it is one."""
    message = _MESSAGE.search(line) or _ANY_MESSAGE.search(line)
    words = line[: message.start() if message else None].split()
    begins = len(words) > len(_FIRST) - len(_BLANK[-1]) - 1 and words[2].isidentifier()
    if not parsed.columns or not words or not (begins or (parsed.parts and all(map(_CELL.fullmatch, words)))):
        return False
    if begins:  # the line before it is not complete
        parsed.foreign += parsed.parts
        parsed.parts = []
    parsed.parts.append(Foreign(number, " ".join(words)))
    if _whole(parsed, parsed.parts[0].line, " ".join(part.text for part in parsed.parts)):
        if all(map(parsed.rows[-1].agrees, parsed.rows[-1].halves)):
            parsed.parts = []
        else:  # a figure is missing
            parsed.rows.pop()
    return True


def _fits(columns: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether the words of a line can be those of the columns."""
    if not columns or len(words) != len(columns):
        return False
    first = dict(zip(columns[: len(_FIRST)], words, strict=False))
    integers = [re.fullmatch(rf"-?{INTEGER}", first[name]) for name in ("size", "count", "root") if name in first]
    return all(integers) and not any(re.fullmatch(r"[-\d.]+", first.get(name, "none")) for name in ("type", "redop"))


def _figures(words: Mapping[str, str]) -> NcclFigures:
    """Figures of a half of a line. The column `error` of releases before 2.11 is the largest rounding difference."""
    values = (figure(words.get(name, "-")) for name in ("time", "algbw", "busbw", "#wrong"))
    return NcclFigures(*values, is_checked=figure(words.get("#wrong", words.get("error", "-"))) is not None)


def _test_of(parsed: NcclText) -> str:
    """Return the collective by what the table prints; '' if that is unclear."""
    ranks = len(parsed.hosts) // parsed.groups
    if ranks < 2 or not parsed.rows:
        return ""
    rates = [
        (half.algbw, half.busbw)
        for row in parsed.rows
        for half in row.halves
        if half.algbw and half.busbw and row.agrees(half)
    ]
    checked = [any(row.halves[place].is_checked for row in parsed.rows) for place in (0, 1)]
    is_shown = checked[1] or (checked[0] and parsed.columns.count("time") == 2)
    _, redop, root = parsed.rows[0].kind
    reduces, is_rooted = redop not in ("", "none"), root not in ("", "-1")
    is_checked = checked[1] if is_shown else None
    return program_of(NcclEvidence(parsed.columns, reduces, is_rooted, is_checked, tuple(rates)), ranks)


def read_nccl_tests(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import each run as two rows of the whole fabric: out of place and in place."""
    return imported_of(parse_nccl_tests(text_of(data)), hosts)


def imported_of(runs: Sequence[NcclText], hosts: Sequence[str]) -> Imported:
    """Return the contents of all runs, each as two rows of the whole fabric.

    Runs of one collective on the same ranks are repeats; those on other ranks, and those of other data types,
    operations or roots, are rows of their own.

    Raises
    ------
    UsageError
        `hosts` is given, and the text names its hosts.
    """
    named = [_rank_names(run, hosts) for run in runs]
    places = list(dict.fromkeys(named))
    ranks = list(dict.fromkeys(rank for names in named for rank in names))
    bodies: list[Body] = []
    distinct = {
        test: distinct_words(_setting(run) for run in runs if run.test == test) for test in {run.test for run in runs}
    }
    for number, (run, names) in enumerate(zip(runs, named, strict=True), 1):
        place = f"on {fold(rank.host for rank in names)}" if len(places) > 1 else ""
        unclear = f"run {number}" if len(runs) > 1 and not run.test else ""
        words = " ".join(filter(None, (place, unclear, distinct[run.test][_setting(run)])))
        first = ranks.index(names[0])
        bodies += [
            replace(body, cells=replace(body.cells, src=body.cells.src + first)) for body in _bodies(run, names, words)
        ]
    lacking = [run for run in runs if run.ended < run.tables]
    return Imported(
        tool="nccl-tests",
        rank_names=tuple(ranks),
        bodies=tuple(bodies),
        left_out=tuple(line for run in runs for line in (*left_out(run.foreign), *left_out(run.below, _BELOW))),
        missing=("its end is missing" if len(runs) == 1 else f"the end of {plural(len(lacking), 'run')} is missing")
        if lacking
        else "",
    )


def _setting(run: NcclText) -> str:
    return f"{run.command} {run.settings}"


def _bodies(parsed: NcclText, ranks: Sequence[RankName], words: str) -> Iterator[Body]:
    """Bodies of a run: for each data type, operation and root, out of place and in place."""
    kernel = _KERNELS.get(parsed.test, _OTHER)
    is_of_parts = kernel.name in KERNELS and KERNELS[kernel.name].is_of_parts
    share = len(ranks) // parsed.groups if is_of_parts else 1
    groups = f"in {parsed.groups} groups" if parsed.groups > 1 else ""
    kinds: dict[tuple[str, str, str], list[NcclRow]] = {}
    for row in parsed.rows:
        kinds.setdefault(row.kind, []).append(row)
    is_damaged = any(half.wrong for row in parsed.rows for half in row.halves)
    for kind, rows in kinds.items():
        several = " ".join(word for word in kind if word not in ("", "none", "-1")) if len(kinds) > 1 else ""
        variant = " ".join(filter(None, (parsed.test or "unknown", groups, several, words)))
        members = len(ranks) // parsed.groups
        facts = {"transport": "nccl", "memory": "device", "variant": variant, "collective_ranks": members}
        for place, name in enumerate((kernel.name, f"{kernel.name}-in-place")):
            halves = [(row, row.halves[place]) for row in rows]
            times = [(row, half.time_us * 1e-6) for row, half in halves if half.time_us is not None]
            entries = [(row.size // share, {"mean": time}) for row, time in times if measurable(time)]
            if not entries:
                continue
            body = world_body(name, kernel, entries, in_place=bool(place), **facts)
            damage = tuple(Damage(row.size // share) for row, half in halves if half.wrong)
            if parsed.wrong and not is_damaged:  # at a size that is not stated
                damage, is_damaged = (Damage(rows[0].size // share),), True
            checked = bool(damage) or any(half.wrong is not None for _, half in halves)
            yield replace(body, checked=checked, damage=damage)


def _why_unnamed(parsed: NcclText) -> str:
    """Return why the text does not name each rank: programs count them over all groups, and some within each; or ''.

    NCCL refuses a GPU with two ranks: where two have one PCI address, several hosts have the same name.
    """
    groups = [[rank for group, rank in sorted(parsed.hosts) if group == each] for each, _ in parsed.hosts]
    numbers = sorted(rank for _, rank in parsed.hosts)
    gpus = Counter(line.partition(" on ")[2].strip() for line in parsed.ranked.values() if ":" in line)
    shared = next((gpu for gpu, ranks in gpus.items() if ranks > 1), "")
    if numbers != list(range(len(numbers))) and any(ranks != list(range(len(ranks))) for ranks in groups):
        return "the text does not name every rank and its host"
    if not numbers:
        return "the text names no ranks and hosts"
    return f"several hosts have the name {shared.partition(' ')[0]}" if shared else ""


def _rank_names(parsed: NcclText, hosts: Sequence[str]) -> tuple[RankName, ...]:
    """Names of the ranks.

    Raises
    ------
    UsageError
        Neither the text nor the user names them, or both do.
    """
    if problem := _why_unnamed(parsed):
        if not (parsed.ranks or hosts):
            raise UsageError(problem, "give the complete output, or name the host of each rank with --hosts")
        return ranks_named(parsed.ranks or len(hosts), hosts)
    refuse_hosts(hosts)
    label = "{0}.{1}/{2}" if parsed.groups > 1 else "{1}/{2}"
    return tuple(
        RankName(host, label.format(group, rank, device), f"gpu{device}" if device.isdecimal() else "")
        for (group, rank), (host, device) in sorted(parsed.hosts.items())
    )
