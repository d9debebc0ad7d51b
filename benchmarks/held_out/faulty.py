"""Fabrics with faults."""

from __future__ import annotations

from held_out.fabrics import leaf_spine, one_switch
from held_out.faults import Fault
from held_out.scenario import Scenario

FAULTY = (
    Scenario(
        "host tx -20 %, one switch of 16",
        lambda: one_switch(16),
        expected="faulty",
        faults=lambda fabric, rng: [Fault("host", fabric.hosts[int(rng.integers(fabric.n))], "tx", 0.2)],
    ),
    Scenario(
        "spine cable -20 %, leaf-spine 8x8",
        lambda: leaf_spine(8, 4, 8),
        expected="faulty",
        faults=lambda fabric, rng: [Fault("cable", "leaf3=spine2", loss=0.2)],
    ),
)
