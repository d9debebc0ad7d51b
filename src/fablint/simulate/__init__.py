"""Simulated fabrics: runs with a known truth, to show what fablint says and to test that it is right."""

from __future__ import annotations

from fablint.simulate.fabric import Fabric
from fablint.simulate.fabrics import dragonfly, fat_tree, full_mesh, multi_rail, torus
from fablint.simulate.faults import Fault
from fablint.simulate.lottery import random_faults
from fablint.simulate.noise import Noise
from fablint.simulate.rows import CHECK_ROWS, SimulatedRow
from fablint.simulate.score import Score, score
from fablint.simulate.simulate import SimulatedFabric, simulate
from fablint.simulate.truth import TrueFault, read_truth, truth_of, write_truth

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
