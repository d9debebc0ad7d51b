"""The simfabric test bed beside the checkout: simulated fabrics with known faults, on which the real engine runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fablint.measure.engine import find_sources, translation_units
from fablint.model import Cable, Routing, Switch, Topology

BED = Path(__file__).parents[3] / "shared" / "simfabric"

Truth = dict[str, Any]

NEEDS_SIMGRID = [
    pytest.mark.skipif(not (BED / "simfabric").exists(), reason="the simfabric test bed is not beside the checkout"),
    pytest.mark.skipif(shutil.which("smpicxx") is None, reason="no smpicxx: SimGrid is not installed"),
]


def build_smpi_engine(folder: Path) -> Path:
    """The engine as SMPI runs it: a shared object that simfabric loads once per rank."""
    sources = find_sources()
    objects = []
    compilers = []
    for number, unit in enumerate(translation_units(sources)):
        objects.append(folder / f"{number}.o")
        argv = ["smpicxx", "-std=c++17", "-O1", "-fPIC", f"-I{sources}", "-c", str(unit), "-o", str(objects[-1])]
        compilers.append(subprocess.Popen(argv))
        if len(compilers) % 2 == 0:  # as many at a time as CI has cores
            assert all(compiler.wait() == 0 for compiler in compilers)
    assert all(compiler.wait() == 0 for compiler in compilers)
    engine = folder / "fablint-engine"
    subprocess.run(["smpicxx", *map(str, objects), "-o", str(engine)], check=True)
    return engine


def make_fabric(folder: Path, fabric: Sequence[str]) -> Truth:
    """`net.so` and what belongs to it, and the bed's truth about its faults."""
    argv = [sys.executable, str(BED / "simfabric.py"), "make", *fabric, "-o", "net.so"]
    subprocess.run(argv, cwd=folder, env=_environ(folder), check=True, capture_output=True)
    truth: Truth = json.loads((folder / "net.truth.json").read_text())
    return truth


def run_engine(folder: Path, engine: Path, arguments: Sequence[str], limit_s: float = 900) -> None:
    """The engine on the fabric in `folder`."""
    argv = [sys.executable, str(BED / "simfabric.py"), "run", "--platform", "net.so", "--", str(engine), *arguments]
    done = subprocess.run(argv, cwd=folder, env=_environ(folder), capture_output=True, text=True, timeout=limit_s)
    assert done.returncode == 0, done.stderr


def _environ(folder: Path) -> dict[str, str]:
    return {"SIMFABRIC_CACHE": str(folder.parent), "PATH": "/usr/bin:/bin", "HOME": str(folder)}


def simfabric() -> ModuleType:
    """The bed as a module."""
    sys.path.insert(0, str(BED))
    try:
        import simfabric
    finally:
        sys.path.remove(str(BED))
    return simfabric  # type: ignore[no-any-return]


def topology_of(folder: Path) -> Topology:
    """What an administrator would write down about the fabric in `folder`.

    Forwarding tables where the bed has them; where it hashes, as much as an administrator knows.
    """
    fabric = simfabric().Fabric.load_fab(str(folder / "net.fab"))
    names = [switch["name"] for switch in fabric.switches]
    ends = [link.name.split("#")[0].split(">") for link in fabric.links]
    between = [(a, b) for a, b in ends if a in names and b in names]
    cables = [pair for index, pair in enumerate(between) if pair[::-1] not in between[:index]]
    return Topology(
        {switch["name"]: Switch(switch["name"], str(switch["group"])) for switch in fabric.switches},
        {host["name"]: names[host["sw"]] for host in fabric.hosts},
        tuple(Cable(a, b) for a, b in dict.fromkeys(cables)),
        routing=Routing("ecmp") if fabric.opt["select"] == "ecmp" else Routing("tables", tables=_tables(fabric, names)),
    )


def _tables(fabric: Any, names: Sequence[str]) -> dict[str, dict[str, str]]:
    tables: dict[str, dict[str, str]] = {name: {} for name in names}
    for number, host in enumerate(fabric.hosts):
        for at, name in enumerate(names):
            if (at, host["sw"]) in fabric.via and at != host["sw"]:
                tables[name][host["name"]] = names[fabric.links[fabric.pick(at, host["sw"], 0, number)].b]
    return tables
