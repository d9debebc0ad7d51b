"""Checks of NVIDIA GPUs: required services and modules, memory errors, lowered clocks, power limits, modes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck, UniformCheck
from fablint.preflight.checks.host.settings import rdma_devices
from fablint.preflight.checks.items import Items, ItemsCheck
from fablint.preflight.checks.log_checks import GPUS
from fablint.preflight.checks.outputs import instead_of, with_reasons, without_answer
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.parsers.nvidia_smi import QUERY, Gpu
from fablint.text.sanitise import shortened

NVSWITCHES = "/proc/driver/nvidia-nvswitch/devices"
_NO_GPU = "no GPU of NVIDIA"
_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")


def gpus(host: Host) -> Sequence[Gpu]:
    """Return the GPUs in the output of nvidia-smi; none if it did not run or cannot be parsed."""
    return host.nvidia_gpus


def reasons(fleet: Fleet) -> Mapping[str, str]:
    """Return by host why nvidia-smi reports no GPU."""
    return {
        host.name: f"nvidia-smi: {without_answer(host.command(QUERY))}" if host.snapshot.names(GPUS) else _NO_GPU
        for host in fleet.hosts
    }


class GpuCheck(HostCheck):
    """Base of checks of one property of each GPU, without comparison of hosts."""

    source = "nvidia-smi -q -x, at level full"
    reads = QUERY
    severity = Severity.FAIL
    component = "host"
    absent = _NO_GPU

    def look(self, host: Host) -> Iterator[Result]:
        if not host.snapshot.names(GPUS) and not gpus(host):
            return
        output = host.command(QUERY)
        without = instead_of(self, host.name, "", output)
        if without is not None:
            yield without
        elif not gpus(host):
            why = without_answer(output) if output.status else "the output cannot be parsed"
            yield self.error(host.name, "", f"nvidia-smi: {why}")
        for gpu in gpus(host):
            yield self.judged(host.name, gpu)

    @abstractmethod
    def judged(self, host: str, gpu: Gpu) -> Result:
        """Return the result for a GPU."""


class GpuMemory(GpuCheck):
    id = "gpu.remap"
    what = "memory errors of every GPU: remapped rows, uncorrectable errors"
    rule = "no failed remapping; a pending remapping and uncorrectable errors warn"
    remedy = "reset the GPU if a remapping is pending; replace it if a remapping failed"

    def judged(self, host: str, gpu: Gpu) -> Result:
        failed, pending = (gpu.text(f"remapped_rows/remapped_row_{kind}") for kind in ("failure", "pending"))
        pending = pending or gpu.text("retired_pages/pending_retirement", "retired_pages/pending_blacklist")
        if failed == "Yes":
            return self.failure(host, gpu.name, "remapping of a memory row failed", failed, "No")
        if pending == "Yes":
            return self.warning(host, gpu.name, "a memory remapping is pending until a reset", pending, "No")
        if gpu.uncorrectable:
            message = f"{gpu.uncorrectable} uncorrectable memory errors since the driver was loaded"
            return self.warning(host, gpu.name, message, gpu.uncorrectable, 0)
        if not failed and not pending and gpu.uncorrectable is None:
            return self.skip(host, gpu.name, "it does not report them, or its memory has no ECC")
        rows = gpu.text("remapped_rows/remapped_row_unc")
        return self.ok(host, gpu.name, f"{rows} rows remapped before" if rows.strip("0") else "")


class GpuThrottling(GpuCheck):
    id = "gpu.throttle"
    what = "the reasons for lowered clocks of every GPU"
    rule = "not temperature, power supply or hardware"
    severity = Severity.WARN
    remedy = "check cooling, power supplies and power cables of the host; nvidia-smi -q -d PERFORMANCE"

    _BAD = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")

    def judged(self, host: str, gpu: Gpu) -> Result:
        reasons = gpu.reasons
        if reasons is None:
            return self.skip(host, gpu.name, "it does not report why its clocks are lowered")
        bad = [reason for reason in self._BAD if reason in reasons]
        if bad:
            return self.failure(host, gpu.name, f"clocks lowered: {', '.join(bad)}", ", ".join(bad))
        return self.ok(host, gpu.name, value=", ".join(reasons[:4]))


class GpuPower(UniformCheck):
    id = "gpu.power"
    what = "the power limit of every GPU"
    source = "nvidia-smi -q -x, at level full"
    reads = QUERY
    rule = "not lower than on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "set the same limit on all hosts (nvidia-smi -pl WATTS); check for a limit of a job or the BMC"
    words = "power limit {} W"
    numeric = True
    absent = _NO_GPU
    below = True

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        return with_reasons(super().judge(fleet), self.absent, reasons(fleet))

    def values(self, host: Host) -> Mapping[str, Any]:
        return {
            f"{gpu.name} {gpu.product}".strip(): gpu.watts(
                "gpu_power_readings/current_power_limit", "gpu_power_readings/power_limit", "power_readings/power_limit"
            )
            for gpu in gpus(host)
        }


class GpuModes(ItemsCheck):
    id = "gpu.modes"
    what = "the settings of every GPU: ECC, MIG, persistence, compute mode"
    source = "nvidia-smi -q -x, at level full"
    reads = QUERY
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "use the same setting on all hosts: nvidia-smi -e, -mig, -pm, -c"
    absent = _NO_GPU

    _PATHS: Mapping[str, str] = {
        "ECC": "ecc_mode/current_ecc",
        "MIG": "mig_mode/current_mig",
        "persistence": "persistence_mode",
        "compute mode": "compute_mode",
        "VBIOS": "vbios_version",
    }

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        return with_reasons(super().judge(fleet), self.absent, reasons(fleet))

    def items(self, host: Host) -> Mapping[str, Items]:
        return {
            f"{gpu.name} {gpu.product}".strip(): {
                name: text for name, path in self._PATHS.items() if (text := gpu.text(path))
            }
            for gpu in gpus(host)
        }


class FabricManager(HostCheck):
    id = "gpu.fabricmanager"
    what = "the service that configures NVLink switches, and the GPUs' membership in their fabric"
    source = f"systemctl is-active nvidia-fabricmanager; {NVSWITCHES}; nvidia-smi -q -x, fabric"
    reads = QUERY
    rule = "active if there are NVLink switches; every GPU with a fabric has joined it"
    severity = Severity.FAIL
    component = "host"
    remedy = "start nvidia-fabricmanager in the driver's version, and check its log; CUDA fails without it"
    absent = "no NVLink switch"

    def look(self, host: Host) -> Iterable[Result]:
        output = host.command("fabricmanager")
        if host.snapshot.names(NVSWITCHES):
            state = shortened(output.text, 20)
            if state == "active":
                yield self.ok(host.name, value=state)
            elif state:
                yield self.failure(host.name, "", f"nvidia-fabricmanager is {state}", state, "active")
            else:
                yield self.skip(host.name, "", f"systemctl: {shortened(output.error) or 'no answer'}")
        for gpu in gpus(host):
            state, status = (gpu.text(f"fabric/{name}") for name in ("state", "status"))
            if state == "Completed" and status not in ("", "Success"):
                yield self.failure(host.name, gpu.name, f"it could not join its fabric: {status}", status, "Success")
            elif state in ("Not Started", "In Progress"):
                yield self.failure(host.name, gpu.name, f"it has not joined its fabric: {state}", state, "Completed")
            elif state:
                yield self.ok(host.name, gpu.name, value=state)


class PeerMemory(UniformCheck):
    id = "gpu.peermem"
    what = "the module that gives RDMA NICs access to GPU memory"
    source = "/sys/module/nvidia_peermem, nv_peer_mem: initstate"
    rule = "the same as on most similar hosts that have GPUs and RDMA devices; newer drivers need none (dma-buf)"
    severity = Severity.WARN
    component = "config"
    remedy = "modprobe nvidia-peermem, and load it at boot after the drivers of GPUs and NICs"
    words = "{}"
    absent = "no host with GPUs of NVIDIA and RDMA devices"

    def values(self, host: Host) -> Mapping[str, Any]:
        if not host.snapshot.names(GPUS) or not rdma_devices(host):
            return {}
        loaded = [name for name in _PEER_MODULES if host.read(f"/sys/module/{name}/initstate") == "live"]
        return {"": f"{loaded[0]} loaded" if loaded else "no peer memory module"}
