"""A simulated InfiniBand fabric: ibsim and opensm on a fat tree that is written here, as an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

CLIENT = next(iter(sorted(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))), None)
TOOLS = ("ibnetdiscover", "ibqueryerrors", "sminfo")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
MISSING = [one for one in ("ibsim", "opensm", *TOOLS) if not shutil.which(one, path=PATH)]
MISSING += [] if CLIENT else ["libumad2sim.so"]
LEAF_PORTS, FIRST_UPLINK = 36, 21
_READY_S = 20.0


@dataclass
class Tree:
    """A fat tree: leaves of four hosts, two spines, two cables from each leaf to each spine. It can be damaged."""

    leaves: int = 3
    hosts_of_leaf: int = 4
    spines: int = 2
    rates: dict[tuple[str, int], str] = field(default_factory=dict)  # of (node, port), where it is not 4xEDR
    swapped: tuple[str, str] | None = None  # hosts whose cables are

    def cables(self) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
        """Both ends of each, the lower one first."""
        other = dict([self.swapped, self.swapped[::-1]]) if self.swapped else {}
        for number in range(self.leaves * self.hosts_of_leaf):
            leaf, port = divmod(number, self.hosts_of_leaf)
            host = f"node{number + 1:03d}"
            yield (other.get(host, host), 1), (f"leaf{leaf + 1}", port + 1)
        for leaf in range(self.leaves):
            for cable in range(2 * self.spines):
                yield (f"leaf{leaf + 1}", FIRST_UPLINK + cable), (f"spine{cable // 2 + 1}", 2 * leaf + cable % 2 + 1)

    def net_file(self) -> str:
        """The file that ibsim reads, which is what ibnetdiscover prints."""
        plugs: dict[str, dict[int, tuple[str, int, str]]] = {}
        for low, high in self.cables():
            rate = self.rates.get(low) or self.rates.get(high) or "4xEDR"
            for here, there in ((low, high), (high, low)):
                plugs.setdefault(here[0], {})[here[1]] = (*there, rate)
        records = []
        for node, ports in sorted(plugs.items(), key=lambda one: one[0].startswith("node")):
            head = [f"sysimgguid=0x{guid(node) + 3:x}"]
            if node.startswith("node"):
                head += [f"caguid=0x{guid(node):x}", f'Ca\t1 "{name(node)}"\t\t# "{node} mlx5_0"']
            else:
                head += [f"switchguid=0x{guid(node):x}({guid(node):x})"]
                head += [f'Switch\t{LEAF_PORTS} "{name(node)}"\t\t# "{node}" enhanced port 0 lid 1 lmc 0']
            for port, (far, far_port, rate) in sorted(ports.items()):
                own = f"({guid(node) + port:x})" if node.startswith("node") else ""
                their = f"({guid(far) + far_port:x})" if far.startswith("node") else ""
                head.append(f'[{port}]{own}\t"{name(far)}"[{far_port}]{their}\t\t# lid 1 lmc 0 "{far}" lid 1 {rate}')
            records.append("\n".join(["vendid=0x2c9", "devid=0x101b", *head]))
        return "\n\n".join(records) + "\n"


def guid(node: str) -> int:
    kind = {"n": 0xB, "l": 0xA, "s": 0xC}[node[0]]
    return 0x2C903 << 40 | kind << 20 | int(node.lstrip("nodelafspi")) << 4


def name(node: str) -> str:
    return f"{'H' if node.startswith('node') else 'S'}-{guid(node):016x}"


@dataclass
class Simulator:
    """A fabric that runs."""

    ibsim: subprocess.Popen[bytes]
    opensm: subprocess.Popen[bytes]
    environ: Mapping[str, str]  # with which the tools see it
    nodes: int

    def count(self, node: str, port: int, counter: str, value: int) -> None:
        """Set a counter of a port."""
        self._enter(f'PerformanceSet "{name(node)}"[{port}] PortCounters.{counter}={value}')
        self.wait_for_errors(f"[{counter} == {value}]")

    def leave_unanswered(self, node: str, port: int, attribute: int) -> None:
        """Drop all requests to a port for an attribute."""
        self._enter(f'Error "{name(node)}"[{port}] 100 {attribute}')

    def wait_for_errors(self, *words: str) -> None:
        """Wait until ibqueryerrors, in time on a busy machine, reaches every node and prints `words`."""
        wanted, end, said = [f"Summary: {self.nodes} nodes checked", *words], time.monotonic() + _READY_S, ""
        while not all(one in said for one in wanted):
            assert time.monotonic() < end, said
            argv = [shutil.which("ibqueryerrors", path=self.environ["PATH"]) or "ibqueryerrors"]
            said = subprocess.run(argv, env=self.environ, capture_output=True, text=True, check=False).stdout

    def _enter(self, line: str) -> None:
        assert self.ibsim.stdin is not None
        self.ibsim.stdin.write(f"{line}\n".encode())
        self.ibsim.stdin.flush()


@contextmanager
def simulated(tree: Tree, folder: Path) -> Iterator[Simulator]:
    """Run a fabric whose subnet manager is up. Both processes are gone afterwards."""
    (folder / "net").write_text(tree.net_file())
    environ = {**os.environ, "PATH": f"{_wrappers(folder)}:{PATH}", "SIM_HOST": name("node001")}
    environ |= {"IBSIM_SOCKNAME": f"fablint-{os.getpid()}-{folder.name}"}
    environ |= {"OSM_CACHE_DIR": str(folder), "OSM_TMP_DIR": str(folder)}
    started: list[subprocess.Popen[bytes]] = []

    def start(argv: list[str], log: str, **more: str) -> subprocess.Popen[bytes]:
        with (folder / log).open("wb") as output:
            command = [shutil.which(argv[0], path=PATH) or argv[0], *argv[1:]]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=folder, env={**environ, **more}
            )
        started.append(process)
        return process

    try:
        ibsim = start(["ibsim", "-s", "net"], "ibsim.log")
        _wait_for(folder / "ibsim.log", "simulator ready")
        opensm = start(["opensm", "-e", "-f", str(folder / "osm.log")], "opensm.log", LD_PRELOAD=str(CLIENT))
        _wait_for(folder / "osm.log", "Entering MASTER state")
        simulator = Simulator(ibsim, opensm, environ, tree.leaves * (1 + tree.hosts_of_leaf) + tree.spines)
        simulator.wait_for_errors()  # every node answers at the address of the subnet manager
        yield simulator
    finally:
        for process in reversed(started):  # opensm does not end after the simulator
            process.kill()
            process.wait()


def _wrappers(folder: Path) -> Path:
    """A folder of the tools as they are, but for the library that leads them into the simulator."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for tool in TOOLS:
        script = bin_folder / tool
        real = shutil.which(tool, path=PATH)
        script.write_text(f'#!/bin/sh\ncd "{folder}" && LD_PRELOAD={CLIENT} exec {real} "$@"\n')
        script.chmod(0o755)
    return bin_folder


def _wait_for(log: Path, words: str) -> None:
    end = time.monotonic() + _READY_S
    while time.monotonic() < end:
        if log.exists() and words in log.read_text(errors="replace"):
            return
        time.sleep(0.1)
    raise AssertionError(f"{log.name} never said {words!r}: {log.read_text(errors='replace')[-500:]}")
