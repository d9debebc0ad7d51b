"""Checks of the results of vendors' diagnostic tools on each host."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar

from fablint.model import ComponentKind
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import Check, HostCheck
from fablint.preflight.checks.infiniband.ports import is_active, is_software, make, rate_gbit
from fablint.preflight.checks.outputs import instead_of
from fablint.preflight.checks.slingshot.cxi import NO_NIC, nominal_gbit
from fablint.preflight.class_values import CLEAR_OTHERS
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import INFINIBAND, Host
from fablint.snapshot.parsers.documents import dicts, documents
from fablint.text.sanitise import shortened

# ------------------------------------------------------------------------------------------------ cxi_healthcheck

HEALTH_CHECKS: tuple[str, ...] = (
    "pci",
    "mac",
    "link",
    "link_properties",
    "link_flap",
    "dmesg",
    "service",
    "run_idle",
    "trs_leak",
)
HEALTH_CHECKS += ("ping", "codeword_rate", "pci_error", "fw_version")
_RESULT = re.compile(r"Check:\s*(\w{1,60})\s+Result:\s*(Pass|Fail|Skip)\s*$")
_WARNING = re.compile(r"(?:\*{3}\s*Warning|ACTION):\s*(\S.*)")


@dataclass
class _Summary:
    """Results and warnings of cxi_healthcheck for a NIC."""

    results: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class CxiHealth(HostCheck):
    id = "tool.cxi.health"
    what = "the results of cxi_healthcheck"
    source = "cxi_healthcheck"
    rule = "none of its checks fails, and each has a result"
    severity = Severity.FAIL
    component = "nic"
    root = True
    remedy = "run cxi_healthcheck -v on the host, and follow its recommendations"
    absent = NO_NIC

    def look(self, host: Host) -> Iterable[Result]:
        if not host.cxi:
            return
        output = host.command("cxi_healthcheck")
        if instead := instead_of(self, host.name, "", output):
            yield instead
            return
        found = _summaries(output.text)
        for device in {**dict.fromkeys(host.cxi), **found} if "" not in found else found:
            yield self._judged(host.name, device, found.get(device, _Summary()))

    def _judged(self, host: str, device: str, said: _Summary) -> Result:
        failed = [name for name, result in said.results.items() if result == "Fail"]
        missing = [name for name in HEALTH_CHECKS if f"{name}_check" not in said.results]
        quoted = "".join(f"; {warning}" for warning in said.warnings[:2])
        if failed:
            return self.failure(host, device, f"{', '.join(failed)} failed{quoted}", len(failed), 0)
        if missing:
            none = "no summary" if len(missing) == len(HEALTH_CHECKS) else f"no result of {', '.join(missing)}"
            return self.error(host, device, f"{none}: the output of cxi_healthcheck is incomplete")
        if quoted:
            return self.warning(host, device, quoted.removeprefix("; "))
        return self.ok(host, device)


def _summaries(text: str) -> Mapping[str, _Summary]:
    """Return results and warnings by device; '' for a device without a name."""
    found: dict[str, _Summary] = {}
    device = ""
    for line in map(str.strip, text.splitlines()):
        if re.fullmatch(r"cxi\d{1,3}", line):
            device = line
            found.setdefault(device, _Summary())
        elif match := _RESULT.match(line):
            found.setdefault(device, _Summary()).results[match[1]] = match[2]
        elif match := _WARNING.match(line):
            found.setdefault(device, _Summary()).warnings.append(shortened(match[1], 120))
    return found


# ------------------------------------------------------------------------------------------------ slingshot-diag


class SlingshotDiag(HostCheck):
    id = "tool.ss.diag"
    what = "the results of slingshot-diag"
    source = "slingshot-diag -i NIC"
    rule = "neither WARN nor ERROR, and exit status 0"
    severity = Severity.FAIL
    component = "nic"
    root = True
    remedy = "run slingshot-diag -v on the host, and follow its recommendations"
    absent = "no Slingshot NIC was examined"

    def look(self, host: Host) -> Iterable[Result]:
        for nic, said in sorted(host.snapshot.commands_like("slingshot-diag").items()):
            yield instead_of(self, host.name, nic, said) or self._judged(host, nic, said.text, said.status or 0)

    def _judged(self, host: Host, nic: str, text: str, status: int) -> Result:
        lines = [line.partition(":") for line in text.splitlines()]
        lines_of = {word: [shortened(rest) for head, _, rest in lines if head == word] for word in ("WARN", "ERROR")}
        words = "; ".join([*lines_of["ERROR"], *lines_of["WARN"]][:3])
        if "root" in words and not host.snapshot.root:
            return self.skip(host.name, nic, words)
        if lines_of["ERROR"] or status > 1:
            return self.failure(host.name, nic, words or f"exit status {status}")
        if lines_of["WARN"] or status:
            return self.warning(host.name, nic, words or f"exit status {status}")
        if not any(head.strip() == "Device" for head, _, _ in lines):
            return self.error(host.name, nic, "slingshot-diag describes no device")
        return self.ok(host.name, nic)


# ------------------------------------------------------------------------------------------------ loopback

_LEAST_SIMILAR = 3
_FIGURE = r"\d{1,9}(?:\.\d{1,9})?"
_Key = tuple[object, ...]


@dataclass(frozen=True)
class _Loop:
    """Loopback rate of a NIC."""

    host: str
    device: str
    gbit: float
    speed: float | None
    key: _Key | None  # equal for similar NICs


class _LoopbackRate(Check):
    """Base of checks of loopback rates, compared with the speed of the NIC and with similar NICs."""

    component: ClassVar[ComponentKind] = "nic"
    tool: ClassVar[str]  # run for each NIC
    row: ClassVar[re.Pattern[str]]  # row of its output with a group for Gb/s; the last row counts
    of_speed: ClassVar[float]  # minimum, relative to the speed
    of_median: ClassVar[float]  # minimum, relative to the median
    below_speed: ClassVar[Severity] = Severity.FAIL  # of a rate below `of_speed`
    absent: ClassVar[str]  # why a host has nothing to look at

    @abstractmethod
    def devices(self, host: Host) -> Sequence[str]:
        """Return the examined devices of a host."""

    @abstractmethod
    def speed(self, host: Host, device: str) -> float | None:
        """Return the nominal speed in Gb/s; None if unknown."""

    @abstractmethod
    def kind(self, host: Host, device: str) -> tuple[str, ...] | None:
        """Return the properties of similar NICs; None if a NIC is not compared."""

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        measured: list[_Loop] = []
        for host in fleet.hosts:
            devices = self.devices(host)
            if not devices:
                yield self.skip(host.name, "", self.absent)
            for device in devices:
                output = host.command(f"{self.tool}/{device}")
                rows = [float(match[1]) for match in map(self.row.match, output.text.splitlines()) if match]
                if rows:
                    speed, kind = self.speed(host, device), self.kind(host, device)
                    key = None if kind is None else (*host.like(device), speed, *kind)
                    measured.append(_Loop(host.name, device, rows[-1], speed, key))
                else:
                    why = f": {shortened(output.error)}" if output.error else ""
                    nothing = self.error(host.name, device, f"{self.tool} printed no bandwidth{why}")
                    yield instead_of(self, host.name, device, output) or nothing
        like: dict[_Key | None, list[float]] = defaultdict(list)
        for one in measured:
            like[one.key].append(one.gbit)
        peers: dict[_Key | None, list[float]] = {
            key: rates for key, rates in like.items() if key is not None and len(rates) >= _LEAST_SIMILAR
        }
        yield from (self._judged(one, peers.get(one.key, ())) for one in measured)

    def _judged(self, one: _Loop, peers: Sequence[float]) -> Result:
        """Return the result for a NIC; below the median of few NICs it is a warning."""
        floors: list[tuple[Severity, float, str]] = []
        if one.speed:
            floors.append((self.below_speed, self.of_speed * one.speed, f"{self.of_speed:.0%} of {one.speed:g}"))
        if peers:
            usual = median(peers)
            grade = Severity.FAIL if len(peers) > CLEAR_OTHERS else Severity.WARN
            floors.append((grade, self.of_median * usual, f"{self.of_median:.0%} of the median {usual:g}"))
        if not floors:
            return self.skip(one.host, one.device, f"{one.gbit:g} Gb/s, no speed or similar NIC to compare with")
        missed = [floor for floor in floors if one.gbit < floor[1]]
        if not missed:
            return self.ok(one.host, one.device, value=one.gbit, unit="Gb/s")
        severity, floor, words = max(missed, key=lambda floor: (floor[0] is Severity.FAIL, floor[1]))
        message = f"{one.gbit:g} Gb/s, below {words} Gb/s"
        if severity is Severity.FAIL:
            return self.failure(one.host, one.device, message, one.gbit, floor, "Gb/s")
        return self.warning(one.host, one.device, message, one.gbit, floor)


class CxiLoopbackRate(_LoopbackRate):
    id = "tool.cxi.loopback"
    what = "loopback bandwidth of every Slingshot NIC through its switch"
    source = "cxi_gpu_loopback_bw -d CXI"
    of_speed, of_median = 0.9, 0.95
    rule = f"at least {of_speed:.0%} of the NIC's speed, and {of_median:.0%} of the median of NICs with this speed"
    severity = Severity.FAIL
    remedy = "check pcie.width, pcie.speed, cxi.replay and the IOMMU of this host"
    tool = "cxi_gpu_loopback_bw"
    row = re.compile(rf"\s*\d{{1,15}}\s+\d{{1,15}}\s+({_FIGURE})\s+{_FIGURE}\s*$")
    absent = NO_NIC

    def devices(self, host: Host) -> Sequence[str]:
        return host.cxi

    def speed(self, host: Host, device: str) -> float | None:
        return nominal_gbit(host, device)

    def kind(self, host: Host, device: str) -> tuple[str, ...]:
        return ()


class IbLoopbackRate(_LoopbackRate):
    """Loopback within the NIC, whose rate depends on PCI Express as well; the speed of the port only warns."""

    id = "tool.ib.loopback"
    what = "loopback bandwidth of every InfiniBand and RoCE device"
    source = "ib_write_bw -d DEVICE --report_gbits -D 2, both ends on the host"
    of_speed, of_median = 0.5, 0.8
    rule = f"at least {of_median:.0%} of the median of this device on similar hosts; {of_speed:.0%} of its rate warns"
    severity = Severity.FAIL
    below_speed = Severity.WARN
    remedy = "check pcie.width, pcie.speed, host.iommu, host.acs, and other load of this host"
    tool = "ib_write_bw"
    row = re.compile(rf"\s*\d{{1,15}}\s+\d{{1,15}}\s+{_FIGURE}\s+({_FIGURE})\s+{_FIGURE}\s*$")
    absent = "no active InfiniBand or RoCE device"

    def devices(self, host: Host) -> Sequence[str]:
        active = dict.fromkeys(device for device, port in host.ports if is_active(host, device, port))
        return [one for one in active if (host.read(f"{INFINIBAND}/{one}/node_type") or "1: CA") == "1: CA"]

    def speed(self, host: Host, device: str) -> float | None:
        port = next(port for name, port in host.ports if name == device and is_active(host, name, port))
        return None if is_software(host, device, port) else rate_gbit(host, device, port)

    def kind(self, host: Host, device: str) -> tuple[str, ...] | None:
        return None if self.speed(host, device) is None else (device, make(host, device))


# ------------------------------------------------------------------------------------------------ dcgmi


class GpuDiag(HostCheck):
    id = "tool.dcgmi"
    what = "the results of NVIDIA's short GPU diagnostic"
    source = "dcgmi diag -r 1 -j"
    rule = "no test fails"
    severity = Severity.WARN
    component = "host"
    remedy = "run dcgmi diag -r 3 on the host; reset or replace the GPU"

    def look(self, host: Host) -> Iterable[Result]:
        output = host.command("dcgmi")
        tests = list(_tests(output.text))
        if instead := instead_of(self, host.name, "", output):
            yield instead
        elif output.status and not tests:
            yield self.skip(host.name, "", shortened(output.error))
        elif not tests:
            yield self.error(host.name, "", "dcgmi printed no results")
        else:
            bad = [words for words, status in tests if status in ("fail", "warn")]
            message = "; ".join(list(dict.fromkeys(bad))[:3])
            yield self.failure(host.name, "", message, len(bad), 0) if bad else self.ok(host.name)


def _tests(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text of each result with its status in lower case."""
    for document in (whole for one in documents(text) for whole in dicts(one)):
        for diagnostic in (part for value in document.values() for part in dicts(value)):
            for test in _below(dicts(diagnostic.get("test_categories")), "tests"):
                for result in dicts(test.get("results")):
                    status = str(result.get("status", "")).lower()
                    gpu = result.get("gpu_ids", result.get("gpu_id", result.get("entity_id", "")))
                    which = f"GPU {gpu}: " if gpu != "" else ""
                    yield shortened(f"{which}{test.get('name')} {status}{_why(result)}", 120), status


def _below(parents: Sequence[dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    return (child for parent in parents for child in dicts(parent.get(name)))


def _why(result: Mapping[str, Any]) -> str:
    """Return the warnings of a result: a text, a list of texts, or a list of documents with a text."""
    warnings = result.get("warnings")
    every = warnings if isinstance(warnings, list) else [warnings]
    texts = [one.get("warning") if isinstance(one, dict) else one for one in every]
    known = [text for text in texts if isinstance(text, str)]
    return f" ({'; '.join(known)})" if known else ""
