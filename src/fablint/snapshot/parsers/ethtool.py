"""Parsers of ethtool: links, error correction, flow control, optics, settings. Similar hosts have the same texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

_TEXTS = 4096  # texts of which a parser remembers the facts
_ACTIVE = re.compile(r"^Active FEC encodings?:[ \t]*(\S.*)$", re.MULTILINE)
_LOST = re.compile(r"^[ \t]*uncorrectable_blocks:[ \t]*(\d{1,30})$", re.MULTILINE)
_BIN = re.compile(r"^[ \t]*fec_(?:symbols?|bits?)_err_(\d{1,3})(?:_to_\d{1,3})?:[ \t]*(\d{1,30})\b", re.MULTILINE)
_PAUSE = re.compile(r"^(RX|TX):[ \t]*(on|off)$", re.MULTILINE)
_FEATURE = re.compile(r"^\s*([\w-]{1,60}): (on|off)\b", re.MULTILINE)
_OFF = re.compile(r"^\s*([\w-]{1,60}): off (\[(?:fixed|requested on)\])", re.MULTILINE)
_SETTING = re.compile(r"^([A-Za-z][\w -]{0,40}):\s+(\d{1,12}|on|off)\s*$", re.MULTILINE)
_ADAPTIVE = re.compile(r"^Adaptive RX: (on|off|n/a)\s+TX: (on|off|n/a)", re.MULTILINE)
_CURRENT = "Current hardware settings"
_MODES = re.compile(
    r"^\s*(Supported|Advertised|Link partner advertised) link modes:((?:\s+\d{1,7}base\S{1,20})*)", re.MULTILINE
)
_MODE = re.compile(r"(\d{1,7})base")
_SPEED = re.compile(r"^\s*Speed: (\d{1,7})Mb/s", re.MULTILINE)


class LinkSpeeds(NamedTuple):
    """Speeds of both ends of a cable in Mbit/s."""

    own: frozenset[int]  # supported by the card
    offered: frozenset[int]  # advertised by the host; a subset if restricted by a setting
    other: frozenset[int]  # advertised by the other end; empty without auto-negotiation
    now: int | None


@lru_cache(maxsize=_TEXTS)
def link_speeds(text: str) -> LinkSpeeds:
    """Parse the speeds of both ends in the output of `ethtool NIC`."""
    speeds = {title: frozenset(map(int, _MODE.findall(modes))) for title, modes in _MODES.findall(text)}
    now = _SPEED.search(text)
    titles = ("Supported", "Advertised", "Link partner advertised")
    supported, offered, other = (speeds.get(title, frozenset()) for title in titles)
    return LinkSpeeds(supported, offered, other, int(now[1]) if now else None)


def active_fec(text: str) -> str | None:
    """Return the active encoding in `ethtool --show-fec`; None if the output cannot be parsed."""
    match = _ACTIVE.search(text)
    return match[1].strip() if match else None


def uncorrectable_blocks(text: str) -> int | None:
    """Return the number of uncorrectable blocks in `ethtool -I --show-fec`; None if they are not counted."""
    match = _LOST.search(text)
    return int(match[1]) if match else None


def corrected_histogram(text: str) -> Mapping[int, int]:
    """Return the number of blocks by their symbol errors, the least of each bin, in `ethtool -I --show-fec`."""
    return {int(errors): int(count) for errors, count in _BIN.findall(text)}


def flow_control(text: str) -> str | None:
    """Return flow control in `ethtool -a`, `rx on, tx off`; None if the output cannot be parsed."""
    words = dict(_PAUSE.findall(text))
    return f"rx {words['RX']}, tx {words['TX']}" if len(words) == len(("RX", "TX")) else None


def module_flags(text: str) -> Iterator[tuple[str, str]]:
    """Yield the flags in `ethtool -m` with their state: `Laser rx power low alarm`, `Off`, but no thresholds."""
    for line in text.splitlines():
        name, _, state = line.rpartition(":")
        if ("alarm" in name or "warning" in name) and state.strip() in ("On", "Off"):
            yield " ".join(name.split()), state.strip()


_RECEIVED = re.compile(
    r"^[ \t]*(?:Receiver signal (?:average optical power|OMA)|Rcvr signal avg optical power)[ \t]*"
    r"(?:\(Chan(?:nel)? \d{1,2}\))?[ \t]*: [\d.]{1,12} mW / (-?[\d.]{1,12}) dBm",
    re.MULTILINE,
)
_DARK_DBM = -30.0  # no light


def received_power(text: str) -> float | None:
    """Return the received optical power of the weakest lane with light in `ethtool -m`, in dBm; None if unknown."""
    lanes = [float(power) for power in _RECEIVED.findall(text)]
    return min((power for power in lanes if power > _DARK_DBM), default=None)


@lru_cache(maxsize=_TEXTS)
def offloads(text: str) -> Mapping[str, str]:
    """Return the features in `ethtool -k` with their state, `on` or `off`."""
    return dict(_FEATURE.findall(text))


@lru_cache(maxsize=_TEXTS)
def reasons_off(text: str) -> Mapping[str, str]:
    """Return the features in `ethtool -k` that are off for a reason: `[fixed]`, `[requested on]`."""
    return dict(_OFF.findall(text))


@lru_cache(maxsize=_TEXTS)
def ring_sizes(text: str) -> Mapping[str, str]:
    """Return the current sizes in `ethtool -g`; none if it cannot be parsed."""
    _, result, current = text.partition(_CURRENT)
    return dict(_SETTING.findall(current)) if result else {}


@lru_cache(maxsize=_TEXTS)
def coalescing(text: str) -> Mapping[str, str]:
    """Return the settings in `ethtool -c`; those of a direction with adaptive coalescing are `adaptive`."""
    adaptive = _ADAPTIVE.search(text)
    words = dict(_SETTING.findall(text))
    if adaptive is None:
        return words
    moving = tuple(prefix for prefix, state in (("rx-", adaptive[1]), ("tx-", adaptive[2])) if state == "on")
    fixed = {name: "adaptive" if name.startswith(moving) else value for name, value in words.items()}
    return {"adaptive-rx": adaptive[1], "adaptive-tx": adaptive[2], **fixed}


def driver_facts(text: str) -> Mapping[str, str]:
    """Return driver, version and firmware in `ethtool -i` by their names."""
    return {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
