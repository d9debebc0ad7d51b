"""Instructions per message of the transport verbs and of ib_send_lat, around the calls of libibverbs.

A device has no part in them: both programs run over a fake of libibverbs (engine/tests/fakes/fake_verbs.cpp), whose
queue pairs are connected to themselves, and gdb counts every instruction between its calls. The figures are the same in
every run. What ib_send_lat does in addition between a message and its answer, the call that posts a receive, is not
counted; verbs posts it while it waits.

    python benchmarks/verbs_instructions     # needs gdb; ib_send_lat where perftest is installed
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENGINE, BUILD = ROOT / "engine", ROOT / "build" / "counted"
COUNTER = HERE / "counter.py"
CASE = "--test-case=verbs*ping-pong*"  # 1000 messages of 8 bytes, then as many of 4 KiB
SIZES = {8: 300, 4096: 1300}  # and the messages of the case before those that are counted
PORT = 19870


def count(command: Sequence[str | Path], skip: int, preloaded: Path | None = None) -> str:
    """A line of figures: between a message and its answer, and of a whole message."""
    preload = [] if preloaded is None else ["-ex", f"set environment LD_PRELOAD {preloaded}"]
    words = ["gdb", "-batch", *preload, "-x", COUNTER, "--args", *command]
    environ = os.environ | {"SKIP": str(skip)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environ)
    lines = [line for line in done.stdout.splitlines() if line.startswith("instructions ")]
    if not lines:
        raise SystemExit(done.stdout + done.stderr)
    answer, whole = lines[-1].split()[1:]
    return f"{answer:>8} {whole:>8}"


def count_perftest(program: str, fake: Path, size: int) -> str:
    words = [program, "-F", "-n", "2000", "-s", str(size), "-p", str(PORT + size % 10)]
    environ = os.environ | {"LD_PRELOAD": str(fake), "FAKE_VERBS_MESSAGE": "1"}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ) as server:
        time.sleep(2)
        try:
            return count([*words, "127.0.0.1"], 300, fake)
        finally:
            server.kill()


def main() -> None:
    if shutil.which("gdb") is None:
        raise SystemExit("gdb is not installed: nothing is counted")
    targets = [BUILD / "unit_tests", "fake_drivers"]
    subprocess.run(["make", "-s", "-j2", "-C", ENGINE, f"BUILD={BUILD}", *targets], check=True)
    print(f"{'instructions':<12} {'bytes':>6} {'answer':>8} {'message':>8}")
    for size, skip in SIZES.items():
        print(f"{'verbs':<12} {size:>6} {count([BUILD / 'unit_tests', CASE], skip)}", flush=True)
    program = shutil.which("ib_send_lat")
    if program is None:
        print("ib_send_lat is not installed (Debian: perftest)", file=sys.stderr)
        return
    fake = BUILD / "fake" / "libibverbs-preloaded.so"  # a name of its own: the library itself is loaded too
    subprocess.run(
        ["c++", "-std=c++17", "-O1", "-fPIC", "-shared", "-o", fake, ENGINE / "tests/fakes/fake_verbs.cpp"],
        check=True,
    )
    for size in SIZES:
        print(f"{'ib_send_lat':<12} {size:>6} {count_perftest(program, fake, size)}", flush=True)


if __name__ == "__main__":
    main()
