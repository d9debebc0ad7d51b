"""Results of NVIDIA's ClusterKit -> numbers: `latency` in us, `bandwidth` in MB/s of 10^6 bytes/s.

Its text (`latency.txt`, `bandwidth.txt`) is read as published parsers describe it. The keys of its JSON are not
published: accepted is a JSON text in which one list names the hosts and one square table of numbers has as many rows.
Anything else is refused. No original of either layout was available: see docs/how-to/import.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Floats
from fablint.model.registry import Quantity
from fablint.store.importing.cells import (
    BIBANDWIDTH,
    LATENCY,
    Body,
    Imported,
    LeftOut,
    RankName,
    left_out,
    matrix_cells,
    refuse_hosts,
)
from fablint.store.importing.csv_columns import factor_of, unit_in
from fablint.store.importing.lines import Foreign, json_of, numbered, second_of, text_of

TEXT_MARK = re.compile(rb"(?m)^Rank: +0( +[0-9]+)* *\r?\n +0 \(\S+\):")
JSON_MARK = re.compile(rb"^(?:\xef\xbb\xbf)?\s*\{[\s\S]*\"[^\"]*(?i:bandwidth|latency)[^\"]*\"")
MESSAGE = 32 << 20  # bytes; its default for bandwidth, which the files do not state
MOST_NESTED = 40

_ROW = re.compile(r" *(\d{1,9}) \((\S+)\):(.*)$")
_UNIT_KEY = re.compile(r"units?$", re.IGNORECASE)
_SIZE_KEY = re.compile(r"(?:message|msg|b|l)[ _-]?size$", re.IGNORECASE)
_INTO = " > "  # between keys of a path
_UNIT_HINT = "give the .txt file beside it"
_SUMMARY = re.compile(r"(Minimum|Maximum|Average) (bandwidth|latency): ")
# One digit after the decimal point: wide figures are printed without a space between them.
_CELL = re.compile(r"-?\d+\.\d|-?\d+(?= |$)|-?(?:nan|inf)")


@dataclass(frozen=True)
class ClusterkitMatrix:
    """One test; `figures[i, j]` in its unit, NaN or 0 where it was not measured."""

    quantity: str  # `latency` or `bandwidth`
    hosts: tuple[str, ...]
    figures: Floats
    foreign: tuple[Foreign, ...] = ()
    lacking: int = 0  # rows that are missing or cut off
    unit: float = 0.0  # seconds, or bytes/s, of a figure; 0: that of the text output
    size: int | None = None  # bytes of a message


def parse_clusterkit_text(text: str) -> ClusterkitMatrix:
    """Read `latency.txt` or `bandwidth.txt`.

    Raises
    ------
    UsageError
        The text has no matrix, several, or no line that names the quantity.
    """
    rows: dict[int, tuple[str, list[float]]] = {}
    foreign: list[Foreign] = []
    quantity, count = "", 0
    cut, last = not text.endswith("\n"), text.count("\n") + 1
    for number, line in numbered(text):
        if line.startswith("Rank:"):
            if rows:
                raise second_of("matrix of ClusterKit", number)
            count = len(line.split()) - 1
        elif summary := _SUMMARY.match(line):
            quantity = summary[2]
        elif (row := _ROW.match(line)) and not (cut and number == last):
            cells = _CELL.findall(row[3])
            if len(cells) == count and "".join(cells) == row[3].replace(" ", "") and int(row[1]) < count:
                rows[int(row[1])] = (row[2], [float(cell) for cell in cells])
            else:
                foreign.append(Foreign(number, line))
        elif line.strip():
            foreign.append(Foreign(number, line))
    if not rows or not quantity:
        raise UsageError(
            "not a complete result of ClusterKit: the matrix or the line 'Minimum bandwidth' is missing",
            "give its .txt file",
        )
    order = sorted(rows)  # of a rank without a row even the host is unknown
    values = np.array([rows[rank][1] for rank in order])[:, order]
    return ClusterkitMatrix(
        quantity, tuple(rows[rank][0] for rank in order), values, tuple(foreign), count - len(order)
    )


def parse_clusterkit_json(text: str) -> ClusterkitMatrix:
    """Read `latency.json` or `bandwidth.json`.

    Raises
    ------
    UsageError
        The text is not JSON, or does not have one list of hosts and one table of that many rows and columns.
    """
    values = list(_values(json_of(text, "give the file as ClusterKit wrote it")))
    tables = [(path, value) for path, value in values if _square(value)]
    lists = [value for _, value in values if _names(value)]
    named = [(path, table, names) for path, table in tables for names in lists if len(names) == len(table)]
    quantities = _quantities(path for path, _ in tables)
    quantities = quantities or _quantities(
        word for path, value in values for word in (path, value) if isinstance(word, str)
    )
    if len(named) != 1 or len(quantities) != 1:
        raise UsageError(
            f"JSON with {len(lists)} lists of hosts and {len(tables)} tables of pairs: not a result of ClusterKit",
            "its layout is not published; give the .txt file beside it",
        )
    path, table, names = named[0]
    hosts = tuple(
        str(value.get("name", value.get("host"))) if isinstance(value, dict) else str(value) for value in names
    )
    unit, size = _stated_unit(quantities[0], values, path), _stated_size(values)
    return ClusterkitMatrix(quantities[0], hosts, np.array(table, float), unit=unit, size=size)


def _stated_unit(quantity: Quantity, values: Sequence[tuple[str, Any]], table: str) -> float:
    """Return the unit that a key of the JSON states, or the name of the table at this path; 0 where none does.

    Raises
    ------
    UsageError
        The unit is not known, or is none of this quantity.
    """
    for path, value in values:
        if isinstance(value, str) and _UNIT_KEY.search(path):
            factor = factor_of(value, quantity)
            if factor is None:
                name = path.strip(_INTO)[:80]
                raise UsageError(f"the unit '{value[:40]}' of {name} is not known", _UNIT_HINT)
            return factor
    return next((unit for key in table.split(_INTO)[::-1] if (unit := unit_in(key, quantity)) is not None), 0.0)


def _stated_size(values: Sequence[tuple[str, Any]]) -> int | None:
    """Return the message size that a key of the JSON states, bytes; None where none does."""
    sizes = {value for path, value in values if _SIZE_KEY.search(path) and _number(value) and value}
    return int(sizes.pop()) if len(sizes) == 1 and 0 < min(sizes) < 1 << 40 else None


def _values(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield all values of a JSON text, each with the path of keys to it."""
    yield path, value
    if depth < MOST_NESTED and isinstance(value, dict):
        for key, item in value.items():
            yield from _values(item, f"{path}{_INTO}{key}", depth + 1)


def _quantities(words: Iterable[str]) -> list[Quantity]:
    """Quantities (`latency`, `bandwidth`) that the words mention."""
    text = " ".join(words).lower()
    quantities: tuple[Quantity, ...] = ("latency", "bandwidth")
    return [word for word in quantities if word in text]


def _square(value: Any) -> bool:
    """Tell whether the value is a table of numbers with as many rows as columns."""
    if not isinstance(value, list) or len(value) < 2:
        return False
    rows = all(isinstance(row, list) and len(row) == len(value) for row in value)
    return rows and all(_number(number) for row in value for number in row)


def _number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300)


def _names(value: Any) -> bool:
    """Tell whether the value is a list of different hosts."""
    if not isinstance(value, list) or len(value) < 2:
        return False
    names = [entry.get("name", entry.get("host")) if isinstance(entry, dict) else entry for entry in value]
    return all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)


def read_clusterkit_text(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the text output of ClusterKit."""
    return _imported(parse_clusterkit_text(text_of(data)), hosts)


def read_clusterkit_json(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import the JSON output of ClusterKit."""
    return _imported(parse_clusterkit_json(text_of(data)), hosts)


def _imported(matrix: ClusterkitMatrix, hosts: Sequence[str]) -> Imported:
    """The matrix as cells. ClusterKit's bandwidth is of both directions at once, unless it was run with -U (not
    recorded).
    """
    refuse_hosts(hosts)
    if matrix.quantity == "latency":
        kernel, size, seconds = LATENCY, matrix.size or 0, matrix.figures * (matrix.unit or 1e-6)
    else:
        kernel, size = BIBANDWIDTH, matrix.size or MESSAGE
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            seconds = np.where(matrix.figures > 0, 2 * size / (matrix.figures * (matrix.unit or 1e6)), np.nan)
    n = len(matrix.hosts)
    body = Body(kernel.name, kernel, matrix_cells(seconds, size), [n * (n - 1)], facts={"directions": "both"})
    lacking = (LeftOut(0, f"{matrix.lacking} ranks", "their rows are missing or cut off"),) if matrix.lacking else ()
    return Imported(
        tool="clusterkit",
        rank_names=tuple(RankName(host, str(rank)) for rank, host in enumerate(matrix.hosts)),
        bodies=(body,),
        left_out=(*left_out(matrix.foreign), *lacking),
        missing="rows are missing" if matrix.lacking else "",
    )
