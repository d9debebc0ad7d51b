"""Fleets as sites have them: of one machine, of two settings, of several machines. All of their hosts are healthy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from generated_fleets.documents import Fleet
from generated_fleets.machines import (
    CPU_HOST,
    ETHERNET,
    INFINIBAND,
    LARGE_HOST,
    LOGIN,
    MACHINES,
    ROCE,
    SLINGSHOT,
    SUPER_CPU,
    SUPER_GPU,
    SUPER_HDR,
    Machine,
)

_NEWER = replace(SLINGSHOT, driver_version="2.2.0", firmware="1.5.60", kernel="5.14.0-503.11.1.el9_5.x86_64")
_ONE = 0.0  # one host
_MIXES: Mapping[str, tuple[Machine, tuple[tuple[Machine, float], ...]]] = {
    **{f"one class: {name}": (machine, ()) for name, machine in MACHINES.items()},
    "MTU 9000 and 1500, 11:9": (ETHERNET, ((replace(ETHERNET, mtu=1500), 9 / 20),)),
    "BIOS, 11:9": (ROCE, ((replace(ROCE, bios="2.3"), 9 / 20),)),
    "an update in progress, 60:40": (SLINGSHOT, ((_NEWER, 0.4),)),
    "three classes and a login node": (INFINIBAND, ((CPU_HOST, 0.3), (LARGE_HOST, 0.1), (LOGIN, _ONE))),
    "Super Server with and without GPUs": (SUPER_GPU, ((SUPER_CPU, 0.25),)),
    "Super Server, mostly without GPUs": (SUPER_CPU, ((SUPER_GPU, 0.2),)),
    "NDR and HDR cards in one chassis": (SUPER_GPU, ((SUPER_HDR, 0.3),)),
}
MIXES = tuple(_MIXES)


def fleet_of(mix: str, hosts: int, *, seed: int = 1, lines: int = 20, level: str = "quick") -> Fleet:
    """A fleet of so many hosts."""
    machine, others = _MIXES[mix]
    return Fleet(machine, hosts, seed, lines, level, others)
