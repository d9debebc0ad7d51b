"""Tools of vendors that look at a host themselves: what they found must reach the result."""

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
    """What cxi_healthcheck says of a NIC."""

    results: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class CxiHealth(HostCheck):
    id = "tool.cxi.health"
    what = "what cxi_healthcheck finds"
    source = "cxi_healthcheck"
    rule = "none of its checks fails, and each has a result"
    severity = Severity.FAIL
    component = "nic"
    root = True
    remedy = "run cxi_healthcheck -v on the host, and do what it recommends"
    absent = NO_NIC

    def look(self, host: Host) -> Iterable[Result]:
        if not host.cxi:
            return
        said = host.command("cxi_healthcheck")
        if instead := instead_of(self, host.name, "", said):
            yield instead
            return
        found = _summaries(said.text)
        for device in {**dict.fromkeys(host.cxi), **found} if "" not in found else found:
            yield self._judged(host.name, device, found.get(device, _Summary()))

    def _judged(self, host: str, device: str, said: _Summary) -> Result:
        failed = [name for name, result in said.results.items() if result == "Fail"]
        missing = [name for name in HEALTH_CHECKS if f"{name}_check" not in said.results]
        quoted = "".join(f"; {warning}" for warning in said.warnings[:2])
        if failed:
            return self.wrong(host, device, f"{', '.join(failed)} failed{quoted}", len(failed), 0)
        if missing:
            none = "no summary" if len(missing) == len(HEALTH_CHECKS) else f"no result of {', '.join(missing)}"
            return self.unclear(host, device, f"{none}: cxi_healthcheck did not come to its end")
        if quoted:
            return self.warned(host, device, quoted.removeprefix("; "))
        return self.passed(host, device)


def _summaries(text: str) -> Mapping[str, _Summary]:
    """Results and warnings, by device; of one that is not named under the empty name."""
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
    what = "what slingshot-diag finds"
    source = "slingshot-diag -i NIC"
    rule = "neither WARN nor ERROR, and it ends with status 0"
    severity = Severity.FAIL
    component = "nic"
    root = True
    remedy = "run slingshot-diag -v on the host, and do what it recommends"
    absent = "no Slingshot NIC that it was asked about"

    def look(self, host: Host) -> Iterable[Result]:
        for nic, said in sorted(host.snapshot.commands_like("slingshot-diag").items()):
            yield instead_of(self, host.name, nic, said) or self._judged(host, nic, said.text, said.status or 0)

    def _judged(self, host: Host, nic: str, text: str, status: int) -> Result:
        lines = [line.partition(":") for line in text.splitlines()]
        told = {word: [shortened(rest) for head, _, rest in lines if head == word] for word in ("WARN", "ERROR")}
        words = "; ".join([*told["ERROR"], *told["WARN"]][:3])
        if "root" in words and not host.snapshot.root:
            return self.skipped(host.name, nic, words)
        if told["ERROR"] or status > 1:
            return self.wrong(host.name, nic, words or f"exit status {status}")
        if told["WARN"] or status:
            return self.warned(host.name, nic, words or f"exit status {status}")
        if not any(head.strip() == "Device" for head, _, _ in lines):
            return self.unclear(host.name, nic, "slingshot-diag describes no device")
        return self.passed(host.name, nic)


# ------------------------------------------------------------------------------------------------ loopback

_LEAST_ALIKE = 3
_FIGURE = r"\d{1,9}(?:\.\d{1,9})?"
_Key = tuple[object, ...]


@dataclass(frozen=True)
class _Loop:
    """What a NIC reached."""

    host: str
    device: str
    gbit: float
    speed: float | None
    key: _Key | None  # of NICs like it


class _LoopbackRate(Check):
    """What NICs reach when they send to themselves, against their own speed and against similar NICs."""

    component: ClassVar[ComponentKind] = "nic"
    tool: ClassVar[str]  # that is asked of each NIC
    row: ClassVar[re.Pattern[str]]  # that it prints, the last one counts; with a group for Gb/s
    of_speed: ClassVar[float]  # is the least
    of_median: ClassVar[float]
    below_speed: ClassVar[Severity] = Severity.FAIL  # of less than `of_speed`
    absent: ClassVar[str]  # why a host has nothing to look at

    @abstractmethod
    def devices(self, host: Host) -> Sequence[str]:
        """Those that were asked."""

    @abstractmethod
    def speed(self, host: Host, device: str) -> float | None:
        """Gb/s that it should reach; None where nobody can tell."""

    @abstractmethod
    def kind(self, host: Host, device: str) -> tuple[str, ...] | None:
        """What similar NICs share; None where none is like it."""

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        measured: list[_Loop] = []
        for host in fleet.hosts:
            devices = self.devices(host)
            if not devices:
                yield self.skipped(host.name, "", self.absent)
            for device in devices:
                said = host.command(f"{self.tool}/{device}")
                rows = [float(match[1]) for match in map(self.row.match, said.text.splitlines()) if match]
                if rows:
                    speed, kind = self.speed(host, device), self.kind(host, device)
                    key = None if kind is None else (*host.like(device), speed, *kind)
                    measured.append(_Loop(host.name, device, rows[-1], speed, key))
                else:
                    why = f": {shortened(said.error)}" if said.error else ""
                    nothing = self.unclear(host.name, device, f"{self.tool} printed no bandwidth{why}")
                    yield instead_of(self, host.name, device, said) or nothing
        like: dict[_Key | None, list[float]] = defaultdict(list)
        for one in measured:
            like[one.key].append(one.gbit)
        alike: dict[_Key | None, list[float]] = {
            key: rates for key, rates in like.items() if key is not None and len(rates) >= _LEAST_ALIKE
        }
        yield from (self._judged(one, alike.get(one.key, ())) for one in measured)

    def _judged(self, one: _Loop, alike: Sequence[float]) -> Result:
        """Below the median of few NICs it warns."""
        floors: list[tuple[Severity, float, str]] = []
        if one.speed:
            floors.append((self.below_speed, self.of_speed * one.speed, f"{self.of_speed:.0%} of {one.speed:g}"))
        if alike:
            usual = median(alike)
            grade = Severity.FAIL if len(alike) > CLEAR_OTHERS else Severity.WARN
            floors.append((grade, self.of_median * usual, f"{self.of_median:.0%} of the median {usual:g}"))
        if not floors:
            return self.skipped(one.host, one.device, f"{one.gbit:g} Gb/s, with nothing to compare it with")
        missed = [floor for floor in floors if one.gbit < floor[1]]
        if not missed:
            return self.passed(one.host, one.device, value=one.gbit, unit="Gb/s")
        severity, floor, words = max(missed, key=lambda floor: (floor[0] is Severity.FAIL, floor[1]))
        message = f"{one.gbit:g} Gb/s, below {words} Gb/s"
        if severity is Severity.FAIL:
            return self.wrong(one.host, one.device, message, one.gbit, floor, "Gb/s")
        return self.warned(one.host, one.device, message, one.gbit, floor)


class CxiLoopbackRate(_LoopbackRate):
    id = "tool.cxi.loopback"
    what = "bandwidth from every Slingshot NIC to its switch and back"
    source = "cxi_gpu_loopback_bw -d CXI"
    of_speed, of_median = 0.9, 0.95
    rule = f"at least {of_speed:.0%} of the NIC's speed, and {of_median:.0%} of the median of NICs of this speed"
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
    """Within the NIC: what passes is up to PCI Express as much as to the port, so that its rate proves little."""

    id = "tool.ib.loopback"
    what = "bandwidth of every InfiniBand and RoCE device to itself"
    source = "ib_write_bw -d DEVICE --report_gbits -D 2, both ends on the host"
    of_speed, of_median = 0.5, 0.8
    rule = f"at least {of_median:.0%} of the median of this device on similar hosts; below {of_speed:.0%} of its rate warns"
    severity = Severity.FAIL
    below_speed = Severity.WARN
    remedy = "check pcie.width, pcie.speed, host.iommu and host.acs, and at what else ran on this host"
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
    what = "what NVIDIA's short diagnostic of GPUs finds"
    source = "dcgmi diag -r 1 -j"
    rule = "no test fails"
    severity = Severity.WARN
    component = "host"
    remedy = "run dcgmi diag -r 3 on the host; reset or replace the GPU"

    def look(self, host: Host) -> Iterable[Result]:
        said = host.command("dcgmi")
        tests = list(_tests(said.text))
        if instead := instead_of(self, host.name, "", said):
            yield instead
        elif said.status and not tests:
            yield self.skipped(host.name, "", shortened(said.error))
        elif not tests:
            yield self.unclear(host.name, "", "dcgmi printed no results")
        else:
            bad = [words for words, status in tests if status in ("fail", "warn")]
            told = "; ".join(list(dict.fromkeys(bad))[:3])
            yield self.wrong(host.name, "", told, len(bad), 0) if bad else self.passed(host.name)


def _tests(text: str) -> Iterator[tuple[str, str]]:
    """What each result says, and its status in lower case."""
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
    """Its warnings: a text, or a list of texts or of documents that hold one."""
    warnings = result.get("warnings")
    every = warnings if isinstance(warnings, list) else [warnings]
    texts = [one.get("warning") if isinstance(one, dict) else one for one in every]
    told = [text for text in texts if isinstance(text, str)]
    return f" ({'; '.join(told)})" if told else ""
