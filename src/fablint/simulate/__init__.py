"""Simulated fabrics: runs with a known truth, to show what fablint says and to test that it is right."""

from __future__ import annotations

from fablint.simulate.fabric import Fabric
from fablint.simulate.fabrics import dragonfly, fat_tree, full_mesh, multi_rail, torus
from fablint.simulate.faults import Fault
from fablint.simulate.noise import Noise
from fablint.simulate.rounds import stratified_rounds
from fablint.simulate.rows import CHECK_ROWS, SimulatedRow
from fablint.simulate.simulate import SimulatedFabric, simulate

__all__ = [
    "CHECK_ROWS",
    "Fabric",
    "Fault",
    "Noise",
    "SimulatedFabric",
    "SimulatedRow",
    "dragonfly",
    "fat_tree",
    "full_mesh",
    "multi_rail",
    "simulate",
    "stratified_rounds",
    "torus",
]
