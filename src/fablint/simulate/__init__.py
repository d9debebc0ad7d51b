"""Simulated fabrics: runs with known faults, for demonstrations and for tests of the localisation."""

from __future__ import annotations

from fablint.simulate.fabrics import dragonfly, fat_tree, full_mesh, multi_rail, torus
from fablint.simulate.faults import Fault
from fablint.simulate.ground_truth import TrueFault, read_truth, truth_of, write_truth
from fablint.simulate.noise import Noise
from fablint.simulate.random_faults import random_faults
from fablint.simulate.score import Score, score
from fablint.simulate.simulated_fabric import Fabric
from fablint.simulate.simulated_rows import CHECK_ROWS, SimulatedRow
from fablint.simulate.simulation import SimulatedFabric, simulate

__all__ = [
    "CHECK_ROWS",
    "Fabric",
    "Fault",
    "Noise",
    "Score",
    "SimulatedFabric",
    "SimulatedRow",
    "TrueFault",
    "dragonfly",
    "fat_tree",
    "full_mesh",
    "multi_rail",
    "random_faults",
    "read_truth",
    "score",
    "simulate",
    "torus",
    "truth_of",
    "write_truth",
]
