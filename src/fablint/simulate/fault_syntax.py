"""Syntax of faults: `host:h0012:tx:-20%`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, get_args

from fablint.errors import UsageError
from fablint.model import ComponentRef, Direction
from fablint.simulate.faults import Fault

COMPONENTS = ("host", "nic", "link", "cable", "switch")
RETRY_S = 10e-6
FORM = "COMPONENT:NAME[:tx|:rx]:EFFECT[,EFFECT], as in host:h12:tx:-20% or link:s0>s1:+2us,flap30%"

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3}
_RANDOM = re.compile(r"random:(\d+)")

# Pattern of an effect -> fields of a fault.
_EFFECTS: tuple[tuple[re.Pattern[str], Callable[..., dict[str, Any]]], ...] = (
    (re.compile(rf"-{_NUMBER}%"), lambda loss: {"bandwidth_factor": 1 - float(loss) / 100}),
    (re.compile(rf"\+{_NUMBER}(ns|us|ms)"), lambda more, unit: {"added_latency_s": float(more) / _PER_SECOND[unit]}),
    (re.compile(rf"duplex-{_NUMBER}%"), lambda loss: {"duplex_factor": 1 - float(loss) / 100}),
    (re.compile(rf"retry{_NUMBER}%"), lambda share: {"retry_share": float(share) / 100, "retry_s": RETRY_S}),
    (re.compile(rf"flap{_NUMBER}%"), lambda share: {"flapping": float(share) / 100}),
    (re.compile(rf"noisy{_NUMBER}"), lambda times: {"scatter": float(times)}),
    (re.compile(r"on=(.+)"), lambda switch: {"moved_to": switch}),
)


def random_count(text: str) -> int | None:
    """Number in `random:5`; None for other texts."""
    match = _RANDOM.fullmatch(text)
    return int(match[1]) if match else None


def parse_fault(text: str) -> Fault:
    """Fault that a text describes.

    EFFECT is `-20%` (less bandwidth), `+2us` (more latency), `duplex-20%` (less while both directions are in use),
    `retry2%` (share of messages that arrive 10 us later), `flap30%` (faulty in that share of the rounds, with another
    EFFECT), `noisy3` (factor of the scatter), `on=SWITCH` (the host is connected to another switch).

    Raises
    ------
    UsageError
        The text does not describe a fault.
    """
    words = text.split(":")
    component, effects = words[0], words[-1]
    direction = words[2] if len(words) == 4 else "both"
    if component not in COMPONENTS or not 3 <= len(words) <= 4 or not words[1] or direction not in get_args(Direction):
        raise UsageError(f"fault '{text}'", f"write {FORM}, or random:5")
    fields: dict[str, Any] = {}
    for word in effects.split(","):
        fields |= _fields(text, word)
    if direction != "both" and component not in ("host", "nic"):
        raise UsageError(f"fault '{text}': a {component} has no {direction} direction", "give a host, NIC or link a>b")
    if "flapping" in fields and len(fields) == 1:
        raise UsageError(f"fault '{text}': flap needs another effect", "write -20%,flap30%")
    if "moved_to" in fields and component != "host":
        raise UsageError(f"fault '{text}': a {component} cannot be connected to another switch", "give a host")
    return Fault(_component(component, words[1]), direction, **fields)  # type: ignore[arg-type]


def _component(kind: str, name: str) -> ComponentRef:
    """Return the component that a user named: `h01`, `h01/hsn1`, `s0>s1`, `s0=s1`."""
    if kind == "nic":
        return ComponentRef.device("nic", name)
    separator = {"link": ">", "cable": "="}.get(kind)
    return ComponentRef.of(kind, *(name.split(separator) if separator else [name]))  # type: ignore[arg-type]


def _fields(text: str, word: str) -> dict[str, Any]:
    for pattern, fields in _EFFECTS:
        if match := pattern.fullmatch(word):
            field_values = fields(*match.groups())
            _check(text, word, field_values)
            return field_values
    raise UsageError(f"fault '{text}': '{word}'", "write -20%, +2us, duplex-20%, retry2%, flap30%, noisy3 or on=SWITCH")


def _check(text: str, word: str, field_values: dict[str, Any]) -> None:
    for name, value in field_values.items():
        low = name in ("bandwidth_factor", "duplex_factor") and not 0 < value <= 1
        high = name in ("retry_share", "flapping") and not 0 < value <= 1
        if low or high:
            raise UsageError(f"fault '{text}': '{word}'", "a percentage lies between 0 and 100")
        if name == "scatter" and value < 1:
            raise UsageError(f"fault '{text}': '{word}'", "give the factor of the scatter, 1 or above")
