"""Checks of the number of GPUs and of the links between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from fablint.model.names import plural
from fablint.model.preflight_results import Outcome, Result, Severity
from fablint.preflight.check import Check, Judge, SiteValues, typical_value
from fablint.preflight.class_values import worded
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import GPUS, NVSWITCHES, PCI, Host
from fablint.preflight.judges import limit
from fablint.preflight.judges.uniform import ValueComparison
from fablint.snapshot.parsers.nvlink import nvlink_errors, nvlink_speeds


def _gpu_count(fleet: Fleet, host: Host) -> Mapping[str, int]:
    """Return the number of GPUs; a host without the driver has 0 GPUs if similar hosts have the driver."""
    driven, kinds = _kinds_with_gpus(fleet)
    if host.kind not in kinds:
        return {}
    return {"": len(host.snapshot.names(GPUS)) if host.kind in driven else len(host.accelerators)}


@lru_cache(maxsize=1)  # for all hosts
def _kinds_with_gpus(fleet: Fleet) -> tuple[frozenset[str], frozenset[str]]:
    """Return the classes of hosts with the driver, and the classes with GPUs."""
    driven = frozenset(host.kind for host in fleet.hosts if host.snapshot.names(GPUS))
    return driven, driven | {host.kind for host in fleet.hosts if host.accelerators}


def _judged_gpu_count(check: Check, fleet: Fleet) -> Iterator[Result]:
    """Yield the results; a host without GPUs on its bus may be built without them, and is a warning at most."""
    built_without = {host.name for host in fleet.hosts if not host.accelerators}
    for result in _COUNTS.results(lambda host: _gpu_count(fleet, host), check, fleet):
        is_built_so = result.outcome is Outcome.FAIL and result.value == 0 and result.host in built_without
        yield result._replace(outcome=Outcome.WARN) if is_built_so else result


_COUNTS = ValueComparison("{} GPU[s]", "no GPU", below=True)

GPU_COUNT = Check(
    id="gpu.count",
    what="the number of GPUs",
    source=f"{GPUS}, and the PCI devices of GPUs and accelerators",
    rule="not fewer than on most similar hosts",
    severity=Severity.FAIL,
    component="host",
    remedy="check the kernel log for Xid errors and PCIe errors; reseat or replace the GPU",
    judge=Judge(
        _judged_gpu_count,
        site=SiteValues(
            lambda fleet, host: _gpu_count(fleet, host) or {"": 0},
            lambda _, value: worded(_COUNTS.words, value),
            numeric=True,
            is_met=lambda value, expected: not _COUNTS.is_wrong(value, expected),
            is_severe=lambda host, value, _: value != 0 or bool(host.accelerators),
            typical=lambda values: typical_value(values) or None,  # nothing is less than no GPUs
        ),
    ),
)


_DRIVERS = {"0x10de": "nvidia", "0x1002": "amdgpu"}  # by the vendor of a GPU


def _driver(host: Host) -> Mapping[str, str]:
    vendors = {address: host.read(f"{PCI}/{address}/vendor") or "" for address in host.accelerators}
    names = {address: _DRIVERS[vendor] for address, vendor in vendors.items() if vendor in _DRIVERS}
    bound = {
        address for address, name in names.items() if f"/sys/bus/pci/drivers/{name}/{address}" in host.snapshot.links
    }
    return {address: "with a driver" if address in bound else "without a driver" for address in names}


GPU_DRIVER = Check(
    id="gpu.driver",
    what="the driver of every GPU of NVIDIA and AMD",
    source="/sys/bus/pci/drivers/{nvidia,amdgpu}",
    rule="loaded for it as on most similar hosts, alone as for most GPUs of the host",
    severity=Severity.FAIL,
    component="host",
    remedy="check the kernel log for why the driver did not start the GPU; reset the GPU or reboot the host",
    judge=ValueComparison("{}", "no GPU of NVIDIA or AMD", compares_parts=True).judge(_driver),
)


NV_SWITCHES = Check(
    id="gpu.nvswitch",
    what="the number of NVLink switches",
    source=NVSWITCHES,
    rule="not fewer than on most similar hosts",
    severity=Severity.FAIL,
    component="host",
    remedy="check the kernel log for SXid and PCIe errors; have the board inspected",
    judge=ValueComparison("NVLink switches {}", "no NVLink switch", below=True).judge(
        lambda host: {"": len(host.snapshot.names(NVSWITCHES))} if host.snapshot.names(GPUS) else {}
    ),
)


def _nv_links(host: Host) -> Mapping[str, Any]:
    output = host.command("nvidia-smi-nvlink")
    nv_links = {}
    for gpu, speeds in nvlink_speeds(output.text if output.status == 0 else "").items():
        up = Counter(speed for speed in speeds if speed)
        active = ", ".join(f"{plural(count, 'link')} of {speed}" for speed, count in sorted(up.items()))
        nv_links[gpu] = active or "no active link"
    return nv_links


NV_LINKS = Check(
    id="gpu.nvlink",
    what="the NVLinks of every GPU, and their speed",
    source="nvidia-smi nvlink -s",
    rule="the same number and speed as on most similar hosts, alone as of most GPUs of the host",
    severity=Severity.FAIL,
    component="host",
    remedy="check the kernel log for Xid 74 and SXid; reset the GPUs, have the board inspected",
    judge=ValueComparison("{}", "nvidia-smi, run at level full, reports no NVLinks", compares_parts=True).judge(
        _nv_links
    ),
)


def _nv_link_errors(check: Check, host: Host) -> Iterable[Result]:
    output = host.command("nvidia-smi-nvlink-errors")
    for gpu, errors in nvlink_errors(output.text if output.status == 0 else "").items():
        grown = {key: counts[-1] - counts[0] for key, counts in errors.items() if counts[-1] > counts[0]}
        total = sum(counts[-1] for counts in errors.values())
        if grown:
            message = ", ".join(f"link {link} {kind} +{count}" for (link, kind), count in list(grown.items())[:4])
            yield check.failure(host.name, gpu, message, sum(grown.values()), 0)
        elif all(len(counts) < 2 for counts in errors.values()):
            yield check.skip(host.name, gpu, f"read once: {total} since the driver was loaded")
        else:
            yield check.ok(host.name, gpu, f"{total} before" if total else "", total)


NV_LINK_ERRORS = Check(
    id="gpu.nvlink.errors",
    what="errors of NVLinks during the snapshot",
    source="nvidia-smi nvlink -e, twice",
    rule="none within 4 s; totals are a note",
    component="host",
    remedy="check the kernel log for Xid 74 and SXid; have the board inspected if they grow",
    judge=limit(_nv_link_errors, "nvidia-smi, run at level full, reports no errors of NVLinks"),
)
