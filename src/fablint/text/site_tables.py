"""The site file as tables, docs/reference/site-file.md: what its parts have in common, and how a wrong one is refused.

`plan` reads the thresholds of measurements in it, `preflight` the rest.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fablint.errors import UsageError
from fablint.text.suggestions import alternatives, did_you_mean

FORMAT = 1
KEYS = ("format", "class", "severity", "suppress", "threshold")
PAGE = "see docs/reference/site-file.md"
MOST_SHOWN, MOST_SAID = 40, 120  # characters of a wrong value, and of a message of the TOML parser


def read_document(text: str, source: str) -> Mapping[str, Any]:
    """The tables of a site file.

    Raises:
        UsageError: no TOML (with line and column), an unknown key at the top, a wrong format number.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split()) if isinstance(error, ValueError) else "nested too deep"
        raise UsageError(f"{source}: no TOML: {short(said, MOST_SAID)}", PAGE) from None
    refuse_unknown(document, KEYS, source)
    if type(document.get("format")) is not int or document["format"] != FORMAT:
        found = f"format {shown(document['format'])}" if "format" in document else "no format"
        raise UsageError(f"{source}: {found}", f"write format = {FORMAT} on top")
    return document


def entries(document: Mapping[str, Any], key: str, source: str) -> Sequence[Mapping[str, Any]]:
    """The tables of a list such as `[[suppress]]`; none where there is no such list."""
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise UsageError(f"{source}: {key} is no list of tables", f"begin each with [[{key}]]")
    return found


def refuse_unknown(table: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """Raise UsageError with the nearest key where the table has another one than `keys`."""
    for key in table:
        if key not in keys:
            hint = did_you_mean(key, keys, f"choose {alternatives(keys)}")
            raise UsageError(f"{where}: unknown key {shown(key)}", hint)


def refuse_missing(table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    """Raise UsageError where the table lacks one of `keys`."""
    for key in keys:
        if key not in table:
            raise UsageError(f"{where}: no {key}", f"it needs {alternatives(keys).replace(' or ', ' and ')}")


def choice(table: Mapping[str, Any], key: str, where: str, among: Collection[str]) -> str:
    """A word of the table that is one of several."""
    word = table[key]
    if not isinstance(word, str) or word not in among:
        hint = did_you_mean(word if isinstance(word, str) else "", among, f"choose {alternatives(among)}")
        raise UsageError(f"{where}: unknown {key} {shown(word)}", hint)
    return word


def shown(value: Any) -> str:
    """A value as an error line quotes it."""
    return f"'{short(value)}'" if isinstance(value, str) else short(repr(value))


def short(text: str, most: int = MOST_SHOWN) -> str:
    """One printable line."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."
