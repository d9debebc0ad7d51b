"""Faults drawn by chance, of which what is measured can show every one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.errors import UsageError
from fablint.simulate.faults import Fault
from fablint.simulate.messages.costs import Nature, ports_of_ranks
from fablint.simulate.messages.crossings import Crossings, Mask
from fablint.simulate.rounds import Pairs, matched, opponent, partners_of
from fablint.simulate.simulated_fabric import Fabric

SHARES = {"host": 0.35, "link": 0.35, "cable": 0.15, "lossy": 0.1, "switch": 0.05}
MOST = 0.5  # of the bandwidth that a fault takes
FEWEST = 6  # measurements that a part shows itself in
SAMPLE = 64  # rounds that stand for all
TRIES = 300  # draws in a row that do not fit, from which no more are made


def random_faults(
    fabric: Fabric,
    k: int,
    rng: np.random.Generator,
    least: float = 0.10,
    *,
    rounds: Sequence[Pairs] | None = None,
    ranks_per_host: int = 1,
    beside: Sequence[Fault] = (),
) -> list[Fault]:
    """`k` faults of mixed kinds in parts of their own, each a loss of bandwidth of `least` to a half.

    A part is drawn only if it shows itself: at least six measurements of `rounds` (of a sample of all pairs where none
    are given) cross it and no other sick part that is as slow or slower, and no other sick part is crossed by the very
    same ones. A link may thus belong to a slow switch, or lead to a slow host, as long as something goes another way.
    At most one fault sits at a host. Faults that are there already, `beside`, count as well.
    Raises UsageError when that many do not fit.
    """
    if not k:
        return []
    ranks = len(fabric.hosts) * ranks_per_host
    table = partners_of(_sample(ranks) if rounds is None else rounds, ranks)
    nature = Nature(fabric, ports_of_ranks(fabric, ranks_per_host), fabric.port_switch, seed=1)
    crossings = Crossings.of(nature, table)
    drawn: list[tuple[Fault, Mask]] = [(fault, crossings.of_links(fault.links(fabric))) for fault in beside]
    wanted = len(drawn) + k
    misses = 0
    while len(drawn) < wanted and misses < TRIES:
        misses += 1
        fault = _draw(fabric, rng, least)
        if fault is None or any(fault.name == other.name for other, _ in drawn):
            continue
        more = [*drawn, (fault, crossings.of_links(fault.links(fabric)))]
        if _all_show(more, new=len(drawn)):
            drawn, misses = more, 0
    if len(drawn) < wanted:
        raise UsageError(
            f"random faults: only {len(drawn) - len(beside)} of {k} fit without one hiding another",
            "ask for fewer, or measure more",
        )
    return [fault for fault, _ in drawn[len(beside) :]]


def _sample(ranks: int) -> list[Pairs]:
    """Some rounds of a schedule of all pairs."""
    last = max(1, ranks - 1 + ranks % 2)
    index = np.arange(ranks)
    return [
        matched(opponent(index, ranks, number))
        for number in np.unique(np.linspace(0, last - 1, SAMPLE).astype(int)).tolist()
    ]


def _draw(fabric: Fabric, rng: np.random.Generator, least: float) -> Fault | None:
    kind = str(rng.choice(list(SHARES), p=list(SHARES.values())))
    factor = round(1.0 - float(rng.uniform(least, max(least, MOST))), 3)
    if kind == "host":
        host = fabric.hosts[rng.integers(len(fabric.hosts))]
        way = ("tx", "rx", "both")[rng.integers(3)]
        if fabric.rails == 1 or rng.random() < 0.5:
            return Fault("host", host, way, bandwidth_factor=factor)  # type: ignore[arg-type]
        nic = fabric.nics[rng.integers(fabric.rails)]
        return Fault("nic", f"{host}/{nic}", way, bandwidth_factor=factor)  # type: ignore[arg-type]
    if kind == "switch":
        names = fabric.routes.switches
        return Fault("switch", names[rng.integers(len(names))], bandwidth_factor=factor)
    if not fabric.switch_links:
        return None
    link = int(rng.integers(fabric.switch_links))
    if kind == "cable":
        return Fault("cable", fabric.cable_name(link), bandwidth_factor=factor)
    if kind == "lossy":
        return Fault("link", fabric.link_name(link), bandwidth_factor=factor, retry_share=0.02, retry_s=10e-6)
    return Fault("link", fabric.link_name(link), bandwidth_factor=factor)


def _all_show(drawn: Sequence[tuple[Fault, Mask]], *, new: int) -> bool:
    """Does every sick part show itself, now that the last one is sick too?"""
    for index, (fault, crossed) in enumerate(drawn):
        meets_new = index == new or bool((crossed & drawn[new][1]).any())
        if not meets_new:
            continue
        own = crossed.copy()
        for place, (other, taken) in enumerate(drawn):
            if place == index:
                continue
            if (_host_of(fault) and _host_of(fault) == _host_of(other)) or np.array_equal(taken, crossed):
                return False
            if other.loss >= fault.loss:
                own &= ~taken
        if np.count_nonzero(own) < FEWEST:
            return False
    return True


def _host_of(fault: Fault) -> str:
    return fault.name.partition("/")[0] if fault.component in ("host", "nic") else ""
