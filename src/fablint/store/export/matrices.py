"""Export as a directory of plain matrices, for numpy and other programs that read its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fablint.model import Row, Run
from fablint.model.figures.percentiles import own_percentiles, times_at
from fablint.model.run import median_of_repeats
from fablint.store.layout import block, source_blocks


def write_npy(run: Run, path: Path) -> None:
    """Write `ROW.STATISTIC.SIZE.npy`, `ROW.partner.npy`, histograms and `hosts.txt` to a new directory.

    A file holds the values of `Row.observations`: seconds, row = source rank. In the `matrix` layout the column is the
    destination rank, and repeats are reduced to their median. In the `list` layout it is the round, and
    `ROW.partner.npy` names the destination. Line i of `hosts.txt` is the host of rank i. `ROW.histogram.SIZE.npy` has
    the sum of the repeats; its last dimension is that of `ROW.bucket.npy`, the lower edge of each bucket in seconds.
    """
    path.mkdir()
    (path / "hosts.txt").write_text("".join(f"{host}\n" for host in run.rank_host), encoding="utf-8")
    for row in run.rows:
        if row.layout == "list":
            np.save(path / f"{row.name}.partner.npy", np.asarray(row.arrays["dst"][:]))
        for index, size in enumerate(row.sizes):
            for statistic in row.statistics:
                np.save(path / f"{row.name}.{statistic}.{size}.npy", row.observations(size, statistic).sent)
            for percentile in own_percentiles(row):
                np.save(path / f"{row.name}.p{percentile:.9g}.{size}.npy", _times_at(row, percentile, index))
            if "histogram" in row.arrays:
                _write_histograms(row, index, path / f"{row.name}.histogram.{size}.npy")
        if "bucket" in row.arrays:
            np.save(path / f"{row.name}.bucket.npy", np.asarray(row.arrays["bucket"][:]))


def _times_at(row: Row, percentile: float, index: int) -> np.ndarray:
    """Seconds (src, round) or (src, dst) at a percentile and a size."""
    cells = (slice(None),) * (2 if row.layout == "list" else 3)
    times = times_at(row, percentile, (*cells, index)).astype(np.float32)
    return times if row.layout == "list" else median_of_repeats(times)


def _write_histograms(row: Row, index: int, path: Path) -> None:
    """Write the samples of a size in blocks: (src, round, bucket), or (src, dst, bucket) of all repeats."""
    shape = row.arrays["histogram"].shape
    ends = shape[:2] if row.layout == "list" else shape[1:3]
    file = np.lib.format.open_memmap(path, "w+", np.uint32, (*ends, shape[-1]))
    for sources in source_blocks(row, "histogram"):
        counts = block(row, "histogram", sources)[..., index, :]
        file[sources] = counts if row.layout == "list" else counts.sum(axis=0)
    file.flush()
