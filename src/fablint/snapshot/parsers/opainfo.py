"""Parser of `opainfo`: the ports of Omni-Path adapters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_HEAD = re.compile(r"(hfi\d{1,3}_\d{1,3}):(\d{1,3})\b")
_STATE = re.compile(r"\s*PortState:\s*(\S.*)")
_PAIR = re.compile(r"\s*(LinkSpeed|LinkWidth)\s+Act:\s*(\d{1,4}(?:\.\d)?)(?:Gb)?\s+En:\s*(\S+)")
_LANES = re.compile(r"\s*LinkWidthDnGrd\s+ActTx:\s*(\d{1,4})\s+Rx:\s*(\d{1,4})\s+En:\s*(\S+)")
_QUALITY = re.compile(r"\s*Link Quality:\s*(\d)\b(?:\s*\((\w+)\))?")
_NUMBER = re.compile(r"\d{1,4}(?:\.\d)?")
_WORDS = {"LinkSpeed": "{} Gb/s of {}", "LinkWidth": "width {} of {}"}


class OmniPathPort(NamedTuple):
    """A port of an Omni-Path adapter."""

    state: str  # `Active`; '' if it is not reported
    below: tuple[str, ...]  # properties whose active value is below the enabled value: `25 Gb/s of 100`
    quality: int | None  # of the link, 0 to 5
    quality_word: str  # `Excellent`
    has_lanes: bool  # the numbers of its lanes are reported


def omnipath_ports(text: str) -> Mapping[str, OmniPathPort]:
    """Return the ports by name, such as `hfi1_0/1`."""
    result: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if head := _HEAD.match(line):
            lines = result.setdefault(f"{head[1]}/{head[2]}", [])
        lines.append(line)
    return {name: _port(of_port) for name, of_port in result.items()}


def _port(lines: list[str]) -> OmniPathPort:
    state = next((match[1].strip() for match in map(_STATE.match, lines) if match), "")
    quality = next((match for match in map(_QUALITY.match, lines) if match), None)
    number, word = (int(quality[1]), quality[2] or "") if quality else (None, "")
    return OmniPathPort(state, tuple(_below(lines)), number, word, any(map(_LANES.match, lines)))


def _below(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if (pair := _PAIR.match(line)) and float(pair[2]) < (most := _most(pair[3])):
            yield _WORDS[pair[1]].format(pair[2], f"{most:g}")
        if lanes := _LANES.match(line):
            most = _most(lanes[3])
            yield from (
                f"{side} lanes {n} of {most:g}"
                for side, n in zip(("tx", "rx"), (lanes[1], lanes[2]), strict=True)
                if int(n) < most
            )


def _most(enabled: str) -> float:
    """Return the largest number in a list such as `3,4` or `12.5,25Gb`."""
    return max(map(float, _NUMBER.findall(enabled)), default=0)
