"""Checks of the clock source that measurements use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, SiteValues, Value
from fablint.preflight.host import Host
from fablint.preflight.judges import limit, log_patterns
from fablint.preflight.judges.log_patterns import KERNEL_LOG
from fablint.snapshot.parsers.kernel_log import Grade, Pattern
from fablint.text.sanitise import shortened

CLOCKS = "/sys/devices/system/clocksource/clocksource0"
_SLOW = frozenset({"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "dummy"})


def _clock_source_values(host: Host) -> Mapping[str, Value]:
    return {"": shortened(host.read(f"{CLOCKS}/current_clocksource") or "", 30) or None}


def _clock_source(check: Check, host: Host) -> Iterable[Result]:
    current = host.read(f"{CLOCKS}/current_clocksource")
    if not current:
        return
    if current in _SLOW:
        others = shortened(host.read(f"{CLOCKS}/available_clocksource") or "unknown", 60)
        message = f"{current}, whose reading takes about a microsecond; available: {others}"
        yield check.failure(host.name, "", message, current, "tsc")
    else:
        yield check.ok(host.name, value=shortened(current, 30))


CLOCK_SOURCE = Check(
    id="host.clocksource",
    what="the clock source of the kernel",
    source=f"{CLOCKS}/current_clocksource",
    rule="a clock inside the CPU: not hpet, acpi_pm, pit or jiffies",
    remedy="check the kernel log for why the TSC was rejected; reboot; tsc=reliable if the vendor recommends it",
    judge=limit(
        _clock_source, f"no {CLOCKS}/current_clocksource", site=SiteValues(lambda _, host: _clock_source_values(host))
    ),
)


def _tsc_flags(check: Check, host: Host) -> Iterable[Result]:
    flags = host.cpu.flags
    if "tsc" not in flags or "hypervisor" in flags:
        return
    missing = sorted({"constant_tsc", "nonstop_tsc"} - flags)
    if missing:
        yield check.failure(host.name, "", f"no {' and no '.join(missing)}", " ".join(missing))
    else:
        yield check.ok(host.name)


TSC_FLAGS = Check(
    id="host.tsc",
    what="whether the TSC of an x86 CPU counts at a constant rate, also in idle states",
    source="/proc/cpuinfo, flags constant_tsc and nonstop_tsc",
    rule="both flags; virtual machines are not judged",
    remedy="check the BIOS and boot options such as notsc",
    judge=limit(_tsc_flags, "no x86 CPU, or a virtual machine"),
)


_CLOCK_PATTERNS = (
    Pattern(
        "Marking clocksource 'tsc' as unstable",
        "Marking clocksource 'tsc' as unstable",
        Grade.WARN,
        "TSC marked as unstable",
    ),
    Pattern("Clocksource tsc unstable", "Clocksource tsc unstable", Grade.WARN, "TSC marked as unstable"),
    Pattern(
        "Marking TSC unstable due to",
        "Marking TSC unstable due to (?!clocksource watchdog)",  # also reported by another line
        Grade.WARN,
        "TSC marked as unstable",
    ),
    Pattern("TSC warp between CPUs", "TSC warp between CPUs", Grade.WARN, "TSCs of CPUs differ"),
)

LOG_CLOCK = Check(
    id="log.clock",
    what="reports of an unreliable TSC",
    source=KERNEL_LOG,
    rule="not rejected as a clock source within a day; virtual machines are not judged",
    component="host",
    remedy="check host.clocksource; update the BIOS; tsc=reliable if the vendor recommends it",
    judge=log_patterns(
        _CLOCK_PATTERNS,
        changed=lambda host, events: () if "hypervisor" in host.cpu.flags else events,
        lacks=lambda host: "a virtual machine" if "hypervisor" in host.cpu.flags else "",
    ),
)
