"""Simulated fabrics: one module per kind."""

from __future__ import annotations

from fablint.simulate.fabrics.dragonfly import dragonfly
from fablint.simulate.fabrics.fat_tree import fat_tree
from fablint.simulate.fabrics.full_mesh import full_mesh
from fablint.simulate.fabrics.multi_rail import multi_rail
from fablint.simulate.fabrics.torus import torus

__all__ = ["dragonfly", "fat_tree", "full_mesh", "multi_rail", "torus"]
