"""Parser of the three forms in which amd-smi prints what it knows of GPUs: JSON, text and CSV.

The text is the JSON with names in capitals and four blanks a level; each GPU begins with `GPU: 0`, and an entry of a
list begins where its first name returns (amdsmi_logger.py). CSV has a line for each GPU; the names of its columns are
those of the values, of blocks with the block before them: `UMC_correctable_count`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fablint.snapshot.parsers.documents import dicts, documents

_GPU = re.compile(r"GPU: (\d{1,4})\s*$")
_ENTRY = re.compile(r"( *)([A-Za-z0-9_#/()][\w#/(). -]{0,80}):(?: (.*))?$")
_MOST_LEVELS = 20
_MOST_LETTERS = 1 << 20


def gpu_entries(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the entry of each GPU as in the JSON of amd-smi, with names in lower case; `gpu` is its number."""
    if not text:  # hosts without GPUs of AMD
        return
    for document in documents(text):
        whole = document.get("gpu_data", document) if isinstance(document, dict) else document
        yield from (_lower(entry) for entry in dicts(whole) if isinstance(entry.get("gpu"), int))
    yield from _text_entries(text[:_MOST_LETTERS])
    yield from _csv_entries(text[:_MOST_LETTERS])


def _lower(value: Any, levels: int = _MOST_LEVELS) -> Any:
    if isinstance(value, dict) and levels:
        return {name.lower(): _lower(item, levels - 1) for name, item in value.items()}
    if isinstance(value, list) and levels:
        return [_lower(item, levels - 1) for item in value]
    return value


def _text_entries(text: str) -> Iterator[Mapping[str, Any]]:
    gpu, lines = None, list[re.Match[str]]()
    for line in (*text.splitlines(), "."):
        if line[:1] not in ("", " "):  # the end of what belongs to a GPU
            if gpu is not None:
                yield {**_section(lines), "gpu": gpu}
            begin = _GPU.match(line)
            gpu, lines = int(begin[1]) if begin else None, []
        elif entry := _ENTRY.match(line):  # all others continue a long value
            lines.append(entry)


def _section(lines: list[re.Match[str]]) -> dict[str, Any]:
    """Return names with their values and sections, which are those of the deeper lines below a name."""
    first: dict[str, Any] = {}
    sections, open_sections = [first], list[tuple[int, list[dict[str, Any]]]]()  # of a list there are several
    for line in lines:
        indent, name, value = len(line[1]), line[2].lower(), line[3]
        while open_sections and indent < open_sections[-1][0]:
            open_sections.pop()
        if not open_sections or indent > open_sections[-1][0]:
            if len(open_sections) == _MOST_LEVELS:
                continue
            open_sections.append((indent, sections))
        entries = open_sections[-1][1]
        if name in entries[-1]:
            entries.append({})
        sections = [{}]  # of the lines below this one
        entries[-1][name] = sections if value is None else value.strip()
    return _plain(first)


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry without lists of one entry."""
    plain = {}
    for name, value in entry.items():
        entries = [_plain(item) for item in value] if isinstance(value, list) else value
        plain[name] = entries[0] if isinstance(entries, list) and len(entries) == 1 else entries
    return plain


def _csv_entries(text: str) -> Iterator[Mapping[str, Any]]:
    names: list[str] = []
    for row in csv.reader(text.replace("\0", "").splitlines()):
        if row and row[0].strip() == "gpu":
            names = [name.strip().lower() for name in row]
        elif names and len(row) == len(names) and row[0].isdecimal() and len(row[0]) <= 4:
            yield {**dict(zip(names, map(str.strip, row), strict=True)), "gpu": int(row[0])}
