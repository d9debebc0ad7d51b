"""Fabrics with faults: every loss on every component, then the cases that were judged wrongly before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from held_out import noise, structure
from held_out.fabrics import Fabric, leaf_spine, mesh, one_switch
from held_out.faults import Active, Direction, Fault
from held_out.healthy import BOTH, LATENCY, groups9, large, leaf_uplinks, leaves8, leaves8_in_one_group, pods
from held_out.scenario import Scenario

Faults = Callable[[Fabric, np.random.Generator], Sequence[Fault]]
BASE = noise.lognormal(0.006)


def hosts(count: int, loss: float, direction: Direction = "both", active: Active | None = None, **more: Any) -> Faults:
    """Some hosts drawn by chance."""

    def faults(fabric: Fabric, rng: np.random.Generator) -> list[Fault]:
        drawn = rng.permutation(fabric.n)[:count]
        return [Fault("host", fabric.hosts[at], direction, loss, active=active, **more) for at in drawn]

    return faults


def part(kind: str, name: str, **how: Any) -> Faults:
    """One component that is named."""
    return lambda fabric, rng: [Fault(kind, name, **how)]


def these_hosts(*numbers: int, loss: float) -> Faults:
    """Some hosts by their position."""
    return lambda fabric, rng: [Fault("host", fabric.hosts[at], loss=loss) for at in numbers]


def cable_of_host(loss: float, direction: Direction) -> Faults:
    """The cable of a host drawn by chance."""

    def faults(fabric: Fabric, rng: np.random.Generator) -> list[Fault]:
        host = int(rng.integers(fabric.n))
        name = f"{fabric.hosts[host]}={fabric.switches[fabric.host_switch[host]]}"
        return [Fault("cable", name, direction, loss)]

    return faults


def nic(loss: float, direction: Direction) -> Faults:
    """The NIC of a host drawn by chance."""
    return lambda fabric, rng: [Fault("nic", f"{fabric.hosts[int(rng.integers(fabric.n))]}/nic", direction, loss)]


def pairs(count: int, loss: float) -> Faults:
    """Ordered pairs drawn by chance."""

    def faults(fabric: Fabric, rng: np.random.Generator) -> list[Fault]:
        src, dst = np.nonzero(~np.eye(fabric.n, dtype=bool))
        drawn = rng.permutation(src.size)[:count]
        return [Fault("pair", f"{fabric.hosts[src[at]]}>{fabric.hosts[dst[at]]}", loss=loss) for at in drawn]

    return faults


def pairs_between(senders: range, receivers: range, loss: float) -> Faults:
    """All ordered pairs from some hosts to others, where no topology says what they have in common."""
    return lambda fabric, rng: [
        Fault("pair", f"{fabric.hosts[a]}>{fabric.hosts[b]}", loss=loss) for a in senders for b in receivers
    ]


def since(share: float) -> Active:
    """Slow from this share of the run on."""
    return lambda progress: progress >= share


def in_rounds(share: float, seed: int = 7) -> Active:
    """Slow in a share of the rounds, drawn by chance."""

    def active(progress: np.ndarray) -> np.ndarray:
        _, number = np.unique(progress, return_inverse=True)
        draws = np.random.default_rng(seed).random(1 + int(number.max()))
        return np.asarray((draws < share)[number.reshape(-1)])

    return active


def faulty(name: str, fabric: Callable[[], Fabric], faults: Faults, **more: Any) -> Scenario:
    """A scenario with faults."""
    return Scenario(name, fabric, faults, **{"effects": lambda _: (BASE,), "expected": "faulty", **more})


def _by_loss() -> Iterator[Scenario]:
    """10, 20 and 40 % on each kind of component, in fabrics of which all is known."""
    for percent in (10, 20, 40):
        loss = percent / 100
        yield faulty(f"host tx -{percent} %, 8 leaves", leaves8, hosts(1, loss, "tx"))
        yield faulty(f"two hosts -{percent} %, 8 leaves", leaves8, hosts(2, loss))
        yield faulty(f"NIC rx -{percent} %, dragonfly", groups9, nic(loss, "rx"))
        yield faulty(f"host cable tx -{percent} %, pods", pods, cable_of_host(loss, "tx"))
        yield faulty(f"cable -{percent} %, 8 leaves", leaves8, part("cable", "leaf3=spine2", loss=loss))
        yield faulty(f"uplink one way -{percent} %, 8 leaves", leaves8, part("link", "leaf5>spine1", loss=loss))
        yield faulty(f"spine -{percent} %, 8 leaves", leaves8, part("switch", "spine3", loss=loss))
        yield faulty(f"leaf of 8 -{percent} %", leaves8, part("switch", "leaf4", loss=loss))
        yield faulty(f"leaf of 3 -{percent} %", lambda: leaf_spine(3, 2, 6), part("switch", "leaf2", loss=loss))
        yield faulty(f"global cable -{percent} %, dragonfly", groups9, part("cable", "r1=r5", loss=loss))
        yield faulty(f"host of 8 -{percent} %", lambda: one_switch(8), hosts(1, loss))
        yield faulty(f"host of 5 -{percent} %", lambda: one_switch(5), hosts(1, loss), repeats=3)
        yield faulty(f"host -{percent} %, 1,024 hosts, 24 rounds", large, hosts(1, loss), rounds=24)
        yield faulty(f"host -{percent} %, 8 leaves, 24 rounds", leaves8, hosts(1, loss), rounds=24)


def _paths() -> Iterator[Scenario]:
    """Paths between switches that are presumed, few, hashed or parallel."""
    trio = lambda: mesh([6, 6, 6], own_groups=True)  # noqa: E731
    yield faulty("uplink one way -40 %, leaves of one group, cables unknown", leaves8_in_one_group,
                 part("link", "leaf5>spine1", loss=0.4), topology="hosts")  # fmt: skip
    yield faulty("one switch per group: cable at 14 of 48 one way", trio, part("link", "sw1>sw3", loss=0.7))
    yield faulty("one switch per group: cable at 14 of 48 one way, cables unknown", trio,
                 part("link", "sw1>sw3", loss=0.7), topology="hosts")  # fmt: skip
    yield faulty("one switch per group: cable of 16 times the latency", trio,
                 part("cable", "sw2=sw3", added=18e-6), sizes=LATENCY)  # fmt: skip
    yield faulty("one switch per group: +1 ms on a cable, cables unknown", trio,
                 part("cable", "sw2=sw3", added=1e-3), sizes=LATENCY, topology="hosts")  # fmt: skip
    yield faulty("two switches: cable one way -40 %", lambda: mesh([8, 8]), part("link", "sw1>sw2", loss=0.4))
    yield faulty("two switches: cable -50 %", lambda: mesh([8, 8]), part("cable", "sw1=sw2", loss=0.5))
    yield faulty("two switches: cable -50 %, cables unknown", lambda: mesh([8, 8]),
                 part("cable", "sw1=sw2", loss=0.5), topology="hosts")  # fmt: skip
    yield faulty("one of 4 parallel cables -50 %", lambda: mesh([8, 8], 4, "ecmp"),
                 part("cable", "sw1=sw2", loss=0.5, cable=2))  # fmt: skip
    yield faulty("cable under ECMP -40 %", lambda: leaf_spine(8, 4, 8, "ecmp"), part("cable", "leaf3=spine2", loss=0.4))
    yield faulty("cable under adaptive routing -60 %", lambda: leaf_spine(8, 4, 8, "adaptive"),
                 part("cable", "leaf3=spine2", loss=0.6))  # fmt: skip
    yield faulty("one slow pair -60 %", lambda: one_switch(32), pairs(1, 0.6))
    yield faulty("97 of 992 pairs -32 %", lambda: one_switch(32), pairs(97, 0.32))


def _hosts() -> Iterator[Scenario]:
    """Hosts among few others, at times, and among populations."""
    trio = lambda: mesh([3, 3, 3])  # noqa: E731
    for percent in (20, 40):
        yield faulty(
            f"two of three hosts on a switch -{percent} %", trio, these_hosts(3, 4, loss=percent / 100), sizes=BOTH
        )
    wider = lambda: leaf_spine(6, 2, 3)  # noqa: E731
    yield faulty("two of three hosts on a leaf of 6 -40 %", wider, these_hosts(6, 7, loss=0.4))
    yield faulty("host 40 % slower in 30 % of the rounds", leaves8, hosts(1, 0.4, active=in_rounds(0.3)))
    yield faulty("host 40 % slower in 30 % of 24 rounds", leaves8, hosts(1, 0.4, active=in_rounds(0.3)), rounds=24)
    yield faulty("host -40 % since the middle of the run", leaves8, hosts(1, 0.4, active=since(0.5)))
    yield faulty("cable -40 % since the middle of the run", leaves8,
                 part("cable", "leaf3=spine2", loss=0.4, active=since(0.5)))  # fmt: skip
    yield Scenario("host measured with one partner only -50 %", leaves8, part("host", "node10", loss=0.5),
                   kept=structure.one_partner(9), expected="undecided")  # fmt: skip
    yield faulty("lossy host, latency", leaves8, hosts(1, 0.0, lossy=0.003), sizes=LATENCY)
    yield faulty("lossy cable, latency", leaves8, part("cable", "leaf3=spine2", lossy=0.003), sizes=LATENCY)
    yield faulty("lossy host, latency, 24 rounds", leaves8, hosts(1, 0.0, lossy=0.003), sizes=LATENCY, rounds=24)
    yield faulty("host +0.5 us", leaves8, hosts(1, 0.0, added=0.25e-6), sizes=LATENCY)
    yield faulty("host +0.5 us, steps of 0.1 us", leaves8, hosts(1, 0.0, added=0.25e-6), sizes=LATENCY,
                 steps={"latency": 0.1})  # fmt: skip
    older = structure.older_hosts(0.25, 0.08)
    yield faulty("host -40 % beside 25 % older hosts", leaves8, hosts(1, 0.4), structure=older)
    yield faulty(
        "cable -40 % beside 25 % older hosts", leaves8, part("cable", "leaf3=spine2", loss=0.4), structure=older
    )
    yield faulty("host -20 %, mpiGraph", leaves8, hosts(1, 0.2), output="mpigraph", timed=False)
    yield faulty("host -20 %, order unknown, no topology", leaves8, hosts(1, 0.2), timed=False, topology="none")
    yield faulty("host -20 %, product model", leaves8, hosts(1, 0.2), model="product")


def _under_noise() -> Iterator[Scenario]:
    """Faults in fabrics that are not quiet."""
    noises = {
        "Pareto tails": noise.pareto(),
        "Cauchy": noise.cauchy(),
        "two humps": noise.two_humped(),
        "launch effects 3 %": noise.launch_effects(0.03),
        "neighbour on other uplinks": noise.neighbour(leaf_uplinks(6)),
        "drift of 12 %": noise.drift(),
    }
    for name, effect in noises.items():
        effects = lambda _, effect=effect: (BASE, effect)  # noqa: E731
        yield faulty(f"host -20 %: {name}", leaves8, hosts(1, 0.2), effects=effects)
        yield faulty(f"cable -20 %: {name}", leaves8, part("cable", "leaf3=spine2", loss=0.2), effects=effects)
    yield faulty("host -20 %, 60 % of the cells are missing", leaves8, hosts(1, 0.2), kept=structure.missing(0.6))
    yield faulty("host of 8 -40 % with jitter 5 %", lambda: one_switch(8), hosts(1, 0.4),
                 effects=lambda _: (noise.lognormal(0.05),))  # fmt: skip


def _few_hosts() -> Iterator[Scenario]:
    """Clusters of 5 to 8 hosts on one switch, without a topology file."""
    for percent in (10, 40):
        for n in (5, 8):
            yield faulty(
                f"host of {n} +{percent} % latency, jitter 8 %, no topology",
                lambda n=n: one_switch(n),
                hosts(1, 0.0, added=percent / 100 * 0.87e-6),
                effects=lambda _: (noise.lognormal(0.08),),
                sizes=LATENCY,
                topology="none",
            )
        yield faulty(
            f"host of 8 -{percent} %, launch effects 10 %, 3 repeats",
            lambda: one_switch(8),
            hosts(1, percent / 100),
            effects=lambda _: (BASE, noise.launch_effects(0.1)),
            repeats=3,
        )


def _gross() -> Iterator[Scenario]:
    """Losses of nine tenths, and more than a tenth of the hosts."""
    yield faulty("host -90 %, 8 leaves", leaves8, hosts(1, 0.9))
    yield faulty("cable -90 %, 8 leaves", leaves8, part("cable", "leaf3=spine2", loss=0.9))
    yield faulty("host -90 %, dragonfly, 24 rounds", groups9, hosts(1, 0.9), rounds=24)
    yield faulty("10 of 64 hosts -40 %", leaves8, hosts(10, 0.4))
    yield faulty("+1 ms on a host's cable", leaves8, part("cable", "node07=leaf1", added=1e-3), sizes=LATENCY)
    yield faulty("local cable one way -40 %, dragonfly", groups9, part("link", "r1>r2", loss=0.4))
    yield faulty("cable -40 %, pods", pods, part("cable", "agg1=core1", loss=0.4))
    yield faulty("host -40 % beside load that varies", leaves8, hosts(1, 0.4),
                 effects=lambda _: (BASE, noise.varying_load(2)))  # fmt: skip


def _small() -> Iterator[Scenario]:
    """Two to eight hosts, or two of them on a switch: gross losses of which little is measured."""
    for name, how in {"": {}, ", one pair at a time": {"serial": True}, ", order unknown": {"timed": False}}.items():
        yield faulty(f"two switches of 2: cable -50 %{name}", lambda: mesh([2, 2]),
                     part("cable", "sw1=sw2", loss=0.5), **how)  # fmt: skip
        yield faulty(f"8 switches of 1: cable one way -50 %{name}", lambda: mesh([1] * 8, own_groups=True),
                     part("link", "sw1>sw2", loss=0.5), **how)  # fmt: skip
        yield faulty(f"three switches of 2, no topology: cable one way -50 %{name}", lambda: mesh([2, 2, 2]),
                     pairs_between(range(2), range(2, 4), 0.5), topology="none", **how)  # fmt: skip
        yield faulty(f"three switches of 3, no topology: cable one way -50 %{name}", lambda: mesh([3, 3, 3]),
                     pairs_between(range(3), range(3, 6), 0.5), topology="none", **how)  # fmt: skip
        yield faulty(f"two switches of 8 and 2: the larger one -50 %{name}", lambda: mesh([8, 2]),
                     part("switch", "sw1", loss=0.5), expected="undecided", **how)  # fmt: skip


def _half_of_a_switch() -> Iterator[Scenario]:
    """As many hosts of a switch are slow as are not."""
    two, four = (lambda: mesh([2] * 12)), (lambda: mesh([4] * 6))
    for topology in ("cables", "hosts"):
        what = "" if topology == "cables" else ", cables unknown"
        yield faulty(f"one of two hosts on a switch -20 %{what}", two, these_hosts(0, loss=0.2), topology=topology)
        yield faulty(f"one of two hosts on a switch -90 %, 24 rounds{what}", two, these_hosts(0, loss=0.9),
                     rounds=24, topology=topology)  # fmt: skip
        yield faulty(f"two of four hosts on a switch -40 %{what}", four, these_hosts(0, 2, loss=0.4), topology=topology)


def _one_at_a_time() -> Iterator[Scenario]:
    """One pair measured after the other: no message ever shares a cable."""
    chosen = (
        "host tx -20 %, 8 leaves", "cable -20 %, 8 leaves", "uplink one way -20 %, 8 leaves", "leaf of 3 -20 %",
        "uplink one way -40 %, leaves of one group, cables unknown", "one switch per group: cable at 14 of 48 one way",
        "one switch per group: cable at 14 of 48 one way, cables unknown", "two switches: cable one way -40 %",
        "two switches: cable -50 %", "two switches: cable -50 %, cables unknown", "one of 4 parallel cables -50 %",
        "cable under ECMP -40 %", "two of three hosts on a switch -40 %", "local cable one way -40 %, dragonfly",
    )  # fmt: skip
    scenarios = (*_by_loss(), *_paths(), *_hosts(), *_gross())
    for scenario in scenarios:
        if scenario.name in chosen:
            yield replace(scenario, name=f"{scenario.name}, one pair at a time", serial=True)


FAULTY = (
    *_by_loss(),
    *_paths(),
    *_hosts(),
    *_under_noise(),
    *_few_hosts(),
    *_gross(),
    *_small(),
    *_half_of_a_switch(),
    *_one_at_a_time(),
)
