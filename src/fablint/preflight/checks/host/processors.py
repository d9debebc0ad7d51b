"""Checks of CPU model, microcode, and mitigations of CPU vulnerabilities."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import Check, UniformCheck
from fablint.preflight.checks.host.settings import CPUS
from fablint.preflight.checks.items import Items, ItemsCheck
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.host_classes import OWN_CLASS
from fablint.text.sanitise import shortened

_FIELD = re.compile(r"^(model name|microcode|CPU part)\s*:\s*(\S.*)$", re.MULTILINE)
_NOISE = re.compile(r"\((?:R|TM|r|tm)\)|\bCPU\b|\bProcessor\b|@ .*|\b\d+-Core\b")


@lru_cache(maxsize=4096)
def _fields(text: str) -> Mapping[str, str]:
    return dict(_FIELD.findall(text))


def cpu_model(host: Host) -> str | None:
    """Return the CPU model, such as `Intel Xeon Platinum 8480+`; on Arm the part number; None if unknown."""
    fields = _fields(host.read("/proc/cpuinfo") or "")
    name = fields.get("model name") or (f"CPU part {fields['CPU part']}" if "CPU part" in fields else "")
    return shortened(_NOISE.sub(" ", name), 40) or None


class CpuModel(Check):
    id = "host.cpu.model"
    what = "the CPU of the host"
    source = "/proc/cpuinfo, model name"
    rule = f"the model of most hosts with the same machine and cards; {OWN_CLASS} hosts with another CPU are a class"
    severity = Severity.WARN
    component = "host"
    remedy = "check whether the CPU is intended; the host is not compared with other hosts"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        like: dict[Hashable, list[tuple[str, str]]] = defaultdict(list)
        for host in fleet.hosts:
            model = cpu_model(host)
            if model is None:
                yield self.skip(host.name, "", "/proc/cpuinfo does not report it")
            else:
                maker = model.partition(" ")[0]  # a CPU of another vendor needs another board
                like[host.machine, maker, host.built.cards].append((host.name, model))
        for known in like.values():
            agreed = Agreement.of([model for _, model in known])
            counts = dict(agreed.values)
            for name, model in known:
                if agreed.is_clear and model != agreed.usual and counts[model] < OWN_CLASS:
                    message = f"{model}, {agreed.count} others of this machine and cards {agreed.usual}"
                    yield self.failure(name, "", message, model, agreed.usual)
                else:
                    yield self.ok(name, value=model)


class Microcode(UniformCheck):
    id = "host.microcode"
    what = "the microcode version of the CPUs"
    source = "/proc/cpuinfo, microcode"
    rule = "the same as on most similar hosts with this CPU"
    severity = Severity.WARN
    component = "config"
    remedy = "install the same BIOS and microcode package, and reboot"
    words = "microcode {}"
    absent = "/proc/cpuinfo reports no microcode"

    def values(self, host: Host) -> Mapping[str, Any]:
        version = _fields(host.read("/proc/cpuinfo") or "").get("microcode")
        return {cpu_model(host) or "CPU": shortened(version, 20)} if version else {}


class Mitigations(ItemsCheck):
    id = "host.mitigations"
    what = "the kernel's mitigations of CPU vulnerabilities"
    source = f"{CPUS}/vulnerabilities/*"
    rule = "the same as on most similar hosts with this CPU"
    severity = Severity.WARN
    component = "config"
    remedy = "boot with the same mitigations= option, kernel and microcode on all hosts"
    words = "{}"
    absent = "the kernel does not report it"

    def items(self, host: Host) -> Mapping[str, Items]:
        folder = host.snapshot.folder(f"{CPUS}/vulnerabilities").items()
        found = {name: text for name, text in folder if isinstance(text, str)}
        return {cpu_model(host) or "CPU": found} if found else {}
