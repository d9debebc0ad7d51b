"""The outputs of other tools that the importers are tested on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fablint.model import Row, Run
from fablint.store import import_run

FIXTURES = Path(__file__).parents[1] / "fixtures"
COMET = FIXTURES / "osu" / "osu_latency-4.4.1-comet-21.txt"
NETSAN_VERBOSE = FIXTURES / "net_sanitizer" / "net_sanitizer-readme-verbose.txt"
NCCL_HEAD = """# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#  Rank  0 Pid 71 on  n1 device  0 [0x01] NVIDIA H100
#  Rank  1 Pid 72 on  n1 device  1 [0x02] NVIDIA H100
#  Rank  2 Pid 44 on  n2 device  0 [0x01] NVIDIA H100
#  Rank  3 Pid 45 on  n2 device  1 [0x02] NVIDIA H100
"""
NCCL_END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.0\n"
FAULTY = FIXTURES / "mpigraph" / "faulty-np8.mpigraph.txt"


def text_of(family: str, name: str) -> str:
    return (FIXTURES / family / name).read_text()


def texts(family: str) -> list[str]:
    """Names of all files of a family."""
    return sorted(path.name for path in (FIXTURES / family).iterdir() if path.name != "README.md")


def files(*families: str) -> list[Path]:
    """All files of these families."""
    return [FIXTURES / family / name for family in families for name in texts(family)]


def means(row: Row, size: int | None = None) -> np.ndarray:
    """(n, n) mean seconds of the pairs of a matrix row at one size, the first repeat."""
    return np.asarray(row.arrays["time_mean"])[0, :, :, 0 if size is None else row.sizes.index(size)]


def by_host(run: Run, row: Row, hosts: list[str], size: int) -> np.ndarray:
    """(n, n) mean seconds between these hosts, whatever the order and the layout of the run; NaN where unknown."""
    at = {host: index for index, host in enumerate(hosts)}
    place = [at[host] for host in run.rank_host]
    found = np.full((len(hosts), len(hosts)), np.nan)
    if row.layout == "list":
        times, partner = np.asarray(row.arrays["time_mean"]), np.asarray(row.arrays["dst"])
        for src, column in zip(*np.nonzero(partner >= 0), strict=True):
            found[place[src], place[partner[src, column]]] = times[src, column, row.sizes.index(size)]
        return found
    found[np.ix_(place, place)] = means(row, size)
    return found


def written(folder: Path, text: str, hosts: list[str] | None = None) -> Run:
    """The run of a text, imported from a file in a folder."""
    path = folder / "output.txt"
    path.write_text(text)
    return import_run([path], hosts or [])


def times_of(row: Row) -> list[float]:
    """All mean seconds of a row, in order."""
    times = np.asarray(row.arrays["time_mean"]).ravel()
    return [float(time) for time in times if np.isfinite(time)]
