"""Random faults, each of which is visible in the measurements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.errors import UsageError
from fablint.model import ComponentRef
from fablint.model.arrays import Mask, RankPairs
from fablint.simulate.faults import Fault
from fablint.simulate.messages.costs import ActualRouting, ports_of_ranks
from fablint.simulate.messages.crossings import Crossings
from fablint.simulate.rounds import matched, opponent, partners_of
from fablint.simulate.simulated_fabric import Fabric

SHARES = {"host": 0.35, "link": 0.35, "cable": 0.15, "lossy": 0.1, "switch": 0.05}
MOST = 0.5  # largest share of the bandwidth that a fault removes
FEWEST = 6  # smallest number of measurements that show a fault
SAMPLE = 64  # rounds that represent all rounds
TRIES = 300  # consecutive rejected faults after which the generation stops


def random_faults(
    fabric: Fabric,
    k: int,
    rng: np.random.Generator,
    least: float = 0.10,
    *,
    rounds: Sequence[RankPairs] | None = None,
    ranks_per_host: int = 1,
    existing: Sequence[Fault] = (),
) -> list[Fault]:
    """`k` faults of mixed kinds in different components, each with a loss of bandwidth from `least` to a half.

    A component is selected only if its fault is visible: at least six measurements cross it and no other faulty
    component that is as slow or slower, and no other faulty component is crossed by exactly the same measurements. A
    link may thus belong to a slow switch, or lead to a slow host, if some measurements take another path. At most one
    fault is at a host.

    Parameters
    ----------
    least
        Smallest loss of bandwidth.
    rounds
        Rounds of the measurement; None: a sample of all pairs.
    ranks_per_host
        Ranks on each host, of which `rounds` are pairs.
    existing
        Faults of other components that the fabric has already.

    Raises
    ------
    UsageError
        That many faults do not fit.
    """
    if not k:
        return []
    ranks = len(fabric.hosts) * ranks_per_host
    table = partners_of(_sample(ranks) if rounds is None else rounds, ranks)
    actual = ActualRouting(fabric, ports_of_ranks(fabric, ranks_per_host), fabric.port_switch, seed=1)
    crossings = Crossings.of(actual, table)
    drawn: list[tuple[Fault, Mask]] = [(fault, crossings.of_links(fault.links(fabric))) for fault in existing]
    total = len(drawn) + k
    misses = 0
    while len(drawn) < total and misses < TRIES:
        misses += 1
        fault = _draw(fabric, rng, least)
        if fault is None or any(fault.component == earlier.component for earlier, _ in drawn):
            continue
        more = [*drawn, (fault, crossings.of_links(fault.links(fabric)))]
        if _all_show(more, new=len(drawn)):
            drawn, misses = more, 0
    if len(drawn) < total:
        raise UsageError(
            f"random faults: only {len(drawn) - len(existing)} of {k} fit without one hiding another",
            "request fewer, or measure more",
        )
    return [fault for fault, _ in drawn[len(existing) :]]


def _sample(ranks: int) -> list[RankPairs]:
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
        direction = ("tx", "rx", "both")[rng.integers(3)]
        if fabric.rails == 1 or rng.random() < 0.5:
            return Fault(ComponentRef.of("host", host), direction, bandwidth_factor=factor)  # type: ignore[arg-type]
        port = fabric.ports_of(host)[rng.integers(fabric.rails)]
        return Fault(fabric.nic_ref(port), direction, bandwidth_factor=factor)  # type: ignore[arg-type]
    if kind == "switch":
        names = fabric.routes.switches
        return Fault(ComponentRef.of("switch", names[rng.integers(len(names))]), bandwidth_factor=factor)
    if not fabric.switch_links:
        return None
    link = int(rng.integers(fabric.switch_links))
    if kind == "cable":
        return Fault(fabric.cable_ref(link), bandwidth_factor=factor)
    if kind == "lossy":
        return Fault(fabric.link_ref(link), bandwidth_factor=factor, retry_share=0.02, retry_s=10e-6)
    return Fault(fabric.link_ref(link), bandwidth_factor=factor)


def _all_show(drawn: Sequence[tuple[Fault, Mask]], *, new: int) -> bool:
    """Tell whether every faulty component is visible, including the last one."""
    for index, (fault, crossed) in enumerate(drawn):
        meets_new = index == new or bool((crossed & drawn[new][1]).any())
        if not meets_new:
            continue
        visible = crossed.copy()
        for place, (other, taken) in enumerate(drawn):
            if place == index:
                continue
            if (_host_of(fault) and _host_of(fault) == _host_of(other)) or np.array_equal(taken, crossed):
                return False
            if other.loss >= fault.loss:
                visible &= ~taken
        if np.count_nonzero(visible) < FEWEST:
            return False
    return True


def _host_of(fault: Fault) -> str:
    return fault.component.hosts[0] if fault.component.kind in ("host", "nic") else ""
