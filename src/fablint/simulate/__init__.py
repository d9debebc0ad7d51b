"""Simulated fabrics: runs with a known truth, to show what fablint says and to test that it is right."""

from __future__ import annotations

from fablint.simulate.fabric import Fabric, full_mesh
from fablint.simulate.faults import Fault
from fablint.simulate.noise import Noise
from fablint.simulate.simulate import CHECK_ROWS, SimulatedRow, simulate

__all__ = ["CHECK_ROWS", "Fabric", "Fault", "Noise", "SimulatedRow", "full_mesh", "simulate"]
