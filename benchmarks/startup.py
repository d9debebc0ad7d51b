"""How long whole commands take from start to end, beside what cannot be avoided: Python, and the launcher.

    python benchmarks/startup.py [--repetitions 15] [--before FOLDER]

Processes alternate, so that a disturbance of the machine affects all equally. Wall time is from the start of a process
to its end; CPU time is user and system time of it and its children. `python` is the same interpreter that does nothing,
`launcher` starts two processes of `true`, and `MPI` the engine with `--version`: two ranks that initialise MPI and end.
`engine` is `bench` without fablint: the same engine with the same plan. On a busy machine CPU times and ratios mean
something, wall times do not. `--before` names another checkout of fablint, whose commands take turns with these.
Engines are built before, where FABLINT_HOME has none.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fablint.measure import NoProgress, build_engine, find_launchers
from fablint.model import Plan
from fablint.store import read_run
from fablint.system import System

ROOT = Path(__file__).parents[1]
BENCH = ("bench", "osu_latency", "--sizes", "8", "-i", "100")
RUN = "small.run"
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "fablint --help": ("--help",),
    "fablint bench osu_latency": BENCH,
    "fablint show": ("show", RUN),
    "fablint report --table osu": ("report", RUN, "--table", "osu"),
    "fablint analyse": ("analyse", RUN),
    "fablint report": ("report", RUN, "-o", "page.html"),
}
STATUSES = (0, 3)  # a verdict on two ranks of one host is `incomplete`


@dataclass
class Program:
    """A command line with the times of its repetitions, in seconds."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    text: str = ""
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def run(self, folder: Path) -> None:
        """Run it once in `folder`; a program that fails ends the benchmark."""
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            self.argv, cwd=folder, env=self.environ, input=self.text, capture_output=True, text=True, check=False
        )
        self.wall.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if done.returncode not in STATUSES:
            sys.exit(f"{' '.join(self.argv)}: status {done.returncode}: {done.stderr}")


def fablint(source: Path, words: Sequence[str]) -> Program:
    """The command of the checkout `source`."""
    environ = {**os.environ, "PYTHONPATH": str(source / "src")}
    return Program([sys.executable, "-m", "fablint.cli", *words], environ)


def floors(plan: str) -> dict[str, Program]:
    """What cannot be avoided: Python, the launcher, MPI, the engine. `plan` is the row that `bench` measured."""
    system = System()
    engine = build_engine(system, NoProgress())
    launcher = find_launchers(system, engine.mpicxx, engine.libraries).launchers[0]
    two = Plan(2, ())
    environ = {**os.environ, **launcher.kind.environ(oversubscribed=len(system.affinity()) < 2, unbound=False)}
    measuring = [str(engine.path), "--plan", "-", "-o", "engine.run", "--expect-ranks", "2"]
    commands = {
        "launcher": ["true"],
        "MPI": [str(engine.path), "--expect-ranks", "2", "--version"],
        "engine": measuring,
    }
    started = {
        name: Program(launcher.argv(system, two, command), environ, plan if name == "engine" else "")
        for name, command in commands.items()
    }
    return {"python": Program([sys.executable, "-c", "pass"], os.environ), **started}


def modules_of(program: Program, folder: Path) -> int:
    """How many modules a command of fablint imports."""
    argv = [program.argv[0], "-X", "importtime", *program.argv[1:]]
    done = subprocess.run(argv, cwd=folder, env=program.environ, capture_output=True, text=True, check=False)
    return sum(line.startswith("import time:") for line in done.stderr.splitlines()) - 1  # less the headline


def line(name: str, program: Program, python: Program, modules: int | None) -> str:
    """Median and quartiles of the wall time, median CPU time, and its ratio to Python's."""
    low, middle, high = statistics.quantiles(program.wall, n=4)
    cpu, least = statistics.median(program.cpu), statistics.median(python.cpu)
    return (
        f"{name:<34}{1e3 * middle:8.0f}  [{1e3 * low:.0f}, {1e3 * high:.0f}]".ljust(60)
        + f"{1e3 * min(program.wall):6.0f}{1e3 * cpu:8.0f}{cpu / least:8.1f}"
        + (f"{modules:9d}" if modules is not None else "")
    )


def front_end(bench: Program, engine: Program) -> str:
    """The share of `bench` that is not the engine's: the median of the differences of neighbours in time."""
    difference = [whole - part for whole, part in zip(bench.wall, engine.wall, strict=True)]
    low, middle, high = statistics.quantiles(difference, n=4)
    ratio = statistics.median(bench.wall) / statistics.median(engine.wall)
    return (
        f"front end of bench (whole less engine): {1e3 * middle:.0f} ms [{1e3 * low:.0f}, {1e3 * high:.0f}], "
        f"whole / engine {ratio:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--before", type=Path, help="another checkout of fablint to compare with")
    arguments = parser.parse_args()
    sources = {"": ROOT} | ({"before: ": arguments.before.absolute()} if arguments.before else {})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs: dict[str, Program] = {}
        for label, source in reversed(sources.items()):
            shutil.rmtree(folder / RUN, ignore_errors=True)
            fablint(source, [*BENCH, "-o", RUN]).run(folder)  # builds the engine
            programs = {f"{label}{name}": fablint(source, words) for name, words in COMMANDS.items()} | programs
        programs |= floors(f"{read_run(folder / RUN).rows[0].facts.options}\n")
        for _ in range(arguments.repetitions):
            for program in programs.values():
                program.run(folder)
                if program is programs["engine"]:
                    shutil.rmtree(folder / "engine.run")
        print(f"{'':<34}{'wall ms: median [quartiles]':<26}{'least':>6}{'CPU ms':>8}{'/ python':>9}{'modules':>8}")
        for title, program in programs.items():
            modules = modules_of(program, folder) if "fablint" in title else None
            print(line(title, program, programs["python"], modules))
        for label in sources:
            print(label + front_end(programs[f"{label}fablint bench osu_latency"], programs["engine"]))


if __name__ == "__main__":
    main()
