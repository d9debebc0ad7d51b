"""Check of the kernel's boot options."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

from fablint.model.preflight_results import Severity
from fablint.preflight.checks.host.processors import cpu_model
from fablint.preflight.checks.items import Items, ItemsCheck
from fablint.preflight.host import Host

_OPTION = re.compile(r'([^\s=]+)(?:=("[^"]*"|\S*))?')
_IGNORED = frozenset({"BOOT_IMAGE", "initrd"})  # host.kernel compares kernels
_OWN = re.compile(  # values of a single host: UUIDs, MAC and IP addresses, Cray's xnames
    r"[0-9a-f]{8}-[0-9a-f]{4}-|(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}|\d+\.\d+\.\d+\.\d+|\bx\d+c\d+s\d+b\d+n\d+",
    re.IGNORECASE,
)


class CommandLine(ItemsCheck):
    id = "host.cmdline"
    what = "the kernel's boot options on hosts with the same CPU"
    source = "/proc/cmdline, without secrets"
    rule = "the same as on most similar hosts; values that differ on every host are not compared"
    severity = Severity.WARN
    component = "config"
    remedy = "boot every host with the same options; regenerate the boot loader's configuration"
    absent = "no /proc/cmdline"
    written = "{}{}"

    def items(self, host: Host) -> Mapping[str, Items]:
        text = host.read("/proc/cmdline")
        return {cpu_model(host) or "CPU": _options(text)} if text else {}


@lru_cache(maxsize=4096)
def _options(text: str) -> Items:
    """Return options with their values; all values of a repeated option."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, value in _OPTION.findall(text):
        if name not in _IGNORED:
            found[name].append("=..." if _OWN.search(value) else f"={value}" if value else "")
    return {name: ",".join(values) for name, values in found.items()}
