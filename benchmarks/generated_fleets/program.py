"""`fablint preflight` as a user runs it: on a file of snapshots, with its JSON, its time and its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SAMPLE_S = 0.2
_FABLINT = (sys.executable, "-m", "fablint.cli", "preflight")


@dataclass(frozen=True)
class Run:
    """One run of the program."""

    status: int
    head: Mapping[str, Any]  # of its JSON, without `results`
    wrong: tuple[tuple[str, str, str, str], ...]  # host, target, outcome and check of what does not hold
    wall_s: float
    cpu_s: float
    peak_bytes: int  # of all its processes: resident pages, those that several share divided among them


def preflight(folder: Path, snapshots: Path, topology: Path | None = None) -> Run:
    """Judge saved snapshots. Raises CalledProcessError where the program did not come to a result."""
    argv = [*_FABLINT, "--snapshot", str(snapshots), "--json", *(["--topology", str(topology)] if topology else [])]
    output = folder / "preflight.json"
    begun = time.perf_counter()
    with output.open("wb") as stream:
        process = subprocess.Popen(argv, stdout=stream, env={**os.environ, "FABLINT_HOME": str(folder / "home")})
        peak = 0
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            peak = max(peak, sum(map(_pss, [process.pid, *_children(process.pid)])))
            time.sleep(_SAMPLE_S)
        _, waited, usage = ended
    wall_s = time.perf_counter() - begun
    status = os.waitstatus_to_exitcode(waited)
    if status not in (0, 1, 3):
        raise subprocess.CalledProcessError(status, argv)
    head, wrong = _read(output)
    output.unlink()
    return Run(status, head, tuple(wrong), wall_s, usage.ru_utime + usage.ru_stime, peak)


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _pss(pid: int) -> int:
    """Bytes; 0 of a process that has ended."""
    with suppress(OSError, ValueError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
        return int(rollup[rollup.index("Pss:") + 1]) << 10
    return 0


def _read(path: Path) -> tuple[Mapping[str, Any], list[tuple[str, str, str, str]]]:
    """Line by line: results are one on each, and of 10,000 hosts half a gigabyte."""
    with path.open(encoding="utf-8") as stream:
        head = json.loads("".join(_head(stream)) + "]}")
        rows = (json.loads(line.rstrip().rstrip(",")) for line in stream if line.startswith("    {"))
        bad = [row for row in rows if row["outcome"] in ("FAIL", "WARN", "ERROR")]
    return head, [(row["host"], row["target"], row["outcome"], row["check"]) for row in bad]


def _head(stream: Iterator[str]) -> Iterator[str]:
    for line in stream:
        yield line
        if line.startswith('  "results": ['):
            return
