"""Many slow hosts, whole slow switches, one host on each leaf, leaves of very different sizes, shared uplinks."""

from __future__ import annotations

from collections.abc import Iterator

from held_out.fabrics import leaf_spine, mesh
from held_out.noise import host_spread, lognormal
from held_out.rank_runs.cluster import Cluster, single
from held_out.rank_runs.component_faults import ComponentFault
from held_out.rank_runs.rank_scenario import RankScenario
from held_out.rank_scenarios.drawn import component, components, hosts, leaves6


def large_leaf() -> Cluster:
    """44 hosts, 20 of them on the first of 5 leaves: it is an end of 72 % of the pairs."""
    return single(leaf_spine(5, 3, [20, 6, 6, 6, 6]))


def _many() -> Iterator[RankScenario]:
    """A third of the hosts, or two of six or eight switches."""
    yield RankScenario("many: 16 of 48 hosts -25 %", leaves6, hosts(16, 0.25), expected="faulty")
    yield RankScenario("many: 16 of 48 hosts -12 to -45 %", leaves6, hosts(16, (0.12, 0.45)), expected="faulty")
    yield RankScenario("many: 8 of 24 hosts tx -30 %", lambda: single(leaf_spine(4, 2, 6)),
                       hosts(8, 0.3, direction="tx"), expected="faulty")  # fmt: skip
    two = components(ComponentFault("switch", "leaf2", loss=0.25), ComponentFault("switch", "leaf5", loss=0.25))
    late = components(ComponentFault("switch", "leaf2", loss=0.2, added=0.1e-6),
                      ComponentFault("switch", "leaf7", loss=0.2, added=0.1e-6))  # fmt: skip
    spines = components(ComponentFault("switch", "spine1", loss=0.3), ComponentFault("switch", "spine2", loss=0.3))
    yield RankScenario("many: two of six leaves -25 %", leaves6, two, expected="faulty")
    yield RankScenario("many: two of eight leaves -20 %, +0.2 us", lambda: single(leaf_spine(8, 4, 6)), late,
                       expected="faulty")  # fmt: skip
    yield RankScenario("many: two of four spines -30 %", leaves6, spines, expected="faulty")
    cables = components(ComponentFault("cable", "sw1=sw2", loss=0.4), ComponentFault("cable", "sw3=sw4", loss=0.4))
    yield RankScenario("many: two of six cables between four switches -40 %", lambda: single(mesh([6] * 4)), cables,
                       expected="faulty")  # fmt: skip


def _one_host_per_leaf() -> Iterator[RankScenario]:
    """16 and 24 switches with a host each: host, NIC, cable and switch carry the same messages."""
    four, sole = (lambda: single(leaf_spine(16, 4, 1))), (lambda: single(leaf_spine(24, 1, 1)))
    yield RankScenario("one host per leaf: quiet, 4 spines", four, passes=True)
    yield RankScenario("one host per leaf: quiet, one spine", sole, passes=True)
    yield RankScenario("one host per leaf: noise of 2 %, 4 spines", four, effects=lambda _: (lognormal(0.02),),
                       passes=True)  # fmt: skip
    yield RankScenario("one host per leaf: host -30 %, 4 spines", four, hosts(1, 0.3), expected="faulty")
    yield RankScenario("one host per leaf: leaf -30 %, one spine", sole, component("switch", "leaf7", loss=0.3),
                       expected="faulty")  # fmt: skip
    yield RankScenario("one host per leaf: uplink one way -40 %, one spine", sole,
                       component("link", "leaf7>spine1", loss=0.4), expected="faulty")  # fmt: skip
    yield RankScenario("one host per leaf: cable -40 %, 4 spines", four, component("cable", "leaf3=spine2", loss=0.4),
                       expected="faulty")  # fmt: skip
    yield RankScenario("one host per leaf: spine -30 %, 4 spines", four, component("switch", "spine2", loss=0.3),
                       expected="faulty")  # fmt: skip


def _large_leaf() -> Iterator[RankScenario]:
    """A leaf that is an end of most pairs."""
    yield RankScenario("large leaf: quiet", large_leaf, passes=True)
    yield RankScenario("large leaf: 32 of 48 hosts, quiet", lambda: single(leaf_spine(3, 2, [32, 8, 8])), passes=True)
    yield RankScenario("large leaf: hosts differ by 1 %", large_leaf, passes=True,
                       effects=lambda _: (lognormal(0.006), host_spread(0.01)))  # fmt: skip
    yield RankScenario("large leaf: -25 %", large_leaf, component("switch", "leaf1", loss=0.25), expected="faulty")
    yield RankScenario("large leaf: +1 us in it", large_leaf, component("switch", "leaf1", added=0.5e-6),
                       quantities=("latency",), expected="faulty")  # fmt: skip
    yield RankScenario("large leaf: a small leaf -25 %", large_leaf, component("switch", "leaf3", loss=0.25),
                       expected="faulty")  # fmt: skip
    yield RankScenario("large leaf: host on it -20 %", large_leaf, component("host", "node07", loss=0.2),
                       expected="faulty")  # fmt: skip
    yield RankScenario("large leaf: its cable to a spine -35 %", large_leaf,
                       component("cable", "leaf1=spine2", loss=0.35), expected="faulty")  # fmt: skip


def _contended() -> Iterator[RankScenario]:
    """Streams of a round share uplinks, of which there are half as many as hosts; forwarding tables show which."""
    how = {"shared": True}
    yield RankScenario("contended: two hosts for each uplink, quiet", leaves6, **how)
    yield RankScenario("contended: uplinks twice as fast as hosts, quiet", leaves6, uplink=2.0, **how)
    yield RankScenario("contended: cable -40 %", leaves6, component("cable", "leaf3=spine2", loss=0.4),
                       expected="faulty", **how)  # fmt: skip
    yield RankScenario("contended: leaf -30 %", leaves6, component("switch", "leaf4", loss=0.3), expected="faulty",
                       **how)  # fmt: skip
    yield RankScenario("contended: host -40 %", leaves6, hosts(1, 0.4), expected="faulty", **how)


MANY_AND_LARGE = (*_many(), *_one_host_per_leaf(), *_large_leaf(), *_contended())
