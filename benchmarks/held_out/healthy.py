"""Healthy fabrics."""

from __future__ import annotations

from held_out.fabrics import leaf_spine, one_switch
from held_out.scenario import Scenario

HEALTHY = (
    Scenario("one switch of 16", lambda: one_switch(16)),
    Scenario("leaf-spine 8x8, known routes", lambda: leaf_spine(8, 4, 8)),
)
