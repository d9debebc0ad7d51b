"""Output of nvbandwidth 0.1 to 0.8 -> numbers: text, and JSON of `-j`. Its GB/s are 10^9 bytes/s.

Copies between GPUs are cells of pairs: in a read the GPU of the row fetches from that of the column, in a write it
sends to it, whatever the arrow in the heading says (`testcases_ce.cpp`). Copies between a GPU and its host are copies
of that GPU by itself. The size of the buffers is not printed: it is assumed to be the default of the release.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Floats, Ints
from fablint.store.importing.cells import (
    BIBANDWIDTH,
    EVERYBODY,
    Body,
    Cells,
    Damage,
    Imported,
    Kernel,
    LeftOut,
    Order,
    RankName,
    cells_of,
    left_out,
    matrix_cells,
    measurable,
    refuse_hosts,
)
from fablint.store.importing.job_maps import JobHosts
from fablint.store.importing.lines import Foreign, figures, json_of, marked, numbered, second_of, text_of
from fablint.store.layout import LONGEST_S, SHORTEST_S

MARK = marked(rb"nvbandwidth Version: |Running (?:benchmark )?[a-z_]+_(?:ce|sm|copy)\.\s*$")
JSON_MARK = re.compile(rb'(?m)^\s*\{\s*"nvbandwidth"\s*:')

_VERSION = re.compile(r"nvbandwidth Version: v?(\S+)")
_DEVICE = re.compile(r"Device +[0-9]+: ")
_PROCESS = re.compile(r"Process +([0-9]{1,6}) \((\S+)\): device ([0-9]{1,6}): ")
_LISTED = re.compile(r"[0-9]+: .*: \((\S+)\)")  # a GPU in JSON since 0.8, with its host
_HOST = re.compile(r"[A-Za-z0-9][\w.-]*")  # the line above the GPUs since 0.8
_RUNNING = re.compile(r"Running (?:benchmark )?(\w+)\.")
_HEADING = re.compile(r"(?:memcpy|memory|multicast|Bisect|Device to Device Latency) .*(?:\((?:GB/s|ns)\)|BW)")
_PART = re.compile(r" (Read1|Read2|Write1|Write2|Total) ")
_COLUMNS = re.compile(r"(?: +[0-9]{1,6})+")
_ROW = re.compile(r" *([0-9]{1,6})(?:-> *([0-9]{1,6}))?((?: +(?:N/A|[-0-9.]{1,40}|-?nan|-?inf))+)")
_WAIVED = re.compile(r"Waiving \w+\.|(?i:waived):")
_FAILED = re.compile(r"(?:ERROR|Error): |ASSERT in expression|\[CUDA_ERROR|NVML_ERROR|(?P<damage> *Invalid value when)")
_DAMAGED = "Invalid value when"
_SETTING = re.compile(
    r"(?:SUM|MIN|MAX|AVG|&&&& PERF) \w+ |Built from Git|MPI version: |NOTE: |Additional system-specific"
    r"|CUDA (?:Runtime|Driver) Version|Driver Version|Performance can vary|The reported results|Please consult"
)
_PAIRS = re.compile(
    r"(?:multinode_)?device_to_device(?P<both>_bidirectional)?_memcpy_(?P<how>read|write)_(?P<by>ce|sm)"
)
_HOST_COPY = re.compile(
    r"(?:(?P<to_gpu>host_to_(?:device|all))|(?:device|all)_to_host)(?P<both>_bidirectional)?_memcpy_(?P<by>ce|sm)"
)
_KERNELS = {
    "read": Kernel("get_bandwidth", "bandwidth", "dst"),
    "write": Kernel("put_bandwidth", "bandwidth", "src"),
}
_LOOPBACK = Kernel("gpu_loopback", "bandwidth", "src")
_SMALL, _LARGE = 64 << 20, 512 << 20  # default buffers, bytes
_SMALL_UNTIL = (0, 6)  # the last release with the small one


@dataclass
class NvbandwidthTable:
    """One matrix of a test, in GB/s or ns; NaN where the program prints no figure."""

    test: str
    line: int
    part: str = ""  # of both directions at once: Read1, Read2, Write1, Write2, and Total; '' until 0.5
    columns: int = 0
    rows: list[list[float]] = field(default_factory=list)
    pairs: list[tuple[int, int]] = field(default_factory=list)  # of the rows of a bisection: `0->2`
    is_damaged: bool = False  # payloads arrived changed, so that the program printed no figures

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return 1 + max(map(max, self.pairs)) if self.pairs else self.columns

    @property
    def is_whole(self) -> bool:
        """True if it has one row, or as many as GPUs."""
        return self.columns > 0 and len(self.rows) in (1, self.gpus) and (not self.pairs or len(self.rows) > 1)


@dataclass
class NvbandwidthText:
    """What the program prints. Texts of 0.8 and of several nodes name hosts."""

    version: str = ""
    host: str = ""  # of the GPUs of the first process
    gpus: int = 0  # that it lists, of one process
    processes: list[tuple[str, int]] = field(default_factory=list)  # host and GPU of each
    tables: list[NvbandwidthTable] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)  # that were started
    problems: list[LeftOut] = field(default_factory=list)  # that were met
    foreign: list[Foreign] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes of a buffer: the default of the release."""
        numbers = tuple(int(word[:4]) for word in re.findall(r"[0-9]+", self.version)[:2])
        return _SMALL if numbers <= _SMALL_UNTIL else _LARGE


def parse_nvbandwidth(text: str) -> NvbandwidthText:
    """Read the text output.

    Raises
    ------
    UsageError
        It has no test.
    """
    parsed = NvbandwidthText()
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    for number, line in numbered(text):
        bare = line.rstrip()
        is_read = not bare or _heading(parsed, number, bare) or _remark(parsed, number, bare)
        if not is_read and ((cut and number == last) or not _matrix_line(parsed, bare)):
            parsed.foreign.append(Foreign(number, line))
    if not parsed.tests:
        raise UsageError("the text has no test of nvbandwidth", "give the complete output of the program")
    return parsed


def _heading(parsed: NvbandwidthText, number: int, line: str) -> bool:
    """Read a line above a matrix: of the program, a GPU, a test."""
    if running := _RUNNING.fullmatch(line):
        parsed.tests.append(running[1])
    elif _HEADING.match(line) and parsed.tests:
        part = _PART.search(line)
        parsed.tables.append(NvbandwidthTable(parsed.tests[-1], number, part[1] if part else ""))
    elif version := _VERSION.match(line):
        if parsed.tests:
            raise second_of("run of nvbandwidth", number)
        parsed.version = version[1]
    elif process := _PROCESS.match(line):
        parsed.processes.append((process[2], int(process[3])))
        parsed.host = parsed.processes[0][0]
    elif _DEVICE.match(line):
        parsed.gpus += 1
        above = parsed.foreign[-1] if parsed.foreign else None
        if above is not None and above.line == number - 1 and _HOST.fullmatch(above.text.strip()):
            parsed.host = parsed.foreign.pop().text.strip()
    else:
        return False
    return True


def _remark(parsed: NvbandwidthText, number: int, line: str) -> bool:
    """Read a line that is no part of a matrix: sums, settings, a test that failed or was not run."""
    if failed := _FAILED.match(line):
        test = parsed.tests[-1] if parsed.tests else "the program"
        why = "payloads arrived damaged" if failed["damage"] else "the test failed"
        parsed.problems.append(LeftOut(number, line, f"{test}: {why}"))
        if failed["damage"] and parsed.tests:
            parsed.tables.append(_damaged_table(parsed, number))
    elif _WAIVED.match(line):
        parsed.problems.append(LeftOut(number, line, "the machine cannot run this test"))
    else:
        return _SETTING.match(line) is not None
    return True


def _damaged_table(parsed: NvbandwidthText, number: int) -> NvbandwidthTable:
    """Return a table without figures of the last test, in which payloads arrived damaged."""
    count = len(parsed.processes) or parsed.gpus or 1
    return NvbandwidthTable(parsed.tests[-1], number, columns=count, rows=[[math.nan] * count], is_damaged=True)


def _matrix_line(parsed: NvbandwidthText, line: str) -> bool:
    """Read a line of the last matrix; return whether it is one."""
    table = parsed.tables[-1] if parsed.tables else None
    if table is None or table.test != parsed.tests[-1] or table.is_damaged:
        return False
    if not table.columns and _COLUMNS.fullmatch(line):
        table.columns = len(line.split())
        return [int(word) for word in line.split()] == list(range(table.columns))
    row = _ROW.fullmatch(line)
    values = figures(row[3].replace("N/A", "nan").split()) if row else None
    if row is None or values is None or len(values) != table.columns or int(row[1]) != len(table.rows):
        return False
    table.rows.append(values)
    if row[2] is not None:
        table.pairs.append((int(row[1]), int(row[2])))
    return True


def parse_nvbandwidth_json(text: str) -> NvbandwidthText:
    """Read the JSON output.

    Raises
    ------
    UsageError
        The text is not JSON, or does not have the keys of nvbandwidth.
    """
    hint = "give the whole output of nvbandwidth -j"
    document = json_of(text, hint)
    try:
        return _parsed(document["nvbandwidth"])
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise UsageError("JSON without the results of nvbandwidth", hint) from None


def _parsed(document: Mapping[str, Any]) -> NvbandwidthText:
    listed = _LISTED.fullmatch(str((document.get("GPU Device list") or [""])[0]))
    parsed = NvbandwidthText(str(document.get("version") or document["git_version"]).lstrip("v"))
    parsed.host = listed[1] if listed else ""
    parsed.gpus = len(document.get("GPU Device list") or ())
    error = " ".join(str(document.get("error") or "").split())
    if error and not document.get("testcases"):
        raise UsageError(f"nvbandwidth has failed: {error[:80]}", "run it again")
    for number, entry in enumerate(document["testcases"], 1):
        test, status = str(entry["name"]), str(entry.get("status", ""))
        if status.lower() == "waived":
            parsed.problems.append(LeftOut(number, test, "the machine cannot run this test"))
            continue
        parsed.tests.append(test)
        matrix = [
            figures([str(word).replace("N/A", "nan") for word in row]) for row in entry.get("bandwidth_matrix", ())
        ]
        rows = [row for row in matrix if row is not None]
        columns = len(rows[0]) if rows and {len(row) for row in matrix if row is not None} == {len(rows[0])} else 0
        is_total = 0 < columns == len(rows) / 3  # both directions, then their total
        rows = rows[-columns:] if is_total else rows
        if len(matrix) == 0 or None in matrix:
            parsed.problems.append(LeftOut(number, test, f"{test}: {entry.get('error') or status or 'no figures'}"))
        if _DAMAGED in str(entry.get("error")):
            parsed.tables.append(_damaged_table(parsed, number))
            continue
        parsed.tables.append(NvbandwidthTable(test, number, "Total" if is_total else "", columns, rows))
    if error:  # of the last test that was started
        test = parsed.tests[-1] if parsed.tests else "the program"
        parsed.problems.append(LeftOut(len(document["testcases"]), error, f"{test}: {error[:80]}"))
        if _DAMAGED in error and parsed.tests:
            parsed.tables.append(_damaged_table(parsed, len(document["testcases"])))
    return parsed


def read_nvbandwidth(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the text: a row for each test."""
    return _imported(parse_nvbandwidth(text_of(data)), hosts)


def read_nvbandwidth_json(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the JSON: a row for each test."""
    return _imported(parse_nvbandwidth_json(text_of(data)), hosts)


def _imported(parsed: NvbandwidthText, hosts: Sequence[str]) -> Imported:
    ranks: dict[RankName, int] = {}
    skipped, bodies = [*left_out(parsed.foreign), *parsed.problems], list[Body]()
    whole = [table for table in parsed.tables if table.is_whole]
    is_named = bool(parsed.processes) or (bool(parsed.host) and not any(_is_multinode(table) for table in whole))
    if is_named:
        refuse_hosts(hosts)
    for table in whole:
        names = _gpus(parsed, table, hosts)
        place = np.array([ranks.setdefault(name, len(ranks)) for name in names], np.int64)
        body = _body(table, parsed.size, place)
        if isinstance(body, str):
            skipped.append(LeftOut(table.line, table.test, body))
        else:
            bodies.append(body)
    complete = {table.test for table in whole if table.part in ("", "Total") and not table.is_damaged}
    lacking = [test for test in parsed.tests if test not in complete]
    reasons = [problem.why for problem in parsed.problems if ": " in problem.why]
    if unexplained := [test for test in lacking if not any(reason.startswith(f"{test}: ") for reason in reasons)]:
        reasons.append(f"{unexplained[0]} has no complete result")
    return Imported(
        tool=f"nvbandwidth {parsed.version}".strip(),
        rank_names=tuple(ranks),
        bodies=tuple(bodies),
        left_out=tuple(sorted(skipped, key=lambda line: line.line)),
        missing="; ".join(dict.fromkeys(reasons)),
    )


def _is_multinode(table: NvbandwidthTable) -> bool:
    return table.test.startswith("multinode")


def _gpus(parsed: NvbandwidthText, table: NvbandwidthTable, hosts: Sequence[str]) -> list[RankName]:
    """Return the GPUs of the columns of a table.

    Raises
    ------
    UsageError
        The text does not name the hosts of all processes, and `hosts` neither.
    """
    count = table.gpus
    if not _is_multinode(table):
        is_of_many = isinstance(hosts, JobHosts) or any(map(_is_multinode, parsed.tables))
        if len(set(hosts)) > 1 and not is_of_many:
            raise UsageError(f"--hosts names {len(hosts)} hosts for the GPUs of one", "name the host of the GPUs")
        host = parsed.host or (hosts[0] if hosts else "host")
        return [RankName(host, f"gpu{number}", f"gpu{number}") for number in range(count)]
    processes = parsed.processes
    if len(processes) != count and len(hosts) == count:
        processes = [(host, list(hosts[:at]).count(host)) for at, host in enumerate(hosts)]
    if len(processes) != count:
        problem = f"{table.test}: the hosts of its {count} processes are not named"
        raise UsageError(problem, "name the host of each process, in order, with --hosts")
    return [RankName(host, f"gpu{number}", f"gpu{number}") for host, number in processes]


def _body(table: NvbandwidthTable, size: int, place: Ints) -> Body | str:
    """Return the body of a table, or why it has none."""
    pairs, copy = _PAIRS.fullmatch(table.test), _HOST_COPY.fullmatch(table.test)
    is_local = table.test == "device_local_copy"
    facts: dict[str, Any] = {"transport": "cuda-p2p", "memory": "cuda", "variant": table.test}
    if table.is_damaged:
        return replace(_own_copies(table, size, place, facts), checked=True, damage=(Damage(size),))
    if table.part not in ("", "Total"):
        return "one direction of the total that follows"
    if pairs is not None and len(table.rows) == table.columns > 1:
        is_of_both = pairs["both"] and (table.part == "Total" or pairs["by"] == "sm")
        kernel = BIBANDWIDTH if is_of_both else _KERNELS[pairs["how"]]
        cells = matrix_cells(_seconds(table, size, 2 if is_of_both else 1), size)
        cells = replace(cells, src=place[cells.src], dst=place[cells.dst])
        return Body(table.test, kernel, cells, [place.size * (place.size - 1)], "serial", facts=facts)
    if table.pairs and table.test == "multinode_bisect_write_ce":  # the second writes to the first
        rows = zip(table.pairs, _seconds(table, size, 1)[:, 0].tolist(), strict=True)
        entries = [(int(place[b]), int(place[a]), size, time) for (a, b), time in rows if measurable(time)]
        return Body(table.test, _KERNELS["write"], cells_of(entries), [place.size], "parallel", "bisection", facts)
    if len(table.rows) == 1 and (is_local or copy is not None):
        if copy is not None and copy["both"] and copy["by"] == "sm":
            return "its figure is of both directions of a GPU together"
        facts["copy"] = "within-device" if is_local else "to-device" if copy and copy["to_gpu"] else "to-host"
        return _own_copies(table, size, place, facts)
    return "a load of memory and no copy" if "latency" in table.test else "a figure of several GPUs together"


def _seconds(table: NvbandwidthTable, size: int, directions: int) -> Floats:
    """Return the seconds of a buffer, NaN without a figure."""
    rates = np.array(table.rows, np.float64) * 1e9
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(rates > 0, directions * size / rates, np.nan)


def _own_copies(table: NvbandwidthTable, size: int, place: Ints, facts: Mapping[str, Any]) -> Body:
    """Copies of each GPU by itself."""
    seconds = _seconds(table, size, 1)[0]
    seconds[~((seconds >= SHORTEST_S) & (seconds <= LONGEST_S))] = np.nan
    zeros = np.zeros(place.size, np.int64)
    cells = Cells(place, zeros + EVERYBODY, zeros + size, zeros, zeros + 1, {"mean": seconds})
    order: Order = "parallel" if "all" in table.test.split("_") else "serial"
    return Body(table.test, _LOOPBACK, cells, [place.size], order, "world", {"directions": "one", **facts})
