"""What the tests of simulated fabrics share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.model import Run
from fablint.simulate import Fabric, Fault, Noise, SimulatedFabric, SimulatedRow, dragonfly, fat_tree, multi_rail, torus
from fablint.simulate.rounds import all_rounds

SILENT = Noise(scale=0.0, spike_share=0.0, host_spread=0.0, link_spread=0.0, message_scale=0.0)
STREAM = SimulatedRow("bandwidth", (1 << 20,))
ROUND_TRIP = SimulatedRow("latency", (8,))
TREE, DEEP, FLY, GRID = fat_tree(4, 2), fat_tree(3, 3), dragonfly(5, 4, 2), torus((3, 4), 2)
DIRECT_FLY = dragonfly(5, 4, 2, minimal_share=None)
RAILS = multi_rail(fat_tree(3, 2), 2)
FABRICS = {"tree": TREE, "deep": DEEP, "fly": FLY, "shortest fly": DIRECT_FLY, "grid": GRID, "rails": RAILS}


def silent(fabric: Fabric, *faults: Fault, **settings: object) -> SimulatedFabric:
    """A fabric whose times do not scatter."""
    return SimulatedFabric(fabric, faults, SILENT, ranks_per_host=fabric.rails, **settings)  # type: ignore[arg-type]


def listed(run: Run, row: str = "bandwidth", statistic: str = "median") -> np.ndarray:
    """(ranks, rounds) times of a row's first size."""
    return np.asarray(run.row(row).arrays[f"time_{statistic}"])[:, :, 0]


def as_matrix(run: Run, row: str = "bandwidth", statistic: str = "median") -> np.ndarray:
    """(ranks, ranks) times of a row's first size, whatever its layout."""
    found = run.row(row)
    if found.layout == "matrix":
        return np.asarray(found.arrays[f"time_{statistic}"])[0, :, :, 0]
    matrix = np.full((run.ranks, run.ranks), np.nan, dtype=np.float32)
    partner = np.asarray(found.arrays["dst"])
    src, column = np.nonzero(partner >= 0)
    matrix[src, partner[src, column]] = listed(run, row, statistic)[src, column]
    return matrix


def every_round(fabric: Fabric) -> Sequence[np.ndarray]:
    return all_rounds(len(fabric.hosts) * fabric.rails)
