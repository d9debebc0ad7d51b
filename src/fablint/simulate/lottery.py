"""Faults drawn by chance, of which what is measured can show every one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.errors import UsageError
from fablint.simulate.crossings import Crossings, Mask
from fablint.simulate.fabric import Fabric
from fablint.simulate.faults import Fault
from fablint.simulate.paths import Nature
from fablint.simulate.rounds import Pairs, partners_of, stratified_rounds

SHARES = {"host": 0.35, "link": 0.35, "cable": 0.15, "lossy": 0.1, "switch": 0.05}
MOST = 0.5  # of the bandwidth that a fault takes
FEWEST = 6  # measurements that a part shows itself in
TRIES = 50  # draws for each fault wanted


def random_faults(
    fabric: Fabric,
    k: int,
    rng: np.random.Generator,
    least: float = 0.10,
    *,
    rounds: Sequence[Pairs] | None = None,
) -> list[Fault]:
    """`k` faults of mixed kinds in parts of their own, each a loss of bandwidth of `least` to a half.

    A part is drawn only if it shows itself: at least six measurements of `rounds` (one rank per host; stratified
    rounds where none are given) cross it and no other sick part that is as slow or slower, and no other sick part is
    crossed by the very same ones. A link may thus belong to a slow switch, or lead to a slow host, as long as something
    goes another way. At most one fault sits at a host. Raises UsageError when that many do not fit.
    """
    table = partners_of(stratified_rounds(fabric) if rounds is None else rounds, len(fabric.hosts))
    port_of_rank = (np.arange(len(fabric.hosts)) * fabric.rails).astype(np.int32)
    crossings = Crossings.of(Nature(fabric, port_of_rank, fabric.port_switch, seed=1), table)
    drawn: list[tuple[Fault, Mask]] = []
    for _ in range(TRIES * k):
        if len(drawn) == k:
            break
        fault = _draw(fabric, rng, max(least, 0.0))
        if fault is None or any(fault.name == other.name for other, _ in drawn):
            continue
        more = [*drawn, (fault, crossings.of_links(fault.links(fabric)))]
        if _all_show(more, new=len(drawn)):
            drawn = more
    if len(drawn) < k:
        raise UsageError(
            f"random faults: only {len(drawn)} of {k} fit without one hiding another", "ask for fewer, or measure more"
        )
    return [fault for fault, _ in drawn]


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
