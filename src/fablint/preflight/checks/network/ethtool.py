"""Checks of ethtool's output for the fabric's network interfaces: error correction, flow control, optics."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import LEAST_OTHERS, Check
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

_ACTIVE = re.compile(r"^Active FEC encodings?:[ \t]*(\S.*)$", re.MULTILINE)
_LOST = re.compile(r"^[ \t]*uncorrectable_blocks:[ \t]*(\d{1,30})$", re.MULTILINE)
_PAUSE = re.compile(r"^(RX|TX):[ \t]*(on|off)$", re.MULTILINE)
_MAX_FLAGS = 3  # in a message


class NicOutput(NamedTuple):
    """Output of ethtool for a NIC, and the value in it that is compared."""

    host: Host
    nic: str
    text: str
    value: str


class EthtoolCheck(Check):
    """Base of checks of ethtool's output for each NIC with a link."""

    command: ClassVar[str]  # the collector's name for it

    @abstractmethod
    def value(self, text: str) -> str | None:
        """Return the value that is compared between hosts; None if the output cannot be parsed."""

    @abstractmethod
    def compare(self, nic: str, like: list[NicOutput]) -> Iterator[Result]:
        """Yield the results for the NICs of this name on similar hosts."""

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        seen: dict[tuple[str, ...], list[NicOutput]] = defaultdict(list)
        for host in fleet.hosts:
            if not host.interfaces:
                yield self.skip(host.name, "", ABSENT)
            for nic in host.interfaces:
                output = host.command(f"{self.command}/{nic.name}")
                value = self.value(output.text)
                if nic.state != "up":
                    yield self.skip(host.name, nic.name, "the link is down")
                elif output.status != 0:
                    yield self.skip(host.name, nic.name, f"ethtool: {output.error or 'failed'}")
                elif value is None:
                    yield self.error(host.name, nic.name, "the output of ethtool cannot be parsed")
                else:
                    seen[nic.name, *host.like(nic.name)].append(NicOutput(host, nic.name, output.text, value))
        for (nic_name, *_), like in seen.items():
            yield from self.compare(nic_name, like)


class LinkFec(EthtoolCheck):
    id = "net.link.fec"
    what = "forward error correction of every NIC of the fabric"
    source = "ethtool -I --show-fec NIC"
    rule = "the same as on most similar hosts; at level full: no uncorrectable block"
    severity = Severity.FAIL
    component = "cable"
    remedy = "clean or replace cable and transceivers; set the same encoding at both ends"
    command = "ethtool-fec"

    def value(self, text: str) -> str | None:
        match = _ACTIVE.search(text)
        return match[1].strip() if match else None

    def compare(self, nic: str, like: list[NicOutput]) -> Iterator[Result]:
        agreed = Agreement.of([one.value for one in like])
        usual, count = agreed.usual, agreed.count
        for one in like:
            lost = _lost(one)
            if lost:
                message = f"{lost} uncorrectable blocks in some seconds"
                yield self.failure(one.host.name, nic, message, lost, 0)
            elif agreed.is_divided:
                yield self.warning(one.host.name, nic, agreed.kinds("FEC {}"), one.value)
            elif usual is not None and one.value != usual:
                message = f"FEC {one.value}, {count} others {usual}"
                yield self.warning(one.host.name, nic, message, one.value, usual)
            else:
                yield self.ok(one.host.name, nic, value=one.value)


def _lost(seen: NicOutput) -> int:
    """Return the number of uncorrectable blocks between two readings."""
    first = _LOST.search(seen.text)
    last = _LOST.search(seen.host.command(f"{LinkFec.command}-later/{seen.nic}").text)
    return max(int(last[1]) - int(first[1]), 0) if first and last else 0


class LinkPause(EthtoolCheck):
    id = "net.link.pause"
    what = "flow control of every NIC of the fabric"
    source = "ethtool -a NIC"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "use the same setting on all hosts (ethtool -A)"
    command = "ethtool-a"

    def value(self, text: str) -> str | None:
        found = dict(_PAUSE.findall(text))
        return f"rx {found['RX']}, tx {found['TX']}" if len(found) == len(("RX", "TX")) else None

    def compare(self, nic: str, like: list[NicOutput]) -> Iterator[Result]:
        agreed = Agreement.of([one.value for one in like])
        usual, count = agreed.usual, agreed.count
        for one in like:
            if agreed.is_divided:
                yield self.warning(one.host.name, nic, agreed.kinds("pause {}"), one.value)
            elif usual is None:
                yield self.skip(one.host.name, nic, f"pause {one.value}; no majority to compare with")
            elif one.value != usual:
                yield self.failure(one.host.name, nic, f"pause {one.value}; {count} others {usual}", one.value, usual)
            else:
                yield self.ok(one.host.name, nic, value=one.value)


class LinkOptics(EthtoolCheck):
    id = "net.link.optics"
    what = "alarms and warnings of transceivers"
    source = "ethtool -m NIC"
    rule = "none, except those that most similar hosts have as well"
    severity = Severity.WARN
    component = "cable"
    root = True
    remedy = "clean the connectors, replace the transceiver"
    command = "ethtool-m"

    def value(self, text: str) -> str | None:
        """Return the flags that are on, one per line. Copper cables have no flags."""
        if not text.strip():
            return None
        return "\n".join(name for name, state in _flags(text) if state == "On")

    def compare(self, nic: str, like: list[NicOutput]) -> Iterator[Result]:
        having = Counter(flag for one in like for flag in one.value.splitlines())
        usual = {flag for flag, count in having.items() if count >= LEAST_OTHERS and 2 * count > len(like)}
        for one in like:
            found = [flag for flag in one.value.splitlines() if flag not in usual]
            if found:
                more = f" and {len(found) - _MAX_FLAGS} more" if len(found) > _MAX_FLAGS else ""
                yield self.failure(one.host.name, nic, "; ".join(found[:_MAX_FLAGS]) + more, len(found), 0)
            elif not any(_flags(one.text)):
                yield self.skip(one.host.name, nic, "the module does not report alarms")
            else:
                yield self.ok(one.host.name, nic)


def _flags(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and state of each flag, such as `Laser rx power low alarm : Off`, but no thresholds."""
    for line in text.splitlines():
        name, _, state = line.rpartition(":")
        if ("alarm" in name or "warning" in name) and state.strip() in ("On", "Off"):
            yield " ".join(name.split()), state.strip()
