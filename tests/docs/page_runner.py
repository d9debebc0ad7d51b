"""Runs the blocks of a page in one shell, in their order, in a folder that has what the page takes for granted."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from command_rules import as_run_here
from documented_commands import ROOT
from page_blocks import Block, blocks

FIXTURES = ROOT / "tests" / "fixtures"
FABLINT = Path(sys.executable).with_name("fablint")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fablint"
ENGINES = Path(os.environ.get("FABLINT_HOME") or CACHE) / "engines"  # those that `make dev` has built
SIMULATED = ("--fabric", "mesh", "--shape", "8x8", "--full", "--fault", "cable:s2=s5:-20%")  # as `fablint demo`
RUNS = ("night.run", "fablint-20260105-0230.run", "demo-fabric.run", "NAME.run")
SITE_FILE = """\
format = 1
[[threshold]]
scope = "any"
kernel = "bandwidth"
size = "1M"
value = "1 GB/s"
lower = "10%"
"""
OPTIONAL = {"dask"}  # libraries that only a page needs: its block is run where they are installed
_MARK = re.compile(r"^@@ (\d+) (\d+)$")


class Ran(NamedTuple):
    """A command that was run: as the page has it, as it was run, its exit code and what it printed."""

    where: str
    written: str
    command: str
    status: int
    output: str


def simulate(run: Path) -> None:
    """Write a run with its report, which stands for those that pages name."""
    for words in (["simulate", *SIMULATED, "-o", run], ["report", run]):
        subprocess.run([FABLINT, "-q", *words], check=False, capture_output=True)


def simulate_others(folder: Path) -> None:
    """Write a run of a few rounds, and three runs without a fault."""
    for seed in ("1", "2", "3"):
        words = ["simulate", "--host-count", "16", "--seed", seed, "-o", f"healthy-{seed}.run"]
        subprocess.run([FABLINT, "-q", *words], cwd=folder, check=True, capture_output=True)
    shutil.copytree(folder / "healthy-1.run", folder / "rounds.run")


def prepare(page: Path, simulated: Path, folder: Path) -> None:
    """Write the runs and files that a page takes for granted; copies of the simulated run, where it makes none."""
    made = {name for block in blocks(page) for line in block.lines for name in re.findall(r"-o (\S+)", line)}
    for name in RUNS:
        if name not in made:
            shutil.copytree(simulated / "demo-fabric.run", folder / name)
    for run in simulated.glob("[!d]*.run"):
        shutil.copytree(run, folder / run.name)
    shutil.copy(simulated / "demo-fabric.run" / "topology.yaml", folder / "fabric.yaml")
    shutil.copy(FIXTURES / "mpigraph" / "faulty-np8.mpigraph.txt", folder / "mpigraph.out")
    (folder / "home").mkdir()
    (folder / "home" / "engines").symlink_to(ENGINES)
    for name in {"site.toml", "other.toml"} - made:
        (folder / name).write_text(SITE_FILE)


def run_page(page: Path, folder: Path) -> list[Ran]:
    """Run all commands and all Python of a page."""
    steps = list(_steps(page))
    script = "".join(f"{command}\nprintf '\\n@@ {number} %d\\n' $?\n" for number, (_, _, command) in enumerate(steps))
    environ = {
        **os.environ,
        "PATH": f"{FABLINT.parent}:{os.environ['PATH']}",
        "INTERRUPTED": str(Path(__file__).with_name("interrupted.py")),
        "CHECKOUT": str(ROOT),
        "FIXTURES": str(FIXTURES),
        "PORT": str(_free_port()),
        "FABLINT_HOME": str(folder / "home"),
        "COLUMNS": "80",
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return [
        Ran(where, written, command, status, output)
        for (where, written, command), (status, output) in zip(steps, _results(done.stdout), strict=True)
    ]


def has_libraries(lines: Sequence[str]) -> bool:
    """Return whether the libraries are installed that a block of Python imports and an environment may lack."""
    imported = {line.split()[1].partition(".")[0] for line in lines if line.startswith(("import ", "from "))}
    return all(find_spec(name) is not None for name in imported & OPTIONAL)


def _free_port() -> int:
    """A port of this host that no program uses."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _steps(page: Path) -> Iterator[tuple[str, str, str]]:
    """Where a step stands, the line or block, and what is run for it."""
    for block in blocks(page):
        if block.kind == "python" and has_libraries(block.lines):
            code = "\n".join(_python_before(page, block)) + "\n"
            yield f"{block.page}:{block.line}", block.lines[0], f"python <<'END'\n{code}END"
        for number, line in enumerate(block.lines if block.kind == "shell" else (), block.line):
            command = as_run_here(line).command
            if command:
                yield f"{block.page}:{number}", line, command


def _python_before(page: Path, block: Block) -> Iterator[str]:
    """Lines of a block of Python; one that imports nothing goes on where the one before it ended."""
    if not block.lines[0].startswith("import"):
        before = [other for other in blocks(page) if other.kind == "python" and other.line < block.line]
        yield from _python_before(page, before[-1])
    yield from block.lines


def _results(printed: str) -> Iterator[tuple[int, str]]:
    lines: list[str] = []
    for line in printed.splitlines():
        mark = _MARK.match(line)
        if mark:
            yield int(mark[2]), "\n".join(lines).strip("\n")
            lines = []
        else:
            lines.append(line)
