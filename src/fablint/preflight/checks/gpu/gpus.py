"""Checks of the number of GPUs and of the links between them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck, UniformCheck, Value
from fablint.preflight.checks.log_checks import GPUS
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

_ERRORS = re.compile(r"^\s+Link (\d{1,3}): ([\w ]{1,40}?) Errors?: (\d{1,18})\s*$", re.MULTILINE)
_GPU = re.compile(r"^GPU (\d{1,3}):", re.MULTILINE)


class GpuCount(UniformCheck):
    id = "gpu.count"
    what = "the number of GPUs"
    source = f"{GPUS}, and the PCI devices of GPUs and accelerators"
    rule = "not fewer than on most similar hosts"
    severity = Severity.FAIL
    component = "host"
    remedy = "check the kernel log for Xid errors and PCIe errors; reseat or replace the GPU"
    words = "{} GPU[s]"
    numeric = True
    absent = "no GPU"
    below = True

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        """Judge all hosts; a host without the driver has 0 GPUs if similar hosts have the driver."""
        self._driven = {host.kind for host in fleet.hosts if host.snapshot.names(GPUS)}
        self._some = {host.kind for host in fleet.hosts if host.accelerators} | self._driven
        self._built_without = {host.name for host in fleet.hosts if not host.accelerators}
        return super().judge(fleet)

    def failure(
        self, host: str, target: str, message: str, value: Value = None, expected: Value = None, unit: str = ""
    ) -> Result:
        """Return a warning for a host without GPUs on its bus, since it may be built without them."""
        if value == 0 and host in self._built_without:
            return self.warning(host, target, message, value, expected)
        return super().failure(host, target, message, value, expected, unit)

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return self.values(host) or {"": 0}

    def typical(self, values: Sequence[Value]) -> Value:
        return super().typical(values) or None  # nothing is less than no GPUs

    def values(self, host: Host) -> Mapping[str, Any]:
        if host.kind not in self._some:
            return {}
        return {"": len(host.snapshot.names(GPUS)) if host.kind in self._driven else len(host.accelerators)}


class NvLinks(UniformCheck):
    id = "gpu.nvlink"
    what = "the NVLinks of every GPU, and their speed"
    source = "nvidia-smi nvlink -s"
    rule = "the same number and speed as on most similar hosts"
    severity = Severity.FAIL
    component = "host"
    remedy = "check the kernel log for Xid 74 and SXid; reset the GPUs, have the board inspected"
    words = "{}"
    absent = "nvidia-smi, run at level full, reports no NVLinks"

    _LINK = re.compile(r"^\s+Link \d{1,3}: (?:([\d.]{1,12} [KMGT]B/s)|<?inactive>?)", re.MULTILINE)

    def values(self, host: Host) -> Mapping[str, Any]:
        output = host.command("nvidia-smi-nvlink")
        found = {}
        for gpu, text in _by_gpu(output.text if output.status == 0 else ""):
            speeds = self._LINK.findall(text)
            if speeds:
                up = Counter(speed for speed in speeds if speed)
                active = ", ".join(f"{plural(count, 'link')} of {speed}" for speed, count in sorted(up.items()))
                found[f"gpu{gpu}"] = active or "no active link"
        return found


class NvLinkErrors(HostCheck):
    id = "gpu.nvlink.errors"
    what = "errors of NVLinks during the snapshot"
    source = "nvidia-smi nvlink -e, twice"
    rule = "none within 4 s; totals are a note"
    severity = Severity.WARN
    component = "host"
    remedy = "check the kernel log for Xid 74 and SXid; have the board inspected if they grow"
    absent = "nvidia-smi, run at level full, reports no errors of NVLinks"

    def look(self, host: Host) -> Iterable[Result]:
        output = host.command("nvidia-smi-nvlink-errors")
        readings: dict[str, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
        for gpu, text in _by_gpu(output.text if output.status == 0 else ""):
            for link, kind, count in _link_errors(text.partition("\n")[2]):
                readings[gpu][link, kind].append(count)
        for gpu, own in readings.items():
            grown = {key: counts[-1] - counts[0] for key, counts in own.items() if counts[-1] > counts[0]}
            total = sum(counts[-1] for counts in own.values())
            if grown:
                message = ", ".join(f"link {link} {kind} +{count}" for (link, kind), count in list(grown.items())[:4])
                yield self.failure(host.name, f"gpu{gpu}", message, sum(grown.values()), 0)
            elif all(len(counts) < 2 for counts in own.values()):
                yield self.skip(host.name, f"gpu{gpu}", f"read once: {total} since the driver was loaded")
            else:
                yield self.ok(host.name, f"gpu{gpu}", f"{total} before" if total else "", total)


@lru_cache(maxsize=1024)  # equal texts: most GPUs of a fleet count nothing
def _link_errors(text: str) -> Sequence[tuple[str, str, int]]:
    """Parse link, kind and count of each line about a GPU."""
    return [(link, kind, int(count)) for link, kind, count in _ERRORS.findall(text)]


def _by_gpu(text: str) -> Iterator[tuple[str, str]]:
    """Yield the number of each GPU and the text about it."""
    parts = _GPU.split(text)
    yield from zip(parts[1::2], parts[2::2], strict=True)
