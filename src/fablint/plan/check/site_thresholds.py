"""The thresholds of a site file, docs/reference/site-file.md, from its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fablint.errors import UsageError
from fablint.model import Scope
from fablint.model.limits.thresholds import Threshold
from fablint.model.registry import KERNELS
from fablint.model.registry.option_values import format_bytes, parse_bytes
from fablint.text.site_tables import choice, entries, read_document, refuse_missing, refuse_unknown, short, shown
from fablint.text.suggestions import alternatives

ANY = "any"
SCOPES = (*(str(scope) for scope in Scope if scope is not Scope.UNKNOWN), ANY)
KEYS = ("scope", "kernel", "size", "value", "lower", "upper", "single_pairs")
NEEDED = KEYS[:4]
UNITS: Mapping[str, Mapping[str, float]] = {
    "bandwidth": {
        "B/s": 1.0,
        "kB/s": 1e3,
        "MB/s": 1e6,
        "GB/s": 1e9,
        "TB/s": 1e12,
        "KiB/s": 2.0**10,
        "MiB/s": 2.0**20,
        "GiB/s": 2.0**30,
    },
    "latency": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
}
_NUMBER = r"[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,2})?"
_FIGURE = re.compile(rf"({_NUMBER}) ?([A-Za-z/]+)")
_PERCENT = re.compile(rf"({_NUMBER}) ?%")


def parse_thresholds(text: str, source: str) -> tuple[Threshold, ...]:
    """The thresholds of a site file, in its order.

    Parameters
    ----------
    text
        The file, TOML.
    source
        Its name, for messages: `site.toml: threshold 3: unknown scope 'egde': did you mean edge`.

    Raises
    ------
    UsageError
        No TOML, an unknown key, scope, kernel or unit, a value that is none, one threshold twice.
    """
    document = read_document(text, source)
    first_entry: dict[tuple[object, ...], int] = {}
    thresholds = []
    for number, entry in enumerate(entries(document, "threshold", source), 1):
        where = f"{source}: threshold {number}"
        threshold = _threshold(entry, where)
        before = first_entry.setdefault((threshold.scope, threshold.kernel, threshold.size), number)
        if before != number:
            what = f"{threshold.scope or ANY} {threshold.kernel} {format_bytes(threshold.size)}"
            raise UsageError(f"{where}: {what} has threshold {before} already", "leave one of them out")
        thresholds.append(threshold)
    return tuple(thresholds)


def _threshold(entry: Mapping[str, Any], where: str) -> Threshold:
    refuse_unknown(entry, KEYS, where)
    refuse_missing(entry, NEEDED, where)
    scope, kernel = (choice(entry, key, where, among) for key, among in (("scope", SCOPES), ("kernel", _kernels())))
    size = _size(entry["size"], kernel, where)
    quantity = KERNELS[kernel].quantity
    value = _figure(entry["value"], quantity, f"{where}: value")
    if value <= 0:
        raise UsageError(f"{where}: value: {shown(entry['value'])} is nothing", "give what pairs should reach")
    scope_of_pairs = None if scope == ANY else Scope(scope)
    single_pairs = entry.get("single_pairs", True)
    if not isinstance(single_pairs, bool):
        raise UsageError(f"{where}: single_pairs: {shown(single_pairs)} is not a boolean", "write true or false")
    threshold = Threshold(scope_of_pairs, kernel, size, quantity, value, None, None, where, single_pairs)
    lower, upper = (_tolerance(entry, key, threshold) for key in ("lower", "upper"))
    if lower is None and upper is None:  # the value is the limit itself, on the side that matters
        lower, upper = (0.0, None) if quantity == "bandwidth" else (None, 0.0)
    lowest = None if lower is None else value - lower
    if lowest is not None and lowest < 0:
        raise UsageError(f"{where}: lower: {shown(entry['lower'])} is more than the value", "give less")
    return replace(threshold, lowest=lowest, highest=None if upper is None else value + upper)


def _kernels() -> list[str]:
    """Return those that are measured between pairs: only they have figures of pairs."""
    return [name for name, kernel in KERNELS.items() if "pairs" in kernel.groups]


def _size(size: Any, kernel: str, where: str) -> int:
    text = str(size) if type(size) is int else size
    if not isinstance(text, str):
        raise UsageError(f"{where}: size: {shown(size)} is not a size", 'give bytes, such as 8 or "1M"')
    try:
        message_size = parse_bytes(text)
    except UsageError as error:
        raise UsageError(f"{where}: size: {short(error.message)}", error.hint) from None
    if not KERNELS[kernel].accepts_size(message_size):
        raise UsageError(f"{where}: size: {kernel} has no meaning at size {message_size}", "give another size")
    return message_size


def _tolerance(entry: Mapping[str, Any], key: str, threshold: Threshold) -> float | None:
    """Return how far from the value, in its unit; None where there is no limit on that side."""
    if key not in entry:
        return None
    text, where = entry[key], f"{threshold.source}: {key}"
    if isinstance(text, str) and (match := _PERCENT.fullmatch(text.strip())):
        share = float(match[1]) / 100
        if key == "lower" and share > 1:
            raise UsageError(f"{where}: {shown(text)} is more than the value", "give at most 100%")
        return share * threshold.value
    return _figure(text, threshold.quantity, where, 'or a share, such as "10%"')


def _figure(text: Any, quantity: str, where: str, otherwise: str = "") -> float:
    """A figure with its unit, in seconds or bytes/s; not negative."""
    units = UNITS[quantity]
    example = '"12.2 GB/s"' if quantity == "bandwidth" else '"1.9 us"'
    hint = " ".join(filter(None, (f"write it as {example}", otherwise)))
    if isinstance(text, str) and text.strip().startswith("-"):
        raise UsageError(f"{where}: {shown(text)} is negative", hint)
    match = _FIGURE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise UsageError(f"{where}: {shown(text)} is not a figure with a unit", hint)
    number, unit = match.groups()
    if unit not in units:
        raise UsageError(f"{where}: '{short(unit)}' is not a unit of a {quantity}", f"use {alternatives(units)}")
    return float(number) * units[unit]
