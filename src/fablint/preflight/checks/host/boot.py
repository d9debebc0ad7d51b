"""The options that the kernel was booted with."""

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
_TOLD_ELSEWHERE = frozenset({"BOOT_IMAGE", "initrd"})  # host.kernel tells of another kernel
_OWN = re.compile(  # what every host has for itself: UUIDs, addresses of NICs and of IP, Cray's names of places
    r"[0-9a-f]{8}-[0-9a-f]{4}-|(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}|\d+\.\d+\.\d+\.\d+|\bx\d+c\d+s\d+b\d+n\d+",
    re.IGNORECASE,
)


class CommandLine(ItemsCheck):
    id = "host.cmdline"
    what = "the options that the kernel was booted with on hosts with the same CPU"
    source = "/proc/cmdline, without secrets"
    rule = "as most similar hosts have them; values that each host has for itself are not compared"
    severity = Severity.WARN
    component = "config"
    remedy = "boot every host with the same options; write the boot loader's configuration anew"
    absent = "no /proc/cmdline"
    written = "{}{}"

    def items(self, host: Host) -> Mapping[str, Items]:
        text = host.read("/proc/cmdline")
        return {cpu_model(host) or "CPU": _options(text)} if text else {}


@lru_cache(maxsize=4096)
def _options(text: str) -> Items:
    """Options with their values; of one that comes several times all of them."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, value in _OPTION.findall(text):
        if name not in _TOLD_ELSEWHERE:
            found[name].append("=..." if _OWN.search(value) else f"={value}" if value else "")
    return {name: ",".join(values) for name, values in found.items()}
