"""Output of perftest (`ib_write_bw`, `ib_send_lat`, ...) -> numbers, as text and as JSON.

A rate is of MiB/s below the heading MB/sec or MiB/sec, and of 10^9 bit/s below Gb/sec; of a bidirectional test both
directions together. A latency is half a round trip, of reads and atomic operations a whole one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fablint.errors import UsageError
from fablint.store.importing.captions import Captions, distinct_captions
from fablint.store.importing.cells import (
    BANDWIDTH,
    BIBANDWIDTH,
    LATENCY,
    Body,
    Cells,
    Damage,
    Imported,
    Kernel,
    LeftOut,
    cells_of,
    left_out,
    measurable,
    ranks_named,
)
from fablint.store.importing.lines import INTEGER, Foreign, figure, json_of, marked, numbered, text_of

MARK = marked(
    rb" *#bytes +(?:#sl +)?#iterations +(?:BW peak|t_min)\["
    rb"| *(?:Send|RDMA_Write|RDMA_Read) (?:[\w ]+ )?(?:BW|Latency) Test\s*$"
)
JSON_MARK = re.compile(rb'^(?:\xef\xbb\xbf)?\s*\{\s*"test_info"\s*:')

_VERB = re.compile(r"(?:RDMA_)?[A-Za-z]+(?:_imm)?(?=_)")
_TITLE = re.compile(r"\s*((?:Send|RDMA_Write|RDMA_Read|Atomic|Raw Ethernet)[\w ]*?) Test\s*$")
_HEADING = re.compile(r"\s*(#bytes\s+(?:#sl\s+)?#iterations\s.*)")
_COLUMN = re.compile(r"[#\w.%]+(?: [A-Za-z]\w*)*\[[^\]]*\]|[#\w.%]+(?: average)?")
_SETTING = re.compile(r"\s*[A-Za-z][\w*. /-]*\s*: \S|\s*(?:local|remote) address:|\s*GID:|-{10,}|\*{10,}|\s*\* Waiting")
_COMMAND = re.compile(r"\bib_\w+_(?:bw|lat)\b")
_OPTION = re.compile(r"([A-Za-z][\w*. /-]*?)\s*: (\S+(?: \S+)*)")
_ADDRESS = re.compile(r"local|remote|LID 0x[0-9a-f]+")
_GPU = re.compile(r"\s*(?:[Ii]nitializing|Using) (CUDA|ROCm|MUSA|MLU|Neuron)\b|\s*Use (ROCm|MUSA) memory : ON")
_OF_GPU = re.compile(  # lines about the memory of a GPU, also behind the figures
    r"\s*(?:Listing all|Picking (?:device|GPU)|Finding PCIe|Got PCIe|Using ROCm|(?:CUDA|MUSA|MLU) device|\[pid = "
    r"|(?:initializing|creating|destroying current|making it the current) |(?:de)?allocat(?:ed|ing) |c[un]Mem|cnMalloc"
    r"|using DMA-BUF|Calling (?:ibv|mlx5dv)_reg)"
)
_MEMORIES = {"CUDA": "cuda", "ROCm": "hip"}  # others are a device of unknown kind
_SAMPLES = re.compile(r"\s*#, (?P<unit>usec|cycles)|\s*[0-9]+, [0-9.e+-]+$")  # of -H and -U
_CYCLES = re.compile(r"\s(?:-[A-Za-z]*C[A-Za-z]*|--report-cycles)\b")  # option of a command line
_CHECKED = re.compile(r"\s*VALIDATION: (PASSED|FAILED)")
_FAILED = re.compile(r"\s*(?:Completion with error|Failed status|Failed to \w|Problems with |Couldn't |Unable to )")
_BELOW = re.compile(r"\s*Error: (?:BW result|Msg rate)\s+is below")
_KERNELS = {
    ("Send", "BW"): BANDWIDTH,
    ("RDMA_Write", "BW"): Kernel("put_bandwidth", "bandwidth", "src"),
    ("RDMA_Read", "BW"): Kernel("get_bandwidth", "bandwidth", "dst"),
    ("Send", "Latency"): LATENCY,
    ("RDMA_Write", "Latency"): Kernel("put_latency", "latency", "src"),
    ("RDMA_Read", "Latency"): Kernel("get_latency", "latency", "dst"),
}
_UNITS = {"MB/sec": 2.0**20, "MiB/sec": 2.0**20, "Gb/sec": 1e9 / 8}


@dataclass
class PerftestTable:
    """One test: its title, and the figures of each size by the names of the columns."""

    title: str
    line: int
    columns: tuple[str, ...] = ()
    rows: list[tuple[int, dict[str, float]]] = field(default_factory=list)  # line, figures
    memory: str = ""  # of the buffers; '' for that of the host
    verdict: str = ""  # of a check of payloads
    in_cycles: bool = False  # the times are CPU cycles, whatever the heading says
    problems: list[LeftOut] = field(default_factory=list)
    failed: int = 0  # line on which the program says that it ended early; 0: none
    settings: str = ""  # device, addresses and options: what distinguishes tests of one title


def parse_perftest(text: str) -> tuple[list[PerftestTable], list[Foreign]]:
    """Read the output of a program of perftest: its tables, and the lines that belong to none.

    Raises
    ------
    UsageError
        The text has no table of perftest.
    """
    tables: list[PerftestTable] = []
    foreign: list[Foreign] = []
    captions, following = Captions(), PerftestTable("", 0)
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    for number, line in numbered(text):
        if title := _TITLE.match(line):
            tables.append(replace(following, title=title[1], line=number, settings=captions.caption()))
            tables[-1].in_cycles = _CYCLES.search(tables[-1].settings) is not None
            following = PerftestTable("", 0)
        elif heading := _HEADING.match(line):
            if not tables or tables[-1].rows:
                tables.append(PerftestTable("", number))
            tables[-1].columns = tuple(_COLUMN.findall(heading[1]))
        elif _remark(tables[-1] if tables else following, following, number, line):
            continue
        elif (cut and number == last and line.strip()) or not (
            not line.strip() or (tables and _row(tables[-1], number, line)) or _SETTING.match(line)
        ):
            foreign.append(Foreign(number, line))
            captions.take(line, is_command=_COMMAND.search(line) is not None)
        elif tables and not tables[-1].rows:
            tables[-1].settings += "".join(f" {word}" for word in _setting(line))
    if not any(table.columns for table in tables):
        raise UsageError("the text has no table of perftest", "give the complete output of the client")
    return tables, foreign


def _remark(table: PerftestTable, following: PerftestTable, number: int, line: str) -> bool:
    """Read a line about the memory or the figures of a table; return whether it is one."""
    if gpu := _GPU.match(line):
        (following if table.rows else table).memory = _MEMORIES.get(gpu[1] or gpu[2], "device")
    elif _OF_GPU.match(line):
        return True
    elif samples := _SAMPLES.match(line):
        table.in_cycles |= samples["unit"] == "cycles"
    elif checked := _CHECKED.match(line):
        table.verdict = checked[1]
    elif _FAILED.match(line):
        table.failed = table.failed or number
        return False
    elif _BELOW.match(line):
        table.problems.append(LeftOut(number, line, "the figure is below the limit that the caller has set"))
    else:
        return False
    return True


def _setting(line: str) -> Iterator[str]:
    """Yield the settings on a line, and the address of an end; numbers of queues and packets are of a run."""
    if "address:" in line:
        yield from (part.replace(" ", ":") for part in _ADDRESS.findall(line))
    elif "GID:" in line:
        yield "".join(line.split())
    else:
        yield from (f"{name.strip()}:{value.strip()}".replace(" ", "-") for name, value in _OPTION.findall(line))


def _row(table: PerftestTable, number: int, line: str) -> bool:
    """Add a line of figures; return whether it is one."""
    words = line.split()
    figures = [figure(word) for word in words]
    if not table.columns or len(words) < len(table.columns) or not re.fullmatch(INTEGER, words[0]):
        return False
    named = zip(table.columns, figures, strict=False)  # --cpu_util adds a column without a name in some releases
    table.rows.append((number, {name: value for name, value in named if value is not None}))
    return True


def read_perftest(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import each test as a row of one pair: of the client, which sends, and the server."""
    tables, foreign = parse_perftest(text_of(data))
    skipped = list(left_out(foreign))
    words = distinct_captions((table.title, table.settings) for table in tables)
    bodies = [_body(table, skipped, words[table.title, table.settings]) for table in tables]
    return Imported(
        tool="perftest",
        rank_names=ranks_named(2, hosts),
        bodies=tuple(body for body in bodies if body is not None),
        left_out=tuple(sorted(skipped, key=lambda line: line.line)),
        missing=_missing(tables),
    )


def _missing(tables: Sequence[PerftestTable]) -> str:
    if not all(table.rows for table in tables):
        return "a test has no figures"
    failed = next((table.failed for table in tables if table.failed), 0)
    return f"a test ended early (line {failed})" if failed else ""


def read_perftest_json(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the file that `--out_json` writes. It does not state the unit of a rate: the rate of messages shows it.

    Raises
    ------
    UsageError
        The text is not JSON of perftest.
    """
    hint = "give the whole file as perftest wrote it"
    document = json_of(text_of(data), hint)
    try:
        info = document["test_info"]
        title = _json_title(str(info["test"]))
        results = document.get("results") or _sum(document["results_local"], document["results_remote"])
        table = _of_results(title.removesuffix(" Test"), results[0] if isinstance(results, list) else results)
    except (AttributeError, KeyError, TypeError, IndexError, ValueError):
        raise UsageError("JSON without the results of perftest", hint) from None
    skipped: list[LeftOut] = []
    table.settings, table.memory = str(info.get("Connection_type")), _json_memory(info)
    body = _body(table, skipped)
    return Imported("perftest", ranks_named(2, hosts), () if body is None else (body,), tuple(skipped))


def _json_title(text: str) -> str:
    """Return the title of a test as the output has it: `RDMA_Write Bidirectional BW Test`."""
    verb = _VERB.match(text)
    return text if verb is None else f"{verb[0]} {text[verb.end() + 1 :].replace('_', ' ')}"


def _json_memory(info: Mapping[str, Any]) -> str:
    names = [
        *(name for name in ("CUDA", "MUSA") if f"{name.lower()}_device" in info),
        *(name for name in ("ROCm", "MUSA") if info.get(f"Use_{name}_memory") == "ON"),
    ]
    return _MEMORIES.get(names[0], "device") if names else ""


def _sum(local: Mapping[str, Any], remote: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the results of both directions together, which `--report-both` writes one by one."""
    return {**local, **{key: float(local[key]) + float(remote[key]) for key in ("BW_average", "MsgRate")}}


def _of_results(title: str, results: Mapping[str, Any]) -> PerftestTable:
    size, iterations = float(results["MsgSize"]), float(results.get("n_iterations", 1))
    figures = {"#bytes": size, "#iterations": iterations}
    for key in ("t_min", "t_max", "t_typical", "t_avg"):
        if key in results:
            figures[f"{key}[usec]"] = float(results[key])
    if "BW_average" in results:
        rate, messages = float(results["BW_average"]), float(results.get("MsgRate", 0)) * 1e6
        unit = "MiB/sec"
        if rate > 0 and messages > 0 and size > 0:
            unit = min(_UNITS, key=lambda name: abs(math.log(rate * _UNITS[name] / (messages * size))))
        figures[f"BW average[{unit}]"] = rate
    return PerftestTable(title, 1, tuple(figures), [(1, figures)])


def _body(table: PerftestTable, skipped: list[LeftOut], settings: str = "") -> Body | None:
    """Return the body of a table; None if its test is not supported, or has no usable figure.

    `settings` are those that other tests of the title do not have.
    """
    operation, is_bandwidth = table.title.partition(" ")[0], "BW" in table.title.split()
    kernel = _KERNELS.get((operation, "BW" if is_bandwidth else "Latency"))
    kernel = None if "RawEth" in table.settings else kernel
    is_both = "Bidirectional" in table.title
    if kernel is None or not table.rows:
        why = "no figures" if kernel else "not a supported test" if table.title else "the title of the test is missing"
        skipped.append(LeftOut(table.line, table.title or "#bytes #iterations", why))
        return None
    if not any(name in ("t_avg[usec]", *(f"BW average[{unit}]" for unit in _UNITS)) for name in table.columns):
        name = next((name for name in table.columns if re.match("BW average|t_avg", name)), table.columns[-1])
        raise UsageError(f"line {table.line}: the column '{name}' is not known", "give the output of perftest")
    skipped += table.problems
    if table.in_cycles and not is_bandwidth:
        skipped.append(LeftOut(table.line, table.title, "its times are CPU cycles: omit --report-cycles"))
        return None
    entries, counts = [], []
    for line, figures in table.rows:
        size, seconds = int(figures.get("#bytes", 0)), _seconds(figures, 2 if is_both else 1)
        if seconds is None or not measurable(seconds):
            skipped.append(LeftOut(line, " ".join(f"{value:g}" for value in figures.values()), "no figure above 0"))
            continue
        entries.append((0, 1, size, seconds))
        counts.append(int(min(max(figures.get("#iterations", 1), 1), 1 << 31)))
    cells: Cells = cells_of(entries, count=counts)
    kernel = BIBANDWIDTH if is_both else kernel
    facts = {"transport": "verbs", "variant": f"{table.title} {settings}".rstrip()}
    facts |= {"memory": table.memory} if table.memory else {}
    sizes = sorted({entry[2] for entry in entries}) if table.verdict == "FAILED" else []
    damage = tuple(Damage(size, 0, 1) for size in sizes)
    checked = bool(table.verdict)
    return Body(kernel.name, kernel, cells, [1], "serial", "pair", facts, checked=checked, damage=damage)


def _seconds(figures: Mapping[str, float], directions: int) -> float | None:
    """Return the mean seconds of a message; None without a figure."""
    if "t_avg[usec]" in figures:
        return figures["t_avg[usec]"] * 1e-6
    for unit, factor in _UNITS.items():
        rate, size = figures.get(f"BW average[{unit}]", 0.0), figures.get("#bytes", 0.0)
        if rate > 0 and size > 0:
            return directions * size / (rate * factor)
    return None
