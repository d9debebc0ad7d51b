"""Checks of the clock source that measurements use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck, Value
from fablint.preflight.checks.log_checks import PatternCheck
from fablint.preflight.host import Host
from fablint.snapshot.parsers.kernel_log import Event, Grade, Line, Pattern
from fablint.text.sanitise import shortened

CLOCKS = "/sys/devices/system/clocksource/clocksource0"
_FLAGS = re.compile(r"^flags\s*:(.*)$", re.MULTILINE)


def cpu_flags(host: Host) -> frozenset[str]:
    """Return the clock flags of an x86 CPU; empty for other CPUs."""
    match = _FLAGS.search(host.read("/proc/cpuinfo") or "")
    return frozenset(match[1].split()) if match else frozenset()


class ClockSource(HostCheck):
    id = "host.clocksource"
    what = "the clock source of the kernel"
    source = f"{CLOCKS}/current_clocksource"
    rule = "a clock inside the CPU: not hpet, acpi_pm, pit or jiffies"
    severity = Severity.WARN
    component = "config"
    remedy = "check the kernel log for why the TSC was rejected; reboot; tsc=reliable if the vendor recommends it"
    absent = f"no {CLOCKS}/current_clocksource"

    expects = True

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return {"": shortened(host.read(f"{CLOCKS}/current_clocksource") or "", 30) or None}

    _SLOW = frozenset({"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "dummy"})

    def look(self, host: Host) -> Iterable[Result]:
        current = host.read(f"{CLOCKS}/current_clocksource")
        if not current:
            return
        if current in self._SLOW:
            others = shortened(host.read(f"{CLOCKS}/available_clocksource") or "unknown", 60)
            message = f"{current}, whose reading takes about a microsecond; available: {others}"
            yield self.failure(host.name, "", message, current, "tsc")
        else:
            yield self.ok(host.name, value=shortened(current, 30))


class TscFlags(HostCheck):
    id = "host.tsc"
    what = "whether the TSC of an x86 CPU counts at a constant rate, also in idle states"
    source = "/proc/cpuinfo, flags constant_tsc and nonstop_tsc"
    rule = "both flags; virtual machines are not judged"
    severity = Severity.WARN
    component = "config"
    remedy = "check the BIOS and boot options such as notsc"
    absent = "no x86 CPU, or a virtual machine"

    def look(self, host: Host) -> Iterable[Result]:
        flags = cpu_flags(host)
        if "tsc" not in flags or "hypervisor" in flags:
            return
        missing = sorted({"constant_tsc", "nonstop_tsc"} - flags)
        if missing:
            yield self.failure(host.name, "", f"no {' and no '.join(missing)}", " ".join(missing))
        else:
            yield self.ok(host.name)


class LogClock(PatternCheck):
    id = "log.clock"
    what = "reports of an unreliable TSC"
    rule = "not rejected as a clock source within a day; virtual machines are not judged"
    severity = Severity.WARN
    component = "host"
    remedy = "check host.clocksource; update the BIOS; tsc=reliable if the vendor recommends it"
    patterns = (
        Pattern(
            "Marking clocksource 'tsc' as unstable",
            re.compile("Marking clocksource 'tsc' as unstable"),
            Grade.WARN,
            "TSC marked as unstable",
        ),
        Pattern(
            "Clocksource tsc unstable", re.compile("Clocksource tsc unstable"), Grade.WARN, "TSC marked as unstable"
        ),
        Pattern(
            "Marking TSC unstable due to",
            re.compile("Marking TSC unstable due to (?!clocksource watchdog)"),  # also reported by another line
            Grade.WARN,
            "TSC marked as unstable",
        ),
        Pattern("TSC warp between CPUs", re.compile("TSC warp between CPUs"), Grade.WARN, "TSCs of CPUs differ"),
    )

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        return iter(()) if "hypervisor" in cpu_flags(host) else super().events(host, lines)

    def lacks(self, host: Host) -> str:
        return "a virtual machine" if "hypervisor" in cpu_flags(host) else ""
