"""The vcluster test bed beside the checkout: a virtual cluster of network namespaces with real Slurm and LLDP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "shared" / "vcluster" / "vcluster"
_NETWORK = ("ip", "tc", "bridge", "nsenter", "nft")
_SLURM = ("slurmctld", "slurmd", "munged", "scontrol")
_LLDP = ("lldpd", "lldpcli")
_NUMBERS = count()


@dataclass(frozen=True)
class Cluster:
    """A virtual cluster that is up. Nodes are `head`, its hosts and its switches."""

    name: str

    def command(self, argv: Sequence[str | Path], node: str = "head") -> list[str]:
        """What runs a program on a node: for a process that the test wants to steer itself."""
        return [str(PROGRAM), "-c", self.name, "exec", node, "--", *map(str, argv)]

    def run(
        self,
        argv: Sequence[str | Path],
        node: str = "head",
        timeout: float = 60,
        text: str = "",
        cwd: Path | None = None,
        **environ: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on a node to its end, with `text` on its stdin; returns status, stdout and stderr."""
        return subprocess.run(
            self.command(argv, node),
            input=text,
            cwd=cwd,
            env=os.environ | environ,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def control(self, *words: str) -> str:
        """A command of the test bed itself: `control("slurm", "down")`; returns what it printed."""
        return _call("-c", self.name, *words)

    def topology(self) -> dict[str, Any]:
        """The wiring, the truth to test against: `hosts`, `switches`, `links`."""
        truth: dict[str, Any] = json.loads(self.control("topology", "--format", "json"))
        return truth

    def fault(self, kind: str, target: str, *options: str) -> None:
        """Put a fault on a part: `fault("mtu", "nid001003", "--mtu", "1500", "--dir", "tx")`."""
        self.control("fault", "add", kind, target, *options)

    def heal(self) -> None:
        """Take all faults away."""
        self.control("fault", "clear")


def why_not(slurm: bool = False, lldp: bool = False) -> str:
    """Why there can be no such cluster here; empty where there can be one."""
    if not PROGRAM.exists():
        return "the vcluster test bed is not beside the checkout"
    programs = _NETWORK + (_SLURM if slurm else ()) + (_LLDP if lldp else ())
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return "" if os.geteuid() == 0 else "Slurm, LLDP and network namespaces need root"


@contextmanager
def cluster(
    name: str,
    groups: int = 2,
    switches: int = 2,
    hosts: int = 2,
    slurm: bool = True,
    lldp: bool = True,
    private_tmp: bool = False,
) -> Iterator[Cluster]:
    """A cluster of `groups` x `switches` per group x `hosts` per switch for as long as the block lasts.

    With `private_tmp` each host has a /tmp of its own; the login node has that of the machine.

    Skips the test where the machine cannot have one. The name is made unique; two at once do not disturb each other.
    """
    if reason := why_not(slurm, lldp):
        pytest.skip(reason)
    made = Cluster(f"t{os.getpid()}-{next(_NUMBERS)}-{name}"[:30])
    shape = ("--groups", groups, "--switches-per-group", switches, "--hosts-per-switch", hosts)
    shape += ("--private-tmp",) if private_tmp else ()
    try:
        _call("up", *shape, "--name", made.name, "--ttl", "30m")
        if slurm:
            made.control("slurm", "up")
        if lldp:
            made.control("lldp", "up", "--interval", "2")
        yield made
    finally:
        _call("down", made.name)


StartCluster = Callable[..., AbstractContextManager[Cluster]]  # `cluster`, which tests have from a fixture


def _call(*words: object) -> str:
    argv = [str(PROGRAM), *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr}{done.stdout}"
    return done.stdout
