"""Reader of the tables in engine/registry/, which the engine includes as C++ macros."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fablint.errors import InternalError

_FIELD = re.compile(r'(?:"[^"]*"|[^",])+')
_NAMED = re.compile(r"(\w+) = (.*)")


@dataclass(frozen=True)
class TableEntry:
    """One entry `MACRO(field, ..., name = field, ...)` of a table.

    Quotes around a field are removed; a set such as `pairs | stars` is one field.
    """

    line: int  # of its beginning, counted from 1
    fields: Mapping[str, str]  # by name; an entry leaves out fields that are empty


def read_table(text: str, macro: str, columns: str, source: str) -> Iterator[TableEntry]:
    """Yield the entries of one macro in the order of the file.

    Parameters
    ----------
    text
        Content of the table. An entry begins on a line of its own, and continues after a line that ends with a comma.
    macro
        Name of the macro, such as `KERNEL`. Entries of other macros are skipped.
    columns
        Names of the fields at the beginning of an entry, which the entry does not name; blanks separate them.
    source
        Name of the file, for messages.

    Raises
    ------
    InternalError
        An entry is not closed, or lacks one of the `columns`: the table comes with fablint.
    """
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if not line.startswith(f"{macro}("):
            continue
        entry = line.rstrip()
        while entry.endswith(","):
            entry += " " + next(lines, (0, ""))[1].strip()
        named, values = {}, []
        for field in _FIELD.findall(entry.removeprefix(f"{macro}(").removesuffix(")")):
            if match := _NAMED.fullmatch(field.strip()):
                named[match[1]] = match[2].strip('"')
            else:
                values.append(field.strip().strip('"'))
        if not entry.endswith(")") or len(values) != len(columns.split()):
            what = f"{source}:{number}: '{entry}' does not have {len(columns.split())} fields without a name"
            raise InternalError(what, "reinstall fablint")
        yield TableEntry(number, dict(zip(columns.split(), values, strict=True)) | named)


def registry_table(file: str, macro: str, columns: str = "") -> list[Mapping[str, str]]:
    """Return the fields of all entries of a macro in a file of engine/registry/, inside the wheel or in the checkout.

    Raises InternalError where the file is missing or malformed.
    """
    package = Path(__file__).parents[2]
    folders = [folder / "registry" for folder in (package / "engine_sources", package.parents[1] / "engine")]
    path = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if path is None:
        raise InternalError(f"the engine's table {file} is missing from {package}", "reinstall fablint")
    return [entry.fields for entry in read_table(path.read_text(), macro, columns, str(path))]
