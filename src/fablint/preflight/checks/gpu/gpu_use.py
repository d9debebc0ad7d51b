"""Checks of NVIDIA GPUs in use: clocks, memory without a process, required recoveries, replays of PCI Express."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.judges.growth import third_quartile
from fablint.preflight.judges.nvidia import NVIDIA_SMI, per_gpu, why_no_gpu
from fablint.snapshot.parsers.kernel_log import DAY_S
from fablint.snapshot.parsers.nvidia_smi import QUERY, Gpu
from fablint.text.units import share_text

_LEAST_CLOCK = 0.75  # of the clock that the settings permit
_EXPLAINED = ("gpu_idle", "sw_power_cap")  # a busy GPU at its power limit is as fast as it can be


def _judged_clocks(check: Check, host: Host, gpu: Gpu) -> Result:
    clock, highest = gpu.number("clocks/sm_clock"), gpu.number("max_clocks/sm_clock")
    memory, highest_memory = gpu.number("clocks/mem_clock"), gpu.number("max_clocks/mem_clock")
    allowed = gpu.number("applications_clocks/graphics_clock") or highest
    if clock is None or not allowed or not highest:
        return check.skip(host.name, gpu.name, "it does not report its clocks")
    if not gpu.is_busy:
        return check.skip(host.name, gpu.name, "no program runs on it: its clocks are those of an idle GPU")
    explained = [reason for reason in gpu.reasons or () if reason in _EXPLAINED]
    if clock < _LEAST_CLOCK * allowed and not explained:
        message = f"{clock} MHz in use, its settings permit {allowed}"
        return check.failure(host.name, gpu.name, message, clock, allowed, "MHz")
    if memory and highest_memory and memory < _LEAST_CLOCK * highest_memory:
        message = f"memory at {memory} MHz in use, it supports {highest_memory}"
        return check.failure(host.name, gpu.name, message, memory, highest_memory, "MHz")
    return check.ok(host.name, gpu.name, value=clock, unit="MHz")


GPU_CLOCKS = Check(
    id="gpu.clocks",
    what="the clocks of every GPU that is in use",
    source=NVIDIA_SMI,
    rule=(
        f"at least {share_text(_LEAST_CLOCK)} of what its settings permit, unless it is at its power limit; the "
        "settings themselves are compared by gpu.modes"
    ),
    component="host",
    remedy="look for locked clocks (nvidia-smi -rgc, -rac), for power and cooling; reset the GPU",
    judge=per_gpu(_judged_clocks),
)


_LEAST_MIB = 1024  # in use without a process: more than any driver takes for itself


def _judged_memory_in_use(check: Check, host: Host, gpu: Gpu) -> Result:
    used = gpu.number("fb_memory_usage/used")
    if used is None:
        return check.skip(host.name, gpu.name, "it does not report its memory in use")
    if gpu.text("addressing_mode") == "ATS":
        return check.skip(host.name, gpu.name, "its memory is memory of the host, which the kernel uses as well")
    if gpu.text("mig_mode/current_mig") == "Enabled":
        return check.skip(host.name, gpu.name, "it is divided (MIG)")
    if used >= _LEAST_MIB and not gpu.has_processes:
        message = f"{used:,} MiB of its memory are in use by no process"
        return check.failure(host.name, gpu.name, message, used, _LEAST_MIB, "MiB")
    return check.ok(host.name, gpu.name, value=used, unit="MiB")


GPU_MEMORY_IN_USE = Check(
    id="gpu.memory.free",
    what="memory of every GPU that is in use although no process has any",
    source=NVIDIA_SMI,
    rule=f"less than {_LEAST_MIB} MiB (processes in containers of other users can be invisible)",
    component="host",
    remedy="look for processes that a job left behind (fuser -v /dev/nvidia*), reset the GPU",
    judge=per_gpu(_judged_memory_in_use),
)


_INSTEAD = ("GPU is lost", "GPU requires reset")  # of a value
_UNKNOWN, _FEWEST_UNKNOWN = "Unknown Error", 3  # instead of values; some drivers print a few on healthy GPUs
_DEMANDS = {  # of drivers before 570
    "gpu_reset_status/reset_required": "Reset",
    "gpu_reset_status/drain_and_reset_recommended": "Drain and Reset",
}


def _judged_recovery(check: Check, host: Host, gpu: Gpu) -> Result:
    texts = Counter(gpu.texts.values())
    action = gpu.text("gpu_recovery_action")
    if instead := [text for text in _INSTEAD if texts[text]]:
        return check.failure(host.name, gpu.name, f"its driver reports: {instead[0]}", instead[0])
    if demanded := [words for path, words in _DEMANDS.items() if gpu.text(path) == "Yes"]:
        action = demanded[0]
    elif texts[_UNKNOWN] >= _FEWEST_UNKNOWN:
        message = f"its driver reports {_UNKNOWN} instead of {texts[_UNKNOWN]} values"
        return check.warning(host.name, gpu.name, message, texts[_UNKNOWN])
    if not action:
        return check.skip(host.name, gpu.name, "its driver does not report it")
    if action != "None":
        return check.failure(host.name, gpu.name, f"its driver requires: {action}", action, "None")
    return check.ok(host.name, gpu.name, value=action)


GPU_RECOVERY = Check(
    id="gpu.recovery",
    what="the recovery that the driver requires of every GPU",
    source=NVIDIA_SMI,
    rule=(
        f"None, and values instead of {_INSTEAD[0]!r} or {_INSTEAD[1]!r}; {_UNKNOWN!r} instead of several values warns"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="drain the host, then do what the driver requires: nvidia-smi -r, or a reboot",
    judge=per_gpu(_judged_recovery),
)


_TIMES, _A_DAY, _FEWEST = 10, 100, 4


def _replays(check: Check, fleet: Fleet) -> Iterator[Result]:
    counts = {
        id(host): [(gpu, gpu.number("pci/replay_counter", "pci/replays_since_reset")) for gpu in host.nvidia_gpus]
        for host in fleet.hosts
    }
    like: dict[str, list[int]] = defaultdict(list)
    for host in fleet.hosts:
        like[host.kind] += [count for _, count in counts[id(host)] if count is not None]
    usual = {kind: third_quartile(values) for kind, values in like.items() if len(values) >= _FEWEST}
    for host in fleet.hosts:
        if not counts[id(host)]:
            yield check.absence(host, "", why_no_gpu)
        for gpu, count in counts[id(host)]:
            if count is None:
                yield check.skip(host.name, gpu.name, "it does not count them")
            else:
                yield _judged_replays(check, host, gpu, count, usual.get(host.kind))


def _judged_replays(check: Check, host: Host, gpu: Gpu, count: int, usual: float | None) -> Result:
    days = max((host.uptime_s or 0.0) / DAY_S, 1)
    if gpu.number("pci/replay_rollover_counter"):
        message = f"{count:,} replays of PCI Express; several replays of one packet were in vain"
        return check.failure(host.name, gpu.name, message, count)
    if usual is not None and count >= max(_A_DAY * days, _TIMES * max(usual, 1)):
        message = f"{count:,} replays of PCI Express, at most {usual:,.0f} on most similar GPUs"
        return check.failure(host.name, gpu.name, message, count, usual)
    return check.ok(host.name, gpu.name, f"{plural(count, 'replay')} before" if count else "", count)


GPU_REPLAYS = Check(
    id="gpu.pcie.replays",
    what="packets of PCI Express that every GPU had to send again",
    source=NVIDIA_SMI,
    rule=(f"fewer than {_A_DAY} a day since boot, or than {_TIMES} times those of most similar GPUs; no rollover"),
    component="host",
    remedy="reseat the GPU or its riser; compare with log.aer and pcie.width",
    judge=Judge(_replays, reads=QUERY),
)
