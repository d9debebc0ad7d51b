"""Facts that are equal on all hosts of a homogeneous fabric, and may distinguish a population of slower hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fablint.snapshot.host_snapshot import INFINIBAND, Snapshot

_CPU = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)
_IMAGE = re.compile(r'^PRETTY_NAME="?([^"\n]*)"?$', re.MULTILINE)
_DRIVER_INFO = re.compile(r"^(driver|version|firmware-version):\s*(\S.*)$", re.MULTILINE)
_MODULES = ("mlx5_core", "mlx4_core", "hfi1", "cxi_ss1", "bnxt_re", "irdma")


def host_facts(snapshot: Snapshot) -> dict[str, str]:
    """Return the facts of a host by name, in the order of their comparison, without unknown facts."""
    facts = {
        "NIC firmware": _firmware(snapshot),
        "NIC driver": _driver(snapshot),
        "CPU model": _match(_CPU, snapshot.read("/proc/cpuinfo")),
        "BIOS": snapshot.read("/sys/devices/virtual/dmi/id/bios_version") or "",
        "product": snapshot.read("/sys/devices/virtual/dmi/id/product_name") or "",
        "image": _match(_IMAGE, snapshot.read("/etc/os-release")),
        "kernel": snapshot.kernel,
    }
    return {name: value.strip() for name, value in facts.items() if value.strip()}


def _match(pattern: re.Pattern[str], text: str | None) -> str:
    match = pattern.search(text or "")
    return match.group(1).strip() if match else ""


def _firmware(snapshot: Snapshot) -> str:
    """Return the firmware of the InfiniBand devices, else of the Ethernet NICs."""
    devices = snapshot.folder(INFINIBAND)
    versions = [snapshot.read(f"{INFINIBAND}/{device}/fw_ver") or "" for device in sorted(devices)]
    return _distinct(versions) or _distinct(info.get("firmware-version", "") for info in _ethtool(snapshot))


def _driver(snapshot: Snapshot) -> str:
    """Return the modules with their own version, else the drivers of the NICs."""
    modules = ((name, snapshot.read(f"/sys/module/{name}/version")) for name in _MODULES)
    versions = _distinct(f"{name} {version}" for name, version in modules if version)
    drivers = ((info.get("driver", ""), info.get("version", "")) for info in _ethtool(snapshot))
    return versions or _distinct(f"{name} {version}".strip() for name, version in drivers)


def _ethtool(snapshot: Snapshot) -> list[Mapping[str, str]]:
    outputs = snapshot.commands_like("ethtool-i").values()
    return [dict(_DRIVER_INFO.findall(output.text)) for output in outputs if output.ran]


def _distinct(values: Iterable[str]) -> str:
    """Join the distinct values that are not empty."""
    return ", ".join(sorted({value.strip() for value in values if value.strip()}))
