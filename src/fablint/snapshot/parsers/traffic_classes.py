"""Parsers of the QoS settings of NICs: `dcb -j`, `mlnx_qos`, and a file of the driver of mlx5."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from fablint.snapshot.parsers.documents import dicts, documents

_TRUST = re.compile(r"^Priority trust (?:state|mode): *(\w{1,20})", re.MULTILINE)
_ENABLED = re.compile(r"^PFC configuration:\s+priority[ \t\d]+\n\s+enabled((?:[ \t]+[01]){8})", re.MULTILINE)
_CLASS = re.compile(
    r"^tc: (\d{1,2}) ratelimit: ([^,\n]{1,40}), tsa: ([^\n]{1,60})\n\s+priority:([ \t\d]*)$", re.MULTILINE
)
_TCLASS = re.compile(r"tclass *= *(\d{1,3})")


@lru_cache(maxsize=4096)  # similar hosts say the same
def qos_settings(mlnx_qos: str, *dcb: str) -> Mapping[str, str]:
    """Return the settings in outputs by name; the kernel's report (dcb) has precedence."""
    result = dict(_of_mlnx_qos(mlnx_qos))
    for text in dcb:
        for document in [one for value in documents(text) for one in dicts(value)][:1]:
            result |= dict(_of_dcb(document))
    return result


def _of_dcb(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings in an output of `dcb -j`, without counters and capabilities."""
    enabled = document.get("prio_pfc")
    if isinstance(enabled, list) and len(enabled) == 8:
        yield "PFC", priority_words([str(number) for number, state in enumerate(enabled) if state in (True, 1, "on")])
    for key, name in (("prio_tc", "traffic classes"), ("tc_tsa", "scheduling"), ("tc_bw", "bandwidth shares")):
        if _is_flat(document.get(key)):
            yield name, " ".join(map(str, document[key]))
    order = document.get("order")
    if _is_flat(order):
        yield "trust", " ".join(map(str, document["order"])) or "nothing"
    for key, name in (("default_prio", "default priority"), ("dscp_prio", "priorities of DSCP")):
        if isinstance(document.get(key), list):
            pairs = [one if isinstance(one, list) else [one] for one in document[key]]
            yield name, " ".join(sorted(":".join(map(str, pair)) for pair in pairs)) or "none"


def _is_flat(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str | int) for one in value)


def _of_mlnx_qos(text: str) -> Iterator[tuple[str, str]]:
    if match := _TRUST.search(text):
        yield "trust", match[1]
    if match := _ENABLED.search(text):
        yield "PFC", priority_words([str(number) for number, state in enumerate(match[1].split()) if state == "1"])
    for number, limit, scheduling, priorities in _CLASS.findall(text):
        words = f"{scheduling.strip()}, rate {limit.strip()}, priority {' '.join(priorities.split()) or 'none'}"
        yield f"traffic class {number}", words


def priority_words(numbers: list[str]) -> str:
    """Format priorities: `priority 3`, `priorities 3 4`, `off`."""
    if not numbers:
        return "off"
    return f"{'priority' if len(numbers) == 1 else 'priorities'} {' '.join(numbers)}"


def forced_class(text: str) -> str:
    """Return the traffic class that the driver forces on all packets; '' if programs choose."""
    match = _TCLASS.search(text)
    return match[1] if match else ""
