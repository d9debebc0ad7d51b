"""Check of the kernel's boot options."""

from __future__ import annotations

from collections.abc import Mapping

from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import uniform_settings
from fablint.preflight.judges.uniform import Settings, SettingsComparison
from fablint.snapshot.parsers.proc_files import boot_options


def _command_line(host: Host) -> Mapping[str, Settings]:
    text = host.read("/proc/cmdline")
    return {host.cpu.short_model or "CPU": boot_options(text)} if text else {}


COMMAND_LINE = Check(
    id="host.cmdline",
    what="the kernel's boot options on hosts with the same CPU",
    source="/proc/cmdline, without secrets",
    rule="the same as on most similar hosts; values that differ on every host are not compared",
    remedy="boot every host with the same options; regenerate the boot loader's configuration",
    judge=uniform_settings(SettingsComparison(_command_line, "no /proc/cmdline", written="{}{}", compares_pairs=False)),
)
