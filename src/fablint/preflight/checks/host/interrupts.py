"""Check of the CPUs that serve the interrupts of NICs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import uniform
from fablint.preflight.judges.outputs import NO_PCI_DEVICE
from fablint.snapshot.parsers.tallies import cpu_set, tallied

_SPREAD = "on several CPUs"
_LEAST = 4  # interrupts of a NIC, for a result


def _nic_interrupts(host: Host) -> Mapping[str, Any]:
    return {
        name: _place(host.read(f"{folder}/msi_irqs/*"), host.read(f"{folder}/local_cpulist"))
        for name, folder in host.fabric_devices.items()
    }


NIC_INTERRUPTS = Check(
    id="host.irq",
    what="the CPUs that serve interrupts of every fabric device",
    source="DEVICE/msi_irqs, /proc/irq/*/effective_affinity_list, DEVICE/local_cpulist",
    rule="on several CPUs, and not all on another NUMA node; one warning for all hosts if most have this setting",
    remedy="start irqbalance, or run the affinity script of the driver, such as set_irq_affinity.sh",
    judge=uniform(_nic_interrupts, "interrupts {}", absent=NO_PCI_DEVICE, is_poor=lambda value: bool(value != _SPREAD)),
)


@lru_cache(maxsize=4096)
def _place(text: str | None, near: str | None) -> str | None:
    """Describe the CPUs that serve the interrupts; None if there are too few interrupts or no data."""
    served = tallied(text)
    if sum(served.values()) < _LEAST:
        return None
    cpus = [cpu_set(one) for one in served]
    if len(served) == 1 and len(cpus[0]) == 1:
        return "all on one CPU"
    local = cpu_set(near or "")
    if local and not any(local & one for one in cpus):
        return "all on another NUMA node"
    return _SPREAD
