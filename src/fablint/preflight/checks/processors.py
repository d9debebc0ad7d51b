"""Which CPUs a host has, and what their microcode and the kernel do against their flaws."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fablint.fitness import Severity
from fablint.preflight.check import UniformCheck
from fablint.preflight.checks.items import Items, ItemsCheck
from fablint.preflight.checks.settings import CPUS
from fablint.preflight.host import Host
from fablint.preflight.wording import shortened

_FIELD = re.compile(r"^(model name|microcode|CPU part)\s*:\s*(\S.*)$", re.MULTILINE)
_NOISE = re.compile(r"\((?:R|TM|r|tm)\)|\bCPU\b|\bProcessor\b|@ .*|\b\d+-Core\b")


@lru_cache(maxsize=4096)
def _fields(text: str) -> Mapping[str, str]:
    return dict(_FIELD.findall(text))


def cpu_model(host: Host) -> str | None:
    """`Intel Xeon Platinum 8480+`; on Arm the number of the part; None where it cannot be seen."""
    fields = _fields(host.read("/proc/cpuinfo") or "")
    name = fields.get("model name") or (f"CPU part {fields['CPU part']}" if "CPU part" in fields else "")
    return shortened(_NOISE.sub(" ", name), 40) or None


class CpuModel(UniformCheck):
    id = "host.cpu.model"
    what = "the CPU of the host"
    source = "/proc/cpuinfo, model name"
    rule = "told, not judged: a fleet may have several kinds"
    severity = Severity.INFO
    component = "host"
    mend = "compare hosts of the same CPU only"
    words = "{}"
    absent = "/proc/cpuinfo does not tell it"
    expects = False  # the class of the host names it

    def values(self, host: Host) -> Mapping[str, Any]:
        return {"": cpu_model(host)}


class Microcode(UniformCheck):
    id = "host.microcode"
    what = "the microcode of CPUs of the same model"
    source = "/proc/cpuinfo, microcode"
    rule = "as on most like hosts with this CPU"
    severity = Severity.WARN
    component = "config"
    mend = "install the same BIOS and the same microcode package, and reboot"
    words = "microcode {}"
    absent = "/proc/cpuinfo tells no microcode"

    def values(self, host: Host) -> Mapping[str, Any]:
        version = _fields(host.read("/proc/cpuinfo") or "").get("microcode")
        return {cpu_model(host) or "CPU": shortened(version, 20)} if version else {}


class Mitigations(ItemsCheck):
    id = "host.mitigations"
    what = "what the kernel does against flaws of CPUs of the same model"
    source = f"{CPUS}/vulnerabilities/*"
    rule = "as on most like hosts with this CPU"
    severity = Severity.WARN
    component = "config"
    mend = "boot with the same mitigations= everywhere, with the same kernel and microcode"
    words = "{}"
    absent = "the kernel does not tell it"

    def items(self, host: Host) -> Mapping[str, Items]:
        folder = host.snapshot.folder(f"{CPUS}/vulnerabilities").items()
        found = {name: text for name, text in folder if isinstance(text, str)}
        return {cpu_model(host) or "CPU": found} if found else {}
