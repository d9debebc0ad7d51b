"""Adaptive and hashed routing, with rows of latency and bandwidth: what this routing hides is no fault."""

from __future__ import annotations

from collections.abc import Iterator

from held_out.fabrics import Routing, leaf_spine, mesh, three_level
from held_out.healthy import leaf_uplinks
from held_out.network import Network
from held_out.noise import Effect, independent, lognormal, neighbour, varying_load
from held_out.rank_runs.cluster import Cluster, planes, single
from held_out.rank_runs.incidence import of_messages
from held_out.rank_runs.rank_scenario import RankScenario
from held_out.rank_scenarios.drawn import component, hosts

BASE = lognormal(0.006)


def leaves(routing: Routing) -> Cluster:
    """48 hosts on 6 leaves, 4 spines."""
    return single(leaf_spine(6, 4, 8, routing))


def collisions(size: float = 0.02) -> Effect:
    """Messages that choose their paths collide now and then: a measurement loses a little, none gains."""
    return independent(lambda rng, count: 1 + size * rng.exponential(size=count))


def half_of_the_cables(network: Network) -> list[int]:
    """Half of the links of the first switch, in both directions."""
    return leaf_uplinks(0)(network)[:4]


def _healthy() -> Iterator[RankScenario]:
    """Fabrics in which nothing is wrong. Uplinks are wide enough for all streams of a leaf, or are shared."""
    adaptive, ecmp = (lambda: leaves("adaptive")), (lambda: leaves("ecmp"))
    wide = {"uplink": 8.0, "passes": True}
    yield RankScenario("routed: adaptive, quiet", adaptive, histograms=True, **wide)
    yield RankScenario("routed: adaptive, quiet, no histograms", adaptive, **wide)
    yield RankScenario("routed: adaptive, collisions of 2 %", adaptive, effects=lambda _: (BASE, collisions()),
                       histograms=True, **wide)  # fmt: skip
    yield RankScenario("routed: ECMP, quiet", ecmp, **wide)
    yield RankScenario("routed: ECMP, quiet, one pair at a time", ecmp, serial=True, passes=True)
    yield RankScenario("routed: ECMP, two planes", lambda: planes(leaf_spine(4, 2, 6, "ecmp"), 2), pattern="rails",
                       **wide)  # fmt: skip
    yield RankScenario("routed: ECMP, 4 cables between two switches", lambda: single(mesh([12, 12], 4, "ecmp")),
                       **wide)  # fmt: skip
    yield RankScenario("routed: adaptive pods", lambda: single(three_level(3, 2, 2, 2, 6, "adaptive")), **wide)
    yield RankScenario("routed: ECMP, streams collide", ecmp, quantities=("bandwidth",))
    yield RankScenario("routed: adaptive, uplinks shared", adaptive, histograms=True)
    loads = {
        "load that varies slowly on a leaf": varying_load(2, 0.15),
        "load that varies fast on a leaf": varying_load(2, 0.3, memory=0.5),
        "neighbour on a leaf's uplinks": neighbour(leaf_uplinks(2), 0.5),
        "neighbour on one uplink": neighbour(leaf_uplinks(2, 1), 0.5),
    }
    for title, cluster in (("adaptive", adaptive), ("ECMP", ecmp)):
        for name, effect in loads.items():
            yield RankScenario(f"routed: {title}, {name}", cluster, effects=lambda _, effect=effect: (BASE, effect),
                               histograms=title == "adaptive", uplink=8.0)  # fmt: skip
    for name, effect in (
        ("neighbour on 2 of 4 cables", neighbour(half_of_the_cables, 0.5)),
        ("load that varies", varying_load(0, 0.3, 0.5)),
    ):
        yield RankScenario(f"routed: ECMP, 4 cables between two switches, one pair at a time, {name}",
                           lambda: single(mesh([12, 12], 4, "ecmp")), effects=lambda _, effect=effect: (BASE, effect),
                           serial=True)  # fmt: skip


def _faulty() -> Iterator[RankScenario]:
    """Faults that many measurements show whatever the path, and cables that show in a share of the messages."""
    wide = {"uplink": 8.0, "expected": "faulty"}
    for routing in ("adaptive", "ecmp"):
        title = {"adaptive": "adaptive", "ecmp": "ECMP"}[routing]
        cluster = lambda routing=routing: leaves(routing)  # noqa: E731
        yield RankScenario(f"routed: {title}, host -20 %", cluster, hosts(1, 0.2), **wide)
        yield RankScenario(f"routed: {title}, host +0.4 us", cluster, hosts(1, 0.0, added=0.4e-6), **wide)
        yield RankScenario(f"routed: {title}, leaf -25 %", cluster,
                           component("switch", "leaf4", loss=0.25), **wide)  # fmt: skip
    adaptive, ecmp = (lambda: leaves("adaptive")), (lambda: leaves("ecmp"))
    yield RankScenario("routed: adaptive, cable +3 us", adaptive, component("cable", "leaf3=spine2", added=3e-6),
                       histograms=True, **wide)  # fmt: skip
    yield RankScenario("routed: adaptive, 10 % of the messages of a host 20 us late", adaptive,
                       hosts(1, 0.0, added=2e-5, incidence=of_messages(0.1)), histograms=True, **wide)  # fmt: skip
    yield RankScenario("routed: ECMP, cable -60 %, one pair at a time", ecmp,
                       component("cable", "leaf3=spine2", loss=0.6), serial=True, expected="faulty")  # fmt: skip
    yield RankScenario("routed: ECMP, cable +3 us", ecmp, component("cable", "leaf3=spine2", added=3e-6), **wide)


ROUTED = (*_healthy(), *_faulty())
