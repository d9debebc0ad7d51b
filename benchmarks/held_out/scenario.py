"""A scenario: a fabric, what is true of it, how it is measured, and the files that come of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from held_out.fabrics import Fabric
from held_out.faults import Fault, Names, names_of
from held_out.files import csv_text, mpigraph_text, write
from held_out.network import Model, Network
from held_out.noise import Conditions, Effect, lognormal
from held_out.schedule import Schedule, few_rounds, full_matrix, one_at_a_time
from held_out.topology_text import topology_yaml

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Topology = Literal["cables", "hosts", "none"]
# Runs may be healthy, have faults, or have something that nothing in them decides: never a PASS, and no FAULT
# about a component that is healthy.
Expected = Literal["healthy", "faulty", "undecided"]

STREAM, SMALL = 1 << 20, 8  # bytes
RESENT_S, MESSAGES = 2e-4, 200  # s until a lost message is sent again; messages behind a cell


@dataclass(frozen=True)
class Scenario:
    """What is drawn with a seed.

    Attributes:
        fabric: makes the fabric.
        structure: what is particular about the healthy network: populations, geometry, tapering.
        effects: noise.
        faults: the faulty components.
        rounds: matchings drawn by chance; None for the full matrix.
        kept: which measurements are in the files; None for all.
        unreadable: which of them have no figure that can be read.
        steps: figures are rounded to multiples of it (MB/s, us).
        serial: is one pair measured after the other?
        timed: is it written when and in which round a pair was measured?
        topology: what the topology file says: cables, the switches of the hosts alone, or that there is no file.
        passes: should a healthy run be a PASS? None: not stated.
    """

    name: str
    fabric: Callable[[], Fabric]
    faults: Callable[[Fabric, np.random.Generator], Sequence[Fault]] = lambda fabric, rng: ()
    effects: Callable[[Fabric], Sequence[Effect]] = lambda fabric: (lognormal(0.01),)
    structure: Callable[[Network, np.random.Generator], None] = lambda network, rng: None
    expected: Expected = "healthy"
    model: Model = "bottleneck"
    uplink: float = 1.0
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: {"bandwidth": (STREAM,)})
    rounds: int | None = None
    repeats: int = 1
    serial: bool = False
    kept: Callable[[Schedule, Fabric, np.random.Generator], Bools] | None = None
    unreadable: Callable[[Schedule, Fabric, np.random.Generator], Bools] | None = None
    steps: Mapping[str, float] = field(default_factory=dict)
    timed: bool = True
    topology: Topology = "cables"
    output: Literal["csv", "mpigraph"] = "csv"
    passes: bool | None = None

    def case(self, seed: int, folder: Path) -> Case:
        """Draw the run of a seed and write its files into `folder`."""
        return build(self, seed, folder)


@dataclass(frozen=True)
class Truth:
    """A faulty component: its names, and how much of each quantity it costs (share of rate, or of latency added).

    Of a `missing` component nothing was measured: it is to be named as not judged, and costs nothing.
    """

    fault: Fault
    names: Names
    loss: Mapping[str, float]
    missing: bool = False


@dataclass(frozen=True)
class Case:
    """The files of one seed."""

    files: tuple[Path, ...]
    topology: Path | None
    truths: tuple[Truth, ...]


def build(scenario: Scenario, seed: int, folder: Path, repetition: int = 0) -> Case:
    """Draw the run of a seed and write its files into `folder`.

    Another `repetition` of a seed measures the same fabric on the same schedule with other noise.
    """
    keys = [zlib.crc32(scenario.name.encode()), seed]
    rng = np.random.default_rng(keys)
    fabric = scenario.fabric()
    network = Network(fabric, scenario.model, scenario.uplink)
    scenario.structure(network, rng)
    schedule = _schedule(scenario, fabric, rng)
    faults = tuple(scenario.faults(fabric, rng))
    if repetition:
        rng = np.random.default_rng([*keys, repetition])
    factors = [effect(Conditions(network, schedule, rng)) for effect in scenario.effects(fabric)]
    readable = np.ones(len(schedule), bool)
    if scenario.unreadable is not None:
        readable = ~scenario.unreadable(schedule, fabric, rng)
    texts: dict[str, str] = {}
    for quantity, sizes in scenario.sizes.items():
        figures = {}
        for size in sizes:
            seconds = _seconds(network, faults, schedule, quantity, size, rng)
            for factor in factors:
                seconds = seconds * factor(quantity, size)
            figures[size] = np.where(readable, _figure(scenario, quantity, size, seconds), np.nan)
        texts |= _text(scenario, fabric, schedule, quantity, figures)
    topology = None
    if scenario.topology != "none":
        [topology] = write(folder, {"topology.yaml": topology_yaml(fabric, scenario.topology == "cables")})
    known_faults = faults if scenario.expected == "faulty" else ()
    truths = tuple(Truth(fault, names_of(fault, fabric), _loss(scenario, network, fault)) for fault in known_faults)
    return Case(tuple(write(folder, texts)), topology, truths)


def _schedule(scenario: Scenario, fabric: Fabric, rng: np.random.Generator) -> Schedule:
    if scenario.rounds is None:
        schedule = full_matrix(fabric.n, rng, scenario.repeats)
    else:
        schedule = few_rounds(fabric.n, scenario.rounds, rng)
    if scenario.serial:
        schedule = one_at_a_time(schedule)
    return schedule if scenario.kept is None else schedule.chosen(scenario.kept(schedule, fabric, rng))


def _seconds(
    network: Network,
    faults: Sequence[Fault],
    schedule: Schedule,
    quantity: str,
    size: int,
    rng: np.random.Generator,
) -> Floats:
    """(P,) s without noise: each fault where and when it acts."""
    src, dst = schedule.src, schedule.dst
    always = with_faults(network, [fault for fault in faults if fault.active is None])
    seconds = always.seconds(src, dst, quantity, size)
    progress = schedule.round / max(1, schedule.rounds)
    for fault in faults:
        if fault.active is not None:
            slow = with_faults(always, [fault]).seconds(src, dst, quantity, size)
            seconds = np.where(fault.active(progress), slow, seconds)
        if fault.kind == "pair":
            own_slow_pairs = fault.slow_pairs(network, src, dst)
            seconds = np.where(own_slow_pairs, seconds / (1 - fault.loss) + fault.added, seconds)
        if fault.lossy:
            resent = rng.poisson(fault.lossy * MESSAGES, len(schedule)) / MESSAGES * RESENT_S
            seconds = seconds + np.where(fault.slow_pairs(network, src, dst), resent, 0.0)
    return seconds


def with_faults(network: Network, faults: Sequence[Fault]) -> Network:
    """The same network with these faults."""
    slow = deepcopy(network)
    for fault in faults:
        fault.apply(slow)
    return slow


def _figure(scenario: Scenario, quantity: str, size: int, seconds: Floats) -> Floats:
    """MB/s or us, rounded as the program that is modelled rounds them."""
    figures = size / seconds / 1e6 if quantity == "bandwidth" else seconds * 1e6
    step = scenario.steps.get(quantity)
    return figures if step is None else np.round(figures / step) * step


def _text(
    scenario: Scenario, fabric: Fabric, schedule: Schedule, quantity: str, figures: dict[int, Floats]
) -> dict[str, str]:
    if scenario.output == "mpigraph":
        [(size, values)] = figures.items()
        return {"mpigraph.txt": mpigraph_text(fabric, schedule, size, values)}
    return {f"{quantity}.csv": csv_text(fabric, schedule, quantity, figures, scenario.timed)}


def _loss(scenario: Scenario, network: Network, fault: Fault) -> dict[str, float]:
    """What the fault costs the pairs that cross it, the median of them, without noise."""
    n = network.fabric.n
    src, dst = (ends[:20000] for ends in np.nonzero(~np.eye(n, dtype=bool)))
    crosses = fault.slow_pairs(network, src, dst)
    src, dst = src[crosses], dst[crosses]
    if fault.kind == "pair":
        return {quantity: fault.loss for quantity in scenario.sizes}
    slow = with_faults(network, [fault])
    loss = {}
    for quantity, sizes in scenario.sizes.items():
        before, after = (one.seconds(src, dst, quantity, sizes[-1]) for one in (network, slow))
        after = after + fault.lossy * RESENT_S
        change = 1 - before / after if quantity == "bandwidth" else after / before - 1
        loss[quantity] = float(np.median(change)) if change.size else 0.0
    return loss
