"""What the tests of discovery share: samples, hosts that answer, a machine without programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fablint.discover.discovering import DiscoveredFabric, discover, read_files
from fablint.discover.facts import Facts
from fablint.discover.sources import SavedOutput, read_saved
from fablint.model import Answer
from fablint.snapshot import read_answers
from fablint.system import System
from snapshot_trees import nested, printed

SAMPLES = Path(__file__).parents[1] / "fixtures" / "discover"


class BareFakeSystem(System):
    """A machine that has none of the programs that know a fabric."""

    def which(self, name: str) -> Path | None:
        return None


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def facts(name: str, device: str = "") -> Facts:
    """What a sample says."""
    return read_saved(SavedOutput(name, sample(name), device))[1]


def discovered(*files: str, answers: Sequence[Answer] = (), hosts: Sequence[str] = (), **more: Any) -> DiscoveredFabric:
    """Samples (`NAME`, `DEVICE=NAME`) and answers, merged."""
    named = [f"{device}{mark}{SAMPLES / name}" for device, mark, name in (_split(file) for file in files)]
    return discover(BareFakeSystem(), read_answers(answers), read_files(named), hosts, **more)


def _split(file: str) -> tuple[str, str, str]:
    device, mark, name = file.rpartition("=")
    return device, mark, name


def says(host: str, lldp: str = "", nics: Sequence[dict[str, str]] = (), **more: Any) -> Answer:
    """A host's answer as it prints its snapshot; `lldp` is lldpcli's output, `more` replaces parts of the snapshot."""
    said = {"output": lldp, "status": 0} if lldp else {"error": "not installed"}
    files = {path: text for nic in nics for path, text in nic.items()}
    document = {"fablint_snapshot": 1, "files": nested(files), "commands": {"lldpcli": said}, **more}
    return Answer(host, printed(document))


def nic(name: str = "hsn0", **values: str) -> dict[str, str]:
    """Files of a NIC."""
    usual = {"address": "02:11:22:33:44:55", "mtu": "9000", "speed": "200000", "operstate": "up", "carrier": "1"}
    return {f"/sys/class/net/{name}/{key}": value for key, value in {**usual, "type": "1", **values}.items()}


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
