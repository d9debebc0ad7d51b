"""Healthy fabrics, and those of which nothing in the run says which part is healthy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from held_out import noise, structure
from held_out.fabrics import Fabric, dragonfly_like, leaf_spine, mesh, one_switch, three_level
from held_out.network import Network
from held_out.scenario import SMALL, STREAM, Scenario

LATENCY = {"latency": (SMALL,)}
BOTH = {"latency": (SMALL,), "bandwidth": (STREAM,)}
QUIET = 0.003  # sigma of log time of a fabric that hardly scatters


def leaves8() -> Fabric:
    """64 hosts on 8 leaves, one group per leaf."""
    return leaf_spine(8, 4, 8)


def leaves8_in_one_group() -> Fabric:
    """The same, the leaves in one group."""
    return leaf_spine(8, 4, 8, own_groups=False)


def pods() -> Fabric:
    """64 hosts in a fabric of three levels."""
    return three_level(4, 2, 2, 2, 8)


def groups9() -> Fabric:
    """72 hosts in 9 groups of 4 switches."""
    return dragonfly_like(9, 4, 2)


def large() -> Fabric:
    """1,024 hosts in a fabric of three levels."""
    return three_level(8, 8, 4, 4, 16)


FABRICS: dict[str, Callable[[], Fabric]] = {
    "4 hosts": lambda: one_switch(4),
    "8 hosts": lambda: one_switch(8),
    "two switches of 8": lambda: mesh([8, 8]),
    "three switches of 6, a group each": lambda: mesh([6, 6, 6], own_groups=True),
    "8 leaves": leaves8,
    "8 leaves, ECMP": lambda: leaf_spine(8, 4, 8, "ecmp"),
    "8 leaves, adaptive": lambda: leaf_spine(8, 4, 8, "adaptive"),
    "two switches, 4 parallel cables": lambda: mesh([8, 8], 4, "ecmp"),
    "pods": pods,
    "dragonfly": groups9,
}

NOISES: dict[str, noise.Effect] = {
    "log-normal 1 %": noise.lognormal(0.01),
    "log-normal 8 %": noise.lognormal(0.08),
    "Pareto tails": noise.pareto(),
    "Cauchy": noise.cauchy(),
    "two humps": noise.two_humped(),
}


def leaf_uplinks(leaf: int, spines: int | None = None) -> Callable[[Network], list[int]]:
    """Links from a leaf towards the spines, and back."""

    def links(network: Network) -> list[int]:
        touching = structure.links_of(network.fabric.switches[leaf])(network.fabric)
        return touching if spines is None else touching[: 2 * spines]

    return links


def _independent() -> Iterator[Scenario]:
    """Noise that is independent from cell to cell: every fabric, then every noise."""
    for name, fabric in FABRICS.items():
        yield Scenario(f"{name}: quiet", fabric, effects=lambda _: (noise.lognormal(QUIET),), sizes=BOTH)
        if name not in ("4 hosts", "pods"):
            yield Scenario(f"{name}: quiet, one pair at a time", fabric, effects=lambda _: (noise.lognormal(QUIET),),
                           sizes=BOTH, serial=True)  # fmt: skip
    for name, effect in NOISES.items():
        yield Scenario(f"8 leaves: {name}", leaves8, effects=lambda _, effect=effect: (effect,), sizes=BOTH)
        yield Scenario(f"dragonfly, 24 rounds: {name}", groups9, effects=lambda _, effect=effect: (effect,), rounds=24)
    yield Scenario("8 leaves, product model: log-normal 1 %", leaves8, model="product", sizes=BOTH)
    yield Scenario("1,024 hosts, 24 rounds: log-normal 1 %", large, rounds=24)
    yield Scenario("8 leaves, mpiGraph: log-normal 1 %", leaves8, output="mpigraph", timed=False)
    yield Scenario("8 leaves, order unknown: log-normal 1 %", leaves8, timed=False, sizes=BOTH)
    yield Scenario("8 leaves, no topology: log-normal 1 %", leaves8, topology="none", sizes=BOTH)


def _dependent() -> Iterator[Scenario]:
    """Noise that is shared: by a stretch of time, a leaf, a host, a launch."""
    base = noise.lognormal(0.006)
    dependent: dict[str, tuple[Callable[[], Fabric], noise.Effect]] = {
        "8 leaves: load that varies slowly on a leaf": (leaves8, noise.varying_load(2)),
        "dragonfly: load that varies slowly on a switch": (groups9, noise.varying_load(5)),
        "8 leaves: drift of 12 %": (leaves8, noise.drift()),
        "8 leaves: bursts": (leaves8, noise.bursts()),
        "8 leaves: neighbour on a leaf's uplinks, a third of the rounds": (leaves8, noise.neighbour(leaf_uplinks(3))),
        "8 leaves: neighbour on one uplink, a third of the rounds": (leaves8, noise.neighbour(leaf_uplinks(3, 1))),
        "dragonfly: neighbour on a switch, a third of the rounds": (groups9, noise.neighbour(leaf_uplinks(7))),
        "pods: neighbour on a leaf's uplinks, a third of the rounds": (pods, noise.neighbour(leaf_uplinks(1))),
        "8 leaves: one noisy host": (leaves8, noise.noisy_host(11)),
        "8 leaves: host spread 3 %": (leaves8, noise.host_spread(0.03)),
        "8 leaves: host spread of heavy tails": (leaves8, noise.host_spread(0.02, heavy=True)),
        "8 leaves: launch effects 3 %": (leaves8, noise.launch_effects(0.03)),
        "8 leaves: launch effects of two humps": (leaves8, noise.launch_effects(0.05, humps=True)),
    }
    for name, (fabric, effect) in dependent.items():
        yield Scenario(name, fabric, effects=lambda _, effect=effect: (base, effect), sizes=BOTH)
        if name.startswith("8 leaves: neighbour on a leaf"):
            yield Scenario(f"{name}, 24 rounds", fabric, effects=lambda _, effect=effect: (base, effect), rounds=24)
    launch = noise.launch_effects(0.03)
    yield Scenario(
        "8 leaves: launch effects 3 %, 3 repeats of 3 sizes",
        leaves8,
        effects=lambda _: (base, launch),
        sizes={"bandwidth": (1 << 16, 1 << 18, STREAM)},
        repeats=3,
    )
    yield Scenario(
        "1,024 hosts, 24 rounds: host spread of heavy tails",
        large,
        effects=lambda _: (base, noise.host_spread(0.02, heavy=True)),
        rounds=24,
    )


def _populations() -> Iterator[Scenario]:
    """Hosts of several kinds."""
    for percent in (10, 25, 40):
        older = structure.older_hosts(percent / 100, 0.08)
        yield Scenario(f"8 leaves: {percent} % older hosts, 8 % slower", leaves8, structure=older)
        yield Scenario(
            f"1,024 hosts, 24 rounds: {percent} % older hosts, 8 % slower", large, structure=older, rounds=24
        )
    yield Scenario(
        "8 leaves: older hosts in two racks, 8 % slower",
        leaves8,
        structure=structure.older_hosts(0.25, 0.08, racks=True),
    )
    yield Scenario(
        "8 leaves: a quarter of the NICs has half the speed", leaves8, structure=structure.half_speed_nics(0.25)
    )
    yield Scenario("one switch of 32: half of the NICs has half the speed", lambda: one_switch(32),
                   structure=structure.half_speed_nics(0.5))  # fmt: skip


def _design() -> Iterator[Scenario]:
    """Geometry, tapering, paths of several kinds, rounded figures."""
    rack, row = structure.longer_cables(2, 60e-9), structure.longer_cables(2, 60e-9, uplinks=True)
    hop = structure.longer_cables(2, 300e-9, uplinks=True)
    yield Scenario("8 leaves: uplinks half as fast as hosts", leaves8, uplink=0.5, sizes=BOTH)
    yield Scenario("dragonfly: uplinks 0.7 times as fast as hosts", groups9, uplink=0.7)
    yield Scenario("8 leaves: +60 ns on the host cables of a rack", leaves8, structure=rack, sizes=LATENCY)
    yield Scenario("8 leaves: +60 ns on the uplinks of a rack", leaves8, structure=row, sizes=BOTH)
    yield Scenario("8 leaves: an extra hop of 300 ns behind a rack", leaves8, structure=hop, sizes=BOTH)
    slower = structure.slower_kind(structure.between_groups, 0.25)
    longer = structure.slower_kind(structure.between_groups, 0.0, 120e-9)
    yield Scenario("dragonfly: global cables 25 % slower than local ones", groups9, structure=slower)
    yield Scenario("dragonfly: global cables 120 ns longer", groups9, structure=longer, sizes=LATENCY)
    tenth = {"latency": 0.1}
    yield Scenario("8 leaves: latency in steps of 0.1 us", leaves8, sizes=LATENCY, steps=tenth)
    yield Scenario("dragonfly: latency in steps of 0.1 us", groups9, sizes=LATENCY, steps=tenth)
    yield Scenario("8 leaves: latency in steps of 0.1 us, unequal hosts", leaves8, sizes=LATENCY, steps=tenth,
                   effects=lambda _: (noise.lognormal(0.01), noise.host_spread(0.015)))  # fmt: skip
    yield Scenario("8 leaves: streams in steps of 1 MB/s, no other noise", leaves8, steps={"bandwidth": 1.0},
                   effects=lambda _: (noise.lognormal(2e-5),))  # fmt: skip
    yield Scenario("one switch of 16: latency in steps of 0.1 us", lambda: one_switch(16), sizes=LATENCY, steps=tenth)


def _rounded() -> Iterator[Scenario]:
    """Hosts that differ by less than a step, and times that lie where the step is."""
    for n in (16, 32):
        yield Scenario(
            f"one switch of {n}: 1.25 us in steps of 0.1 us, unequal hosts",
            lambda n=n: one_switch(n),
            effects=lambda _: (noise.lognormal(0.004), noise.host_spread(0.01)),
            structure=structure.all_latencies(0.38e-6),
            sizes=LATENCY,
            steps={"latency": 0.1},
        )


def _untimed() -> Iterator[Scenario]:
    """The same dependence in files that do not say when a pair was measured."""
    base = noise.lognormal(0.006)
    effects: dict[str, noise.Effect] = {
        "load that varies slowly on a leaf": noise.varying_load(2),
        "neighbour on a leaf's uplinks": noise.neighbour(leaf_uplinks(3)),
        "neighbour on one uplink": noise.neighbour(leaf_uplinks(3, 1)),
        "bursts": noise.bursts(),
        "drift of 12 %": noise.drift(),
    }
    for name, effect in effects.items():
        yield Scenario(
            f"8 leaves, order unknown: {name}", leaves8, effects=lambda _, effect=effect: (base, effect), timed=False
        )


def _missing() -> Iterator[Scenario]:
    """Parts of the run are not there."""
    yield Scenario("8 leaves: 60 % of the cells are missing", leaves8, kept=structure.missing(0.6))
    yield Scenario("8 leaves: 5 hosts deleted", leaves8, kept=structure.without_hosts(5), sizes=BOTH)
    yield Scenario("dragonfly: stopped after 30 % of the rounds", groups9, kept=structure.first_rounds(0.3))


def _undecided() -> Iterator[Scenario]:
    """Nothing in the run decides: neither PASS nor FAULT is right."""
    yield Scenario("38 of 64 hosts lose 20 %", leaves8, expected="undecided", structure=structure.older_hosts(0.6, 0.2))
    yield Scenario(
        "all figures of a host are unreadable", leaves8, expected="undecided", unreadable=structure.of_host(9)
    )
    yield Scenario("9 of 10 lines are unreadable", leaves8, expected="undecided",
                   unreadable=lambda schedule, fabric, rng: rng.random(len(schedule)) < 0.9)  # fmt: skip


HEALTHY = (
    *_independent(),
    *_dependent(),
    *_untimed(),
    *_populations(),
    *_design(),
    *_rounded(),
    *_missing(),
    *_undecided(),
)
