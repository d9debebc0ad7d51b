"""The outputs of other tools that the importers are tested on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fablint.model import Row, Run

FIXTURES = Path(__file__).parents[1] / "fixtures"
COMET = FIXTURES / "osu" / "osu_latency-4.4.1-comet-21.txt"
NETSAN_VERBOSE = FIXTURES / "net_sanitizer" / "net_sanitizer-readme-verbose.txt"
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
