"""Reader of the tables in engine/registry/, which the engine includes as C++ macros."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fablint.errors import InternalError


@dataclass(frozen=True)
class TableEntry:
    """One line `MACRO(field, field, ...)` of a table.

    Quotes around a field are removed; a set such as `pairs | stars` is one field.
    """

    line: int  # counted from 1
    fields: tuple[str, ...]


def read_table(text: str, macro: str, columns: int, source: str) -> Iterator[TableEntry]:
    """Yield the entries of one macro in the order of the file.

    Parameters
    ----------
    text
        Content of the table: one entry per line; every other line is a comment or for the preprocessor.
    macro
        Name of the macro, such as `KERNEL`. Entries of other macros are skipped.
    columns
        Number of fields of an entry.
    source
        Name of the file, for messages.

    Raises
    ------
    InternalError
        An entry is not closed, or has another number of fields: the table comes with fablint.
    """
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare.startswith(f"{macro}("):
            continue
        body = bare.removeprefix(f"{macro}(").removesuffix(")")
        fields = next(csv.reader([body], skipinitialspace=True, strict=False), [])
        if not bare.endswith(")") or len(fields) != columns:
            raise InternalError(f"{source}:{number}: '{bare}' does not have {columns} fields", "reinstall fablint")
        yield TableEntry(number, tuple(field.strip() for field in fields))


def registry_table(file: str, macro: str, columns: int) -> list[tuple[str, ...]]:
    """Return the fields of all entries of a macro in a file of engine/registry/, inside the wheel or in the checkout.

    Raises InternalError where the file is missing or malformed.
    """
    package = Path(__file__).parents[2]
    folders = [folder / "registry" for folder in (package / "engine_sources", package.parents[1] / "engine")]
    path = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if path is None:
        raise InternalError(f"the engine's table {file} is missing from {package}", "reinstall fablint")
    return [entry.fields for entry in read_table(path.read_text(), macro, columns, str(path))]
