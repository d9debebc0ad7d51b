"""The site file as tables, docs/reference/site-file.md: reading, and errors common to all its parts.

`plan` reads the thresholds of measurements in it, `site_suppressions` the known faults, `preflight` the rest.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fablint.errors import UsageError
from fablint.text.suggestions import alternatives, did_you_mean

FORMAT = 1
KEYS = ("format", "class", "severity", "suppress", "threshold")
PAGE = "see man fablint-site"
LETTERS = 200  # of a name or a reason
MOST_SHOWN, MOST_SAID = 40, 120  # characters of a wrong value, and of a message of the TOML parser


def read_document(text: str, source: str) -> Mapping[str, Any]:
    """Tables of a site file.

    Raises
    ------
    UsageError
        The text is not TOML (with line and column), has an unknown key at the top, or a wrong format number.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split()) if isinstance(error, ValueError) else "nested too deep"
        raise UsageError(f"{source}: not TOML: {short(reason, MOST_SAID)}", PAGE) from None
    refuse_unknown(document, KEYS, source)
    if type(document.get("format")) is not int or document["format"] != FORMAT:
        declared = f"format {shown(document['format'])}" if "format" in document else "no format"
        raise UsageError(f"{source}: {declared}", f"write format = {FORMAT} on top")
    return document


def entries(document: Mapping[str, Any], key: str, source: str) -> Sequence[Mapping[str, Any]]:
    """Return the tables of a list.

    Parameters
    ----------
    document
        A site file.
    key
        Name of the list: `suppress` of `[[suppress]]`.
    source
        Name of the file in errors.

    Returns
    -------
    sequence of mappings
        Empty if the document has no such list.

    Raises
    ------
    UsageError
        The value is not a list of tables.
    """
    tables = document.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(entry, dict) for entry in tables):
        raise UsageError(f"{source}: {key} is not a list of tables", f"begin each with [[{key}]]")
    return tables


def refuse_unknown(table: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """Refuse a table with a key that there is not.

    Parameters
    ----------
    table
        A table of a site file.
    keys
        Keys that it may have.
    where
        File and table in errors.

    Raises
    ------
    UsageError
        The table has another key; the error has the nearest one.
    """
    for key in table:
        if key not in keys:
            hint = did_you_mean(key, keys, f"choose {alternatives(keys)}")
            raise UsageError(f"{where}: unknown key {shown(key)}", hint)


def refuse_missing(table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    """Refuse a table that lacks a key.

    Parameters
    ----------
    table
        A table of a site file.
    keys
        Keys that it must have.
    where
        File and table in errors.

    Raises
    ------
    UsageError
        One of the keys is missing.
    """
    for key in keys:
        if key not in table:
            raise UsageError(f"{where}: no {key}", f"it needs {alternatives(keys).replace(' or ', ' and ')}")


def choice(table: Mapping[str, Any], key: str, where: str, among: Collection[str]) -> str:
    """Return a word of a table.

    Parameters
    ----------
    table
        A table of a site file.
    key
        Key of the word.
    where
        File and table in errors.
    among
        Words that it may be.

    Raises
    ------
    UsageError
        It is another word.
    """
    word = table[key]
    if not isinstance(word, str) or word not in among:
        hint = did_you_mean(word if isinstance(word, str) else "", among, f"choose {alternatives(among)}")
        raise UsageError(f"{where}: unknown {key} {shown(word)}", hint)
    return word


def one_line(value: Any, where: str) -> str:
    """Return a text of one line and at most `LETTERS` letters, without blanks at its ends. Raises UsageError."""
    if not isinstance(value, str):
        raise UsageError(f"{where}: {shown(value)} is not a text", "give a text in quotes")
    if not value.isprintable() or (len(value) > LETTERS and "[" not in value):
        raise UsageError(f"{where}: {shown(value)} is not a line of at most {LETTERS} letters", "shorten it")
    return value.strip()


def shown(value: Any) -> str:
    """A value as an error line quotes it."""
    return f"'{short(value)}'" if isinstance(value, str) else short(repr(value))


def short(text: str, most: int = MOST_SHOWN) -> str:
    """One printable line of at most `most` characters."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."
