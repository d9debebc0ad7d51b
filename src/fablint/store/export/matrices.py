"""Export as a directory of plain matrices, for numpy and other programs that read its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fablint.model import Run


def write_npy(run: Run, path: Path) -> None:
    """Write `ROW.STATISTIC.SIZE.npy`, `ROW.partner.npy` and `hosts.txt` to a new directory.

    A file holds the values of `Row.observations`: seconds, row = source rank. In the `matrix` layout the column is the
    destination rank, and repeats are reduced to their median. In the `list` layout it is the round, and
    `ROW.partner.npy` names the destination. Line i of `hosts.txt` is the host of rank i.
    """
    path.mkdir()
    (path / "hosts.txt").write_text("".join(f"{host}\n" for host in run.rank_host), encoding="utf-8")
    for row in run.rows:
        if row.layout == "list":
            np.save(path / f"{row.name}.partner.npy", np.asarray(row.arrays["dst"][:]))
        for statistic in row.statistics:
            for size in row.sizes:
                np.save(path / f"{row.name}.{statistic}.{size}.npy", row.observations(size, statistic).sent)
