"""Checks of CPU model, microcode, and mitigations of CPU vulnerabilities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import CPUS, Host
from fablint.preflight.host_classes import OWN_CLASS
from fablint.preflight.judges import uniform, uniform_settings
from fablint.preflight.judges.uniform import Settings, SettingsComparison
from fablint.text.sanitise import shortened


def _cpu_model(check: Check, fleet: Fleet) -> Iterator[Result]:
    like: dict[Hashable, list[tuple[str, str]]] = defaultdict(list)
    for host in fleet.hosts:
        model = host.cpu.short_model
        if not model:
            yield check.skip(host.name, "", "/proc/cpuinfo does not report it")
        else:
            maker = model.partition(" ")[0]  # a CPU of another vendor needs another board
            like[host.machine, maker, host.built.cards].append((host.name, model))
    for models in like.values():
        agreed = Agreement.of([model for _, model in models])
        counts = dict(agreed.values)
        for name, model in models:
            if agreed.is_clear and model != agreed.usual and counts[model] < OWN_CLASS:
                message = f"{model}, {agreed.count} others of this machine and cards {agreed.usual}"
                yield check.failure(name, "", message, model, agreed.usual)
            else:
                yield check.ok(name, value=model)


CPU_MODEL = Check(
    id="host.cpu.model",
    what="the CPU of the host",
    source="/proc/cpuinfo, model name",
    rule=f"the model of most hosts with the same machine and cards; {OWN_CLASS} hosts with another CPU are a class",
    component="host",
    remedy="check whether the CPU is intended; the host is not compared with other hosts",
    judge=Judge(_cpu_model),
)


def _microcode(host: Host) -> Mapping[str, Any]:
    version = host.cpu.microcode
    return {host.cpu.short_model or "CPU": shortened(version, 20)} if version else {}


MICROCODE = Check(
    id="host.microcode",
    what="the microcode version of the CPUs",
    source="/proc/cpuinfo, microcode",
    rule="the same as on most similar hosts with this CPU",
    remedy="install the same BIOS and microcode package, and reboot",
    judge=uniform(_microcode, "microcode {}", absent="/proc/cpuinfo reports no microcode"),
)


def _mitigations(host: Host) -> Mapping[str, Settings]:
    folder = host.snapshot.folder(f"{CPUS}/vulnerabilities").items()
    texts = {name: text for name, text in folder if isinstance(text, str)}
    return {host.cpu.short_model or "CPU": texts} if texts else {}


MITIGATIONS = Check(
    id="host.mitigations",
    what="the kernel's mitigations of CPU vulnerabilities",
    source=f"{CPUS}/vulnerabilities/*",
    rule="the same as on most similar hosts with this CPU",
    remedy="boot with the same mitigations= option, kernel and microcode on all hosts",
    judge=uniform_settings(SettingsComparison(_mitigations, "the kernel does not report it")),
)
