"""Checks of NIC settings: offloads, rings, interrupt coalescing; and of the pause frames that NICs send."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from statistics import median
from typing import ClassVar, NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import Check
from fablint.preflight.checks.items import Items, ItemsCheck
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.checks.outputs import TIMED_OUT, with_reasons, without_answer
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot import Output
from fablint.text.sanitise import shortened

_FEATURE = re.compile(r"^\s*([\w-]{1,60}): (on|off)\b", re.MULTILINE)
_OFF = re.compile(r"^\s*([\w-]{1,60}): off (\[(?:fixed|requested on)\])", re.MULTILINE)
_NEEDED = ("rx-checksumming", "tx-checksumming", "tcp-segmentation-offload", "generic-receive-offload")
_SLOW_US = 100  # delay of an interrupt; defaults of drivers are 3 to 60
_SETTING = re.compile(r"^([A-Za-z][\w -]{0,40}):\s+(\d{1,12}|on|off)\s*$", re.MULTILINE)
_ADAPTIVE = re.compile(r"^Adaptive RX: (on|off|n/a)\s+TX: (on|off|n/a)", re.MULTILINE)
_CURRENT = "Current hardware settings"
_COUNTER = re.compile(r"^\s*([\w. -]{1,80}): (\d{1,20})\s*$", re.MULTILINE)
_PAUSE = re.compile("pause|pfc|xoff", re.IGNORECASE)


class _EthtoolItems(ItemsCheck):
    """Settings of every NIC of the fabric, as ethtool prints them."""

    severity = Severity.WARN
    component = "config"
    absent = "ethtool does not report it"
    command: ClassVar[str]  # the collector's name for it

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        reasons = {host.name: self._why_not(host) for host in fleet.hosts}
        return with_reasons(super().judge(fleet), self.absent, reasons)

    def items(self, host: Host) -> Mapping[str, Items]:
        said = {nic.name: host.command(f"{self.command}/{nic.name}") for nic in host.interfaces}
        found = {nic: self.settings(one.text) for nic, one in said.items() if one.status == 0}
        return {nic: settings for nic, settings in found.items() if settings}

    def _why_not(self, host: Host) -> str:
        """Return why a host has no settings."""
        said = [host.command(f"{self.command}/{nic.name}") for nic in host.interfaces]
        return f"ethtool: {without_answer(said[0])}" if said else ABSENT

    @staticmethod
    def settings(text: str) -> Items:
        """Return the settings in an output; none if it cannot be parsed."""
        raise NotImplementedError


class Offloads(_EthtoolItems):
    id = "net.offload"
    what = "offloads of every NIC of the fabric"
    source = "ethtool -k NIC"
    rule = f"the same as on most similar hosts; {', '.join(_NEEDED)} on, where the driver has them"
    remedy = "use the same setting on all hosts (ethtool -K); without offloads TCP is slower by several times"
    command = "ethtool-k"

    _PARTS = (  # as ethtool prints them below the feature that sets all of them
        ("tx-checksum-", "tx-checksumming"),
        ("tx-scatter-gather", "scatter-gather"),
        ("tx-tcp", "tcp-segmentation-offload"),
    )

    @staticmethod
    @lru_cache(maxsize=4096)
    def settings(text: str) -> Items:
        return dict(_FEATURE.findall(text))

    def causes(self, host: Host, group: str, name: str) -> Iterable[str]:
        """Return the parent feature; for a feature that is off although requested, the features that cause it."""
        if self._why_off(host, group).get(name) == "[requested on]":
            return self._items[id(host)][group].keys() - self._why_off(host, group).keys()
        return [above for part, above in self._PARTS if name.startswith(part)]

    def poor(self, host: Host, group: str) -> Iterable[str]:
        """Return the needed offloads that were switched off, and are not off for a reason of the driver."""
        features, why = self._items[id(host)][group], self._why_off(host, group)
        return [name for name in _NEEDED if features.get(name) == "off" and name not in why]

    def _why_off(self, host: Host, nic: str) -> Mapping[str, str]:
        return dict(_OFF.findall(host.command(f"{self.command}/{nic}").text))


class Rings(_EthtoolItems):
    id = "net.ring"
    what = "the ring sizes of every NIC of the fabric"
    source = "ethtool -g NIC, current hardware settings"
    rule = "the same as on most similar hosts"
    remedy = "use the same setting on all hosts (ethtool -G); short rings lose packets of bursts"
    command = "ethtool-g"

    @staticmethod
    @lru_cache(maxsize=4096)
    def settings(text: str) -> Items:
        _, found, current = text.partition(_CURRENT)
        return dict(_SETTING.findall(current)) if found else {}


class Coalescing(_EthtoolItems):
    id = "net.coalesce"
    what = "the interrupt coalescing of every NIC of the fabric"
    source = "ethtool -c NIC"
    rule = (
        f"the same as on most similar hosts, and below {_SLOW_US} us; times and numbers of adaptive coalescing are not "
        "compared"
    )
    remedy = "use the same setting on all hosts (ethtool -C); long waits are added to every latency of TCP"
    command = "ethtool-c"

    @staticmethod
    @lru_cache(maxsize=4096)
    def settings(text: str) -> Items:
        """Return the settings; those of a direction with adaptive coalescing are replaced by `adaptive`."""
        adaptive = _ADAPTIVE.search(text)
        found = dict(_SETTING.findall(text))
        if adaptive is None:
            return found
        moving = tuple(prefix for prefix, state in (("rx-", adaptive[1]), ("tx-", adaptive[2])) if state == "on")
        fixed = {name: "adaptive" if name.startswith(moving) else value for name, value in found.items()}
        return {"adaptive-rx": adaptive[1], "adaptive-tx": adaptive[2], **fixed}

    def causes(self, host: Host, group: str, name: str) -> Iterable[str]:
        """Return the adaptive mode of the direction, since times and numbers follow from it."""
        return [f"adaptive-{name[:2]}"] if name.startswith(("rx-", "tx-")) else []

    def poor(self, host: Host, group: str) -> Iterable[str]:
        times = {name: self._items[id(host)][group].get(name, "") for name in ("rx-usecs", "tx-usecs")}
        return [name for name, value in times.items() if value.isdecimal() and int(value) >= _SLOW_US]


class _Pauses(NamedTuple):
    """Growth of counters of a NIC between two readings."""

    sent: int
    received: int
    storms: int


class PauseFrames(Check):
    id = "net.pause.frames"
    what = "pause frames that every NIC of the fabric sends: flow control (802.3x) and priority flow control (PFC)"
    source = "ethtool -S NIC, twice"
    rule = (
        "no pause storm; within 4 s no 400 pause frames sent or received if that is ten times as many as on similar "
        "hosts; never 4,000 sent"
    )
    severity = Severity.WARN
    component = "nic"
    remedy = "the host receives packets too slowly: check pcie.width, pcie.requests, host.irq and its load"

    _MANY, _TIMES_OTHERS, _ALL = 400, 10, 4000

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[tuple[str, str], list[tuple[Host, _Pauses]]] = defaultdict(list)
        for host in fleet.hosts:
            if not host.interfaces:
                yield self.skip(host.name, "", ABSENT)
            for nic in host.interfaces:
                first, last = (host.command(f"{name}/{nic.name}") for name in ("ethtool-S", "ethtool-S-later"))
                grown = _pauses(first.text, last.text) if first.status == last.status == 0 else None
                if grown is not None:
                    like[host.kind, nic.name].append((host, grown))
                else:
                    yield self._without(host.name, nic.name, last if first.status == 0 else first)
        for (_, target), found in like.items():
            usual = _Pauses(*(round(median(counts)) for counts in zip(*(one for _, one in found), strict=True)))
            for host, grown in found:
                yield self._judged(host.name, target, grown, usual, len(found))

    def _without(self, host: str, nic: str, said: Output) -> Result:
        if said.error == TIMED_OUT:
            return self.error(host, nic, f"ethtool: {TIMED_OUT}")
        return self.skip(host, nic, f"ethtool: {shortened(said.error) or 'its driver does not count pauses'}")

    def _judged(self, host: str, nic: str, grown: _Pauses, usual: _Pauses, count: int) -> Result:
        if grown.storms:
            return self.failure(host, nic, f"{grown.storms} pause storms in some seconds", grown.storms, 0)
        if self._is_more(grown.sent, usual.sent, count):
            message = f"sent {grown.sent:,} pause frames in some seconds, median of {count} hosts {usual.sent:,}"
            return self.failure(host, nic, message, grown.sent, usual.sent)
        if grown.sent >= self._ALL:
            message = f"sent more than {self._ALL:,} pause frames in some seconds"
            return self.failure(
                host, nic, message + (", as NICs of similar hosts did" if count > 1 else ""), grown.sent
            )
        if self._is_more(grown.received, usual.received, count):
            message = (
                f"paused by its switch {grown.received:,} times in some seconds, median of {count} hosts "
                f"{usual.received:,}: a receiver is too slow, or a path is congested"
            )
            return self.failure(host, nic, message, grown.received, usual.received)
        message = f"paused {grown.received:,} times in some seconds" if grown.received else ""
        return self.ok(host, nic, message, grown.sent)

    def _is_more(self, own: int, usual: int, count: int) -> bool:
        return own >= self._MANY and count > 2 and own > self._TIMES_OTHERS * usual


def _pauses(first: str, last: str) -> _Pauses | None:
    """Return the growth of the pause counters; None if the readings have no such counter."""
    before, after = (dict(_COUNTER.findall(text)) for text in (first, last))
    sums = {"sent": 0, "received": 0, "storms": 0}
    counters = [name for name in before if name in after and _is_count(name)]
    for name in counters:
        kind = "storms" if "storm" in name else "sent" if "tx" in name.lower() else "received"
        sums[kind] += max(int(after[name]) - int(before[name]), 0)
    return _Pauses(**sums) if counters else None


def _is_count(name: str) -> bool:
    """Tell whether a counter counts pause frames, not their duration in microseconds or transitions."""
    return _PAUSE.search(name) is not None and "duration" not in name and "transition" not in name
