"""Text of the OSU micro-benchmarks, release 2 to 7, and of fablint's own tables in their format -> numbers.

Releases differ in their headers: 2 to 5 have no line for the datatype and other column names, 7.1 prints the title
twice and the column names before the datatype. Lines of other programs may stand anywhere between. What a script
prints before a table, its command line or a heading, distinguishes tables of one program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fablint.errors import UsageError
from fablint.store.importing.captions import Captions
from fablint.store.importing.launcher_text import is_abort
from fablint.store.importing.lines import INTEGER, NUMBER, Foreign, figure, numbered

_HOST = r"((?=[\w.-]*[A-Za-z]|(?:[0-9]+\.){3}[0-9])[A-Za-z0-9][\w.-]*)"
_HOSTS = re.compile(rf"{_HOST} *, *{_HOST}$")
_TITLE = re.compile(r"# ((?:OSU |OMB[- ]Py|fablint [a-z]).*?)(?: +\(?(?:v|Version )([0-9][\w.+-]*)\)?)?$")
_FACT = re.compile(r"# ([A-Z][A-Za-z ]*[a-z]): (.+?)\.? *$")
_STATED = (  # by the programs
    "Datatype", "Window creation", "Synchronization", "Number of Sender threads", "Number of Receiver threads",
    "Number of forked processes in sender", "Number of forked processes in receiver",
)  # fmt: skip
_PAIRS = re.compile(r"# \[ pairs: ([0-9]+) \](?: \[ window size: (\w+) \])?")
_NAMES = (
    r"Size|(?:Avg |Min |Max )?Latency ?\(us\)|Reverse (?:Lat\(us\)|BW\(MB/s\))|(?:Bi-)?Bandwidth \(MB/s\)|MB/s"
    r"|Messages/s"
    r"|Validation|Iterations|P[0-9.]+ Tail (?:Lat\(us\)|BW\(MB/s\))|(?:Alg|Bus) BW\(MB/s\)|Overall\(us\)|Compute\(us\)"
    r"|Bandwidth \(Gb/s\)|(?:Wait|Init) avg\(us\)"
    r"|(?:Pure|Min|Max) Comm\.\(us\)|(?:Coll\. Init|MPI_Test|MPI_Wait)\(us\)|Overlap\(%\)|Transmit Size"
)
_SPELLINGS = (  # of columns in Java and Python
    (re.compile(r"\[(us|B|MB/s|Gb/s)\]"), r"(\1)"),
    (re.compile(r"(?<=# Size) \(B\)"), ""),
    (re.compile(r"\b(?:Lat )?(Avg|Min|Max)\.?(?: Latency)? ?\(us\)"), r"\1 Latency(us)"),
)
_HEADER = re.compile(rf"#(?: *(?:{_NAMES}))+ *$")
_NAME = re.compile(_NAMES)
_HEADER_LIKE = re.compile(r"# ?Size +(?P<names>\S.*)")
_WINDOWS = re.compile(r"#((?: +[0-9]{1,9})+) *$")
_SECTIONS = {"# Uni-directional Bandwidth (MB/sec)": "MB/s", "# Message Rate Profile": "Messages/s"}
_VERDICTS = {"pass": True, "passed": True, "fail": False, "failed": False}
_WORD = rf"(?:{NUMBER}|-|pass(?:ed)?|fail(?:ed)?)"
_ROW = re.compile(rf" *{_WORD}(?: +{_WORD})* *$", re.IGNORECASE)
_PLACES = re.compile(r"# (?:Send Buffer|Rank 0 Memory) on (\w+) .*and (?:Receive Buffer|Rank 1 Memory) on (\w+) ")
_CAPTION = re.compile(r"[-=*#]{3,} *(?P<text>[^-=*#\s].*?\S) *[-=*#]{3,}$")
_COMMAND = re.compile(r"(?:[$+#>] ?)?(?P<text>(?:.*[\s/])?osu_\w+(?:\s.*)?)$")
_DAMAGED = "DATA VALIDATION ERROR"  # the program ends with it
_INIT = re.compile(rf"nprocs: ({INTEGER}), min: ({NUMBER}) ms, max: ({NUMBER}) ms, avg: ({NUMBER}) ms *$")


@dataclass(frozen=True)
class OsuRow:
    """One line of figures, in the units of the column names; None where there was none."""

    line: int
    size: int | None  # None: the test has no sizes (barrier, init)
    values: tuple[float | None, ...]
    valid: bool | None = None  # value of the column Validation


@dataclass(frozen=True)
class OsuTable:
    """One table of figures. `columns` names the `values` of its rows; `windows` is set for the matrices of -V."""

    title: str
    version: str  # of OSU; '' if the text does not state it
    line: int  # of its title, or of its first line if the title is missing
    facts: Mapping[str, str]  # `Datatype`, `Window creation`, `Synchronization`, `pairs`, `window size`, ...
    columns: tuple[str, ...]
    rows: tuple[OsuRow, ...]
    comments: tuple[str, ...] = ()
    windows: tuple[int, ...] = ()
    launch: int | None = None  # index of the line of hosts above it
    caption: str = ""  # command line or heading of a script above it

    @property
    def is_checked(self) -> bool:
        """True if the program checked payloads."""
        return any(row.valid is not None for row in self.rows)

    @property
    def damaged(self) -> list[OsuRow]:
        """Rows whose payloads were damaged."""
        return [row for row in self.rows if row.valid is False]

    def column(self, name: str) -> tuple[float | None, ...]:
        """Figures of a column, one per row."""
        at = self.columns.index(name)
        return tuple(row.values[at] for row in self.rows)


@dataclass(frozen=True)
class Launch:
    """A line `hostA,hostB`, as Latency_Test writes it above the output for that pair."""

    line: int
    hosts: tuple[str, str]


@dataclass(frozen=True)
class OsuText:
    """All tables of a text, and the lines that belong to no table. `truncated`: the last line was cut off."""

    tables: tuple[OsuTable, ...]
    foreign: tuple[Foreign, ...]
    truncated: bool
    launches: tuple[Launch, ...] = ()
    aborted: int = 0  # line on which a program or its launcher reports that it was aborted; 0: none
    unknown: tuple[Foreign, ...] = ()  # names of columns that are not known
    bare: tuple[OsuTable, ...] = ()  # titles below which no table begins


def parse_osu(text: str) -> OsuText:
    """Read the output of one or several OSU programs.

    Raises
    ------
    UsageError
        The text has no OSU table, or none whose columns are known.
    """
    reader = _Reader()
    whole, cut = _without_cut_line(text.expandtabs())  # releases 2 and 3 have tabs between columns
    for number, line in numbered(whole):
        reader.take(number, line.strip())
    tables = reader.finished()
    if not tables and reader.unknown:
        column = reader.unknown[0]
        raise UsageError(f"line {column.line}: the column '{column.text}' is not known", "run it without its option")
    if not tables:
        raise UsageError("the text has no table of an OSU program", "give the output of such a program")
    if cut is not None:
        reader.foreign.append(cut)
    return OsuText(
        tables,
        tuple(sorted(reader.foreign, key=lambda line: line.line)),
        cut is not None,
        tuple(reader.launches),
        reader.aborted,
        tuple(reader.unknown),
        tuple(reader.bare),
    )


def _without_cut_line(text: str) -> tuple[str, Foreign | None]:
    """Text without a last row that was cut off, and that row: a figure without its last digits is another figure.

    The rows of a table are as long as the line of its column names, or longer if a figure is wider than its column.
    """
    head, _, last = text.rpartition("\n")
    if _HOSTS.match(last.strip()):
        return head, Foreign(head.count("\n") + 2 if head else 1, last)
    if not last or not _ROW.match(last):
        return text, None
    rows: list[int] = []
    for line in reversed(head.split("\n")):
        if _HEADER.match(line.strip()) or _WINDOWS.match(line.strip()):
            shortest = max(len(line.rstrip()), min(rows, default=0))
            return (text, None) if len(last.rstrip()) >= shortest else (head, Foreign(head.count("\n") + 2, last))
        if _ROW.match(line):
            rows.append(len(line.rstrip()))
    return text, None


@dataclass
class _Open:
    """A table that is being read."""

    title: str
    version: str
    line: int
    facts: dict[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: list[OsuRow] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    windows: tuple[int, ...] = ()
    launch: int | None = None
    caption: str = ""

    def next(self, line: int, facts: Mapping[str, str]) -> _Open:
        """Open another table of the same program, which differs in these facts."""
        return _Open(self.title, self.version, line, {**self.facts, **facts}, launch=self.launch, caption=self.caption)


class _Reader:
    """State of a reader that takes the lines one by one."""

    def __init__(self) -> None:
        self.tables: list[OsuTable] = []
        self.foreign: list[Foreign] = []
        self.launches: list[Launch] = []
        self.open: _Open | None = None
        self.facts: dict[str, str] = {}  # seen before the title that they belong to
        self.section = "MB/s"  # quantity of the next matrix of -V
        self.captions = Captions()  # of the next title
        self.aborted = 0
        self.unknown: list[Foreign] = []
        self.bare: list[OsuTable] = []

    def take(self, number: int, line: str) -> None:
        if not line:
            return
        if hosts := _HOSTS.match(line):
            self._close()
            self.launches.append(Launch(number, (hosts[1], hosts[2])))
            return
        understood = self._heading(number, _spelled(line)) if line.startswith("#") else self._figures(number, line)
        if not understood and (_DAMAGED in line or is_abort(line)):
            self.aborted = self.aborted or number
            self.foreign.append(Foreign(number, line))
        elif not understood and (command := _COMMAND.match(line)):
            self.captions.take(command["text"], is_command=True)
        elif not understood and _CAPTION.match(line):
            self.captions.take(line)
        elif not understood:
            self.foreign.append(Foreign(number, line))
            self._heading_of_script(line)

    def _heading_of_script(self, line: str) -> None:
        """Take a line above the next table; a line with the hosts of a table already distinguishes it."""
        if not self.launches and (self.open is None or self.open.rows):
            self.captions.take(line)

    def finished(self) -> tuple[OsuTable, ...]:
        self._close()
        return tuple(self.tables)

    def _close(self) -> None:
        """Close the open table. Without column names it is only a title: its program was stopped."""
        if self.open is not None and not self.open.columns:
            self.bare.append(OsuTable(self.open.title, self.open.version, self.open.line, {}, (), ()))
        elif self.open is not None:
            table = self.open
            names = tuple(name for name in table.columns if name not in ("Size", "Validation"))
            width = len(table.rows[0].values) if table.rows else len(names)
            names += tuple(f"unnamed {at + 1}" for at in range(width - len(names)))
            rows, comments = tuple(table.rows), tuple(table.comments)
            self.tables.append(
                OsuTable(
                    table.title,
                    table.version,
                    table.line,
                    table.facts,
                    names,
                    rows,
                    comments,
                    table.windows,
                    table.launch,
                    table.caption,
                )
            )
        self.open = None

    def _heading(self, number: int, line: str) -> bool:
        if title := _TITLE.match(line):
            self._begin(number, title[1], title[2] or "")
        elif line in _SECTIONS:
            self.section = _SECTIONS[line]
        elif places := _PLACES.match(line):
            self._facts()["buffers"] = f"{places[1]} {places[2]}"
        elif pairs := _PAIRS.match(line):
            self._facts().update({"pairs": pairs[1], **({"window size": pairs[2]} if pairs[2] else {})})
        elif _HEADER.match(line):
            self._columns(number, tuple(_NAME.findall(line)))
        elif header := _HEADER_LIKE.match(line):
            names = (name for name in re.split(r" {2,}|\t+", header["names"].strip()) if not _NAME.fullmatch(name))
            self.unknown.append(Foreign(number, next(names, header["names"])[:40]))
            self._close()  # the figures below are none of the table above
        elif windows := _WINDOWS.match(line):
            counts = tuple(map(int, windows[1].split()))
            self._columns(number, ("Size", *(f"{self.section}, window {count}" for count in counts)))
            self._current(number).windows = counts
        elif fact := _FACT.match(line):
            self._facts()[fact[1]] = fact[2]
            self._heading_of_script("" if fact[1] in _STATED else line)
        elif self.open is None:
            return False
        else:
            self.open.comments.append(line.lstrip("# "))
            self._heading_of_script(line)
        return True

    def _begin(self, number: int, title: str, version: str) -> None:
        again = self.open is not None and (self.open.title, self.open.version) == (title, version)
        if again and self.open is not None and not self.open.columns and not self.open.rows:
            return  # 7.1 prints its title twice
        self._close()
        self.open = _Open(title, version, number, self.facts, launch=self._launch(), caption=self.captions.caption())
        self.facts = {}
        self.section = "MB/s"

    def _current(self, number: int) -> _Open:
        """Table that is being read; without a title if the text begins in the middle of a table."""
        if self.open is None:
            self.open = _Open("", "", number, self.facts, launch=self._launch())
            self.facts = {}
        return self.open

    def _launch(self) -> int | None:
        return len(self.launches) - 1 if self.launches else None

    def _facts(self) -> dict[str, str]:
        """Facts that the next fact line belongs to: after figures those of the next program or datatype."""
        return self.facts if self.open is None or self.open.rows else self.open.facts

    def _columns(self, number: int, names: tuple[str, ...]) -> None:
        current = self._current(number)
        if current.rows:
            following = current.next(number, self.facts)
            self._close()
            self.open, self.facts = following, {}
            current = following
        current.columns = names

    def _figures(self, number: int, line: str) -> bool:
        if (init := _INIT.match(line)) and self.open is not None:
            self.open.columns = ("nprocs", "min (ms)", "max (ms)", "avg (ms)")
            self.open.rows.append(OsuRow(number, None, tuple(figure(word) for word in init.groups())))
            return True
        if self.open is None or not self.open.columns or not _ROW.match(line):
            return False
        row, rows = _row(number, line.split(), self.open.columns), self.open.rows
        if row is None or (rows and (len(row.values) != len(rows[0].values) or not _follows(row, rows[-1]))):
            return False
        rows.append(row)
        return True


def _spelled(line: str) -> str:
    """Return a heading with the names of columns as the programs in C print them."""
    for spelling, name in _SPELLINGS:
        line = spelling.sub(name, line)
    return line


def _follows(row: OsuRow, last: OsuRow) -> bool:
    """Tell whether a row may stand below another in a table: its message is longer."""
    return row.size is None or last.size is None or row.size > last.size


def _row(number: int, words: list[str], columns: tuple[str, ...]) -> OsuRow | None:
    """Row of these words; None if they do not fill the columns."""
    size: int | None = None
    if columns[0] == "Size":
        if not re.fullmatch(INTEGER, words[0]):
            return None
        size, words = int(words[0]), words[1:]
    expected = len(columns) - (columns[0] == "Size")
    if len(words) < expected:
        return None
    names = [name for name in columns if name != "Size"]
    verdicts = [_VERDICTS[word.lower()] for word in words if word.lower() in _VERDICTS]
    if len(verdicts) != names.count("Validation"):
        return None
    values = tuple(figure(word) for word in words if word.lower() not in _VERDICTS)
    return OsuRow(number, size, values, verdicts[0] if verdicts else None)
