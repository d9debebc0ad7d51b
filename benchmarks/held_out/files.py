"""Measurements as the files that fablint imports: plain CSV and the output of mpiGraph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from held_out.fabrics import Fabric
from held_out.schedule import Schedule

Floats = npt.NDArray[np.float64]


def csv_text(
    fabric: Fabric,
    schedule: Schedule,
    quantity: str,
    figures: dict[int, Floats],
    timed: bool = True,
    digits: int = 4,
) -> str:
    """A line for each cell: MB/s of streams, us of half a round trip; NaN is a figure that cannot be read.

    Args:
        fabric: the hosts.
        schedule: P pairs.
        quantity: `bandwidth` or `latency`.
        figures: (P,) by message size, in the unit of the column.
        timed: with the columns `started` and `round`.
        digits: after the point.
    """
    column = "bandwidth" if quantity == "bandwidth" else "time_us"
    lines = [f"src,dst,size,{column}{',started,round' if timed else ''}"]
    for at, (i, j) in enumerate(zip(schedule.src.tolist(), schedule.dst.tolist(), strict=True)):
        when = f",{schedule.started[at]:.4f},{schedule.round[at]}" if timed else ""
        lines += [
            f"{fabric.hosts[i]},{fabric.hosts[j]},{size},{_figure(values[at], digits)}{when}"
            for size, values in figures.items()
        ]
    return "\n".join(lines) + "\n"


def _figure(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "timeout"


def mpigraph_text(fabric: Fabric, schedule: Schedule, size: int, mbytes_s: Floats) -> str:
    """A full matrix of streams, MiB/s; what was not measured is 0.000."""
    n = fabric.n
    table = np.zeros((n, n))
    table[schedule.src, schedule.dst] = np.nan_to_num(mbytes_s) * 1e6 / 2**20
    names = [f"{host}:{rank}" for rank, host in enumerate(fabric.hosts)]
    head = ["START mpiGraph v1.5", f"MsgSize\t{size}", "Times\t100", "Window\t4", f"Procs\t{n}", ""]
    lines = [*head, "Gathering results", ""]
    for word, preposition, values in (("Send", "to", table), ("Recv", "from", table.T)):
        lines.append("\t".join([word, *names]) + "\t")
        lines += [
            f"{name} {preposition}\t" + "\t".join(f"{one:.3f}" for one in row) + "\t"
            for name, row in zip(names, values.tolist(), strict=True)
        ]
        lines.append("")
    return "\n".join([*lines, "END mpiGraph"]) + "\n"


def write(folder: Path, texts: dict[str, str]) -> Sequence[Path]:
    """Write the files; returns their paths in the order of `texts`."""
    paths = [folder / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    return paths
