"""Checks of NVIDIA GPUs: required services and modules, memory errors, lowered clocks, power limits, modes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.host import GPUS, NVSWITCHES, Host
from fablint.preflight.judges import limit, uniform, uniform_settings
from fablint.preflight.judges.nvidia import NVIDIA_SMI, per_gpu, why_no_gpu
from fablint.preflight.judges.uniform import Settings, SettingsComparison, ValueComparison
from fablint.snapshot.parsers.nvidia_smi import QUERY, Gpu
from fablint.text.sanitise import shortened
from fablint.text.units import share_text

_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")


_BEYOND_REPAIR = {
    "ecc_errors/aggregate/sram_threshold_exceeded": "more SRAM errors than the threshold for a replacement",
    "ecc_errors/unrepairable_memory": "its memory cannot be repaired",
}
_REPAIRS = {
    "ecc_errors/channel_repair_pending": "a repair of a memory channel is pending until a reset",
    "ecc_errors/tpc_repair_pending": "a repair of a processing cluster is pending until a reset",
}


def _judged_gpu_memory(check: Check, host: Host, gpu: Gpu) -> Result:
    failed, pending = (gpu.text(f"remapped_rows/remapped_row_{kind}") for kind in ("failure", "pending"))
    pending = pending or gpu.text("retired_pages/pending_retirement", "retired_pages/pending_blacklist")
    beyond = [words for path, words in _BEYOND_REPAIR.items() if gpu.text(path) == "Yes"]
    repairs = [words for path, words in _REPAIRS.items() if gpu.text(path) == "Yes"]
    if failed == "Yes" or beyond:
        message = "; ".join((*["remapping of a memory row failed"][: failed == "Yes"], *beyond))
        return check.failure(host.name, gpu.name, message, "Yes", "No")
    if pending == "Yes" or repairs:
        message = "; ".join((*["a memory remapping is pending until a reset"][: pending == "Yes"], *repairs))
        return check.warning(host.name, gpu.name, message, "Yes", "No")
    if gpu.uncorrectable:
        message = f"{gpu.uncorrectable} uncorrectable memory errors since the driver was loaded"
        return check.warning(host.name, gpu.name, message, gpu.uncorrectable, 0)
    if not failed and not pending and gpu.uncorrectable is None:
        return check.skip(host.name, gpu.name, "it does not report them, or its memory has no ECC")
    rows = gpu.text("remapped_rows/remapped_row_unc")
    return check.ok(host.name, gpu.name, f"{rows} rows remapped before" if rows.strip("0") else "")


GPU_MEMORY = Check(
    id="gpu.remap",
    what="memory errors of every GPU: remapped rows, uncorrectable errors, SRAM threshold, pending repairs",
    source=NVIDIA_SMI,
    rule=(
        "no failed remapping, no unrepairable memory, SRAM errors below the threshold; a pending remapping or repair "
        "and uncorrectable errors warn"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="reset the GPU if a remapping is pending; replace it if a remapping failed",
    judge=per_gpu(_judged_gpu_memory),
)


_BAD = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
_COUNTED = ("hw_therm_slowdown", "hw_power_brake", "sw_therm_slowdown")
_LEAST_SHARE = 0.01  # of the time since the boot
_US = 1e6


def _judged_gpu_throttling(check: Check, host: Host, gpu: Gpu) -> Result:
    reasons = gpu.reasons
    if reasons is None:
        return check.skip(host.name, gpu.name, "it does not report why its clocks are lowered")
    bad = [reason for reason in _BAD if reason in reasons]
    if "sw_power_cap" in reasons and "gpu_idle" not in reasons and not gpu.is_busy and not gpu.has_processes:
        bad.append("sw_power_cap while no program runs")
    if bad:
        return check.failure(host.name, gpu.name, f"clocks lowered: {', '.join(bad)}", ", ".join(bad))
    at = "clocks_event_reasons_counters/clocks_event_reasons_counters"
    shares = {name: (gpu.number(f"{at}_{name}") or 0) / _US / (host.uptime_s or inf) for name in _COUNTED}
    most = max(shares, key=shares.__getitem__)
    if shares[most] >= _LEAST_SHARE:
        message = f"clocks lowered for {share_text(min(shares[most], 1))} of the time since boot: {most}"
        return check.failure(host.name, gpu.name, message, shares[most], _LEAST_SHARE)
    return check.ok(host.name, gpu.name, value=", ".join(reasons[:4]))


GPU_THROTTLING = Check(
    id="gpu.throttle",
    what="the reasons for lowered clocks of every GPU",
    source=NVIDIA_SMI,
    rule=(
        "not temperature, power supply or hardware, now or for 1 % of the time since boot; "
        "not the power cap while no program runs"
    ),
    component="host",
    remedy="check cooling, power supplies and power cables of the host; nvidia-smi -q -d PERFORMANCE",
    judge=per_gpu(_judged_gpu_throttling),
)


def _gpu_power(host: Host) -> Mapping[str, Any]:
    return {
        f"{gpu.name} {gpu.product}".strip(): gpu.watts(
            "gpu_power_readings/current_power_limit", "gpu_power_readings/power_limit", "power_readings/power_limit"
        )
        for gpu in host.nvidia_gpus
    }


GPU_POWER = Check(
    id="gpu.power",
    what="the power limit of every GPU",
    source=NVIDIA_SMI,
    rule="not lower than on most similar hosts, alone than that of most GPUs of the host",
    remedy="set the same limit on all hosts (nvidia-smi -pl WATTS); check for a limit of a job or the BMC",
    judge=ValueComparison("power limit {} W", why_no_gpu, below=True, compares_parts=True).judge(
        _gpu_power, numeric=True, reads=QUERY
    ),
)


_PATHS: Mapping[str, str] = {
    "ECC": "ecc_mode/current_ecc",
    "MIG": "mig_mode/current_mig",
    "persistence": "persistence_mode",
    "compute mode": "compute_mode",
    "VBIOS": "vbios_version",
    "application clock": "applications_clocks/graphics_clock",
    "application memory clock": "applications_clocks/mem_clock",
    "highest clock": "max_clocks/sm_clock",
    "highest memory clock": "max_clocks/mem_clock",
}


def _gpu_modes(host: Host) -> Mapping[str, Settings]:
    return {
        f"{gpu.name} {gpu.product}".strip(): {name: text for name, path in _PATHS.items() if (text := gpu.text(path))}
        for gpu in host.nvidia_gpus
    }


GPU_MODES = Check(
    id="gpu.modes",
    what="the settings of every GPU: ECC, MIG, persistence, compute mode, application clocks, highest clocks",
    source=NVIDIA_SMI,
    remedy="use the same setting on all hosts: nvidia-smi -e, -mig, -pm, -c, -ac, -lgc",
    judge=uniform_settings(SettingsComparison(_gpu_modes, why_no_gpu), reads=QUERY),
)


def _fabric_manager(check: Check, host: Host) -> Iterable[Result]:
    output = host.command("fabricmanager")
    if host.snapshot.names(NVSWITCHES):
        state = shortened(output.text, 20)
        if state == "active":
            yield check.ok(host.name, value=state)
        elif state:
            yield check.failure(host.name, "", f"nvidia-fabricmanager is {state}", state, "active")
        else:
            yield check.skip(host.name, "", f"systemctl: {shortened(output.error) or 'no answer'}")
    for gpu in host.nvidia_gpus:
        state, status = (gpu.text(f"fabric/{name}") for name in ("state", "status"))
        if state == "Completed" and status not in ("", "Success"):
            yield check.failure(host.name, gpu.name, f"it could not join its fabric: {status}", status, "Success")
        elif state in ("Not Started", "In Progress"):
            yield check.failure(host.name, gpu.name, f"it has not joined its fabric: {state}", state, "Completed")
        elif (health := gpu.text("fabric/health/summary")) not in ("", "Healthy"):
            yield check.warning(host.name, gpu.name, f"the health of its fabric is {health}", health, "Healthy")
        elif state:
            yield check.ok(host.name, gpu.name, value=state)


FABRIC_MANAGER = Check(
    id="gpu.fabricmanager",
    what="the service that configures NVLink switches, and the GPUs' membership in their fabric",
    source=f"systemctl is-active nvidia-fabricmanager; {NVSWITCHES}; nvidia-smi -q -x, fabric",
    rule="active if there are NVLink switches; every GPU with a fabric has joined it",
    severity=Severity.FAIL,
    component="host",
    remedy="start nvidia-fabricmanager in the driver's version, and check its log; CUDA fails without it",
    judge=limit(_fabric_manager, "no NVLink switch", reads=QUERY),
)


def _peer_memory(host: Host) -> Mapping[str, Any]:
    if not host.snapshot.names(GPUS) or not host.rdma_devices:
        return {}
    loaded = [name for name in _PEER_MODULES if host.read(f"/sys/module/{name}/initstate") == "live"]
    return {"": f"{loaded[0]} loaded" if loaded else "no peer memory module"}


PEER_MEMORY = Check(
    id="gpu.peermem",
    what="the module that gives RDMA NICs access to GPU memory",
    source="/sys/module/nvidia_peermem, nv_peer_mem: initstate",
    rule="the same as on most similar hosts that have GPUs and RDMA devices; newer drivers need none (dma-buf)",
    remedy="modprobe nvidia-peermem, and load it at boot after the drivers of GPUs and NICs",
    judge=uniform(_peer_memory, "{}", absent="no host with GPUs of NVIDIA and RDMA devices"),
)
