"""What the tests of discovery share: samples, hosts that answer, a machine without programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fablint.discover.discovering import Discovered, discover, read_files
from fablint.discover.facts import Facts
from fablint.discover.sources import Saved, read_saved
from fablint.model import Answer
from fablint.system import System

SAMPLES = Path(__file__).parents[1] / "fixtures" / "discover"


class BareFakeSystem(System):
    """A machine that has none of the programs that know a fabric."""

    def which(self, name: str) -> Path | None:
        return None


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def facts(name: str, device: str = "") -> Facts:
    """What a sample says."""
    return read_saved(Saved(name, sample(name), device))[1]


def discovered(*files: str, answers: Sequence[Answer] = (), hosts: Sequence[str] = (), **more: Any) -> Discovered:
    """Samples (`NAME`, `DEVICE=NAME`) and answers, merged."""
    named = [f"{device}{mark}{SAMPLES / name}" for device, mark, name in (_split(file) for file in files)]
    return discover(BareFakeSystem(), answers, read_files(named), hosts, **more)


def _split(file: str) -> tuple[str, str, str]:
    device, mark, name = file.rpartition("=")
    return device, mark, name


def probed(host: str, lldp: str = "", **document: Any) -> Answer:
    """A host's answer as the probe prints it: `nics`, `infiniband`, `cxi`; `lldp` is lldpcli's output."""
    said = {"output": lldp} if lldp else {"error": "not installed"}
    text = json.dumps({"fablint_probe": 1, "host": host, "lldp": {"lldpcli": said}, **document})
    lines = [f"fablint:{text[start : start + 400]}.\n" for start in range(0, len(text), 400)]
    return Answer(host, "Welcome to this cluster.\n" + "".join(lines))


def nic(name: str = "hsn0", **fact: Any) -> dict[str, Any]:
    """A NIC as the probe prints it."""
    usual = {"mac": "02:11:22:33:44:55", "mtu": 9000, "speed": 200000, "operstate": "up", "carrier": "1", "type": "1"}
    return {"name": name, **usual, "addresses": [], **fact}


def lldp(*heard: tuple[str, str, str], mac: str = "") -> str:
    """lldpcli's json0 for neighbours, each (port, switch, its port)."""
    identity = [{"type": "mac", "value": mac}] if mac else None
    entries = [
        {
            "name": port,
            "via": "LLDP",
            "chassis": [{"name": [{"value": switch}], "capability": [{"type": "Bridge", "enabled": True}]}],
            "port": [{"id": identity or [{"type": "ifname", "value": there}], "descr": [{"value": there}]}],
        }
        for port, switch, there in heard
    ]
    return json.dumps({"lldp": [{"interface": entries}]}, indent=2)
