"""Topologies to plan on: hosts, switches and cables of the usual shapes."""

from __future__ import annotations

import numpy as np

from fablint.model import SCOPES, Cable, Placement, Routing, Switch, Topology


def scopes_of(placement: Placement, pairs: np.ndarray) -> np.ndarray:
    """(k,) the scope of each of (k, 2) pairs."""
    return np.array(SCOPES, dtype=object)[placement.scopes(pairs[:, 0], pairs[:, 1])]


def two_level(leaves: int = 8, hosts: int = 8, spines: int = 4, kind: str = "d-mod-k") -> Topology:
    """Leaf and spine; leaves are groups of their own."""
    switches = {f"l{leaf}": Switch(f"l{leaf}") for leaf in range(leaves)}
    switches |= {f"s{spine}": Switch(f"s{spine}") for spine in range(spines)}
    return Topology(
        switches,
        {f"h{leaf * hosts + i}": f"l{leaf}" for leaf in range(leaves) for i in range(hosts)},
        tuple(Cable(f"l{leaf}", f"s{spine}") for leaf in range(leaves) for spine in range(spines)),
        routing=Routing(kind),
    )


def fat_tree(pods: int = 4, leaves: int = 4, hosts: int = 4, kind: str = "d-mod-k") -> Topology:
    """Three levels: each pod has `leaves` leaves and `hosts` aggregation switches, each of these `leaves` cores."""
    switches: dict[str, Switch] = {}
    cables = []
    for pod in range(pods):
        for leaf in range(leaves):
            switches[f"p{pod}l{leaf}"] = Switch(f"p{pod}l{leaf}", f"p{pod}")
        for agg in range(hosts):
            switches[f"p{pod}a{agg}"] = Switch(f"p{pod}a{agg}", f"p{pod}")
    for core in range(hosts * leaves):
        switches[f"c{core}"] = Switch(f"c{core}", "core")
    for pod in range(pods):
        cables += [Cable(f"p{pod}l{leaf}", f"p{pod}a{agg}") for leaf in range(leaves) for agg in range(hosts)]
        cables += [Cable(f"p{pod}a{agg}", f"c{agg * leaves + core}") for agg in range(hosts) for core in range(leaves)]
    names = [f"p{pod}l{leaf}" for pod in range(pods) for leaf in range(leaves) for _ in range(hosts)]
    return Topology(switches, {f"h{i}": name for i, name in enumerate(names)}, tuple(cables), routing=Routing(kind))


def dragonfly(groups: int = 9, routers: int = 4, hosts: int = 4, kind: str = "shortest") -> Topology:
    """Fully joined groups, one cable between any two groups, spread over the routers."""
    switches = {f"g{g}r{r}": Switch(f"g{g}r{r}", f"g{g}") for g in range(groups) for r in range(routers)}
    cables = [
        Cable(f"g{g}r{a}", f"g{g}r{b}") for g in range(groups) for a in range(routers) for b in range(a + 1, routers)
    ]
    each = -(-(groups - 1) // routers)  # global cables of a router
    for g in range(groups):
        for other in range(g + 1, groups):
            mine, its = (other - g - 1) // each, (g - other - 1) % groups // each
            cables.append(Cable(f"g{g}r{mine}", f"g{other}r{its}"))
    names = [name for name in switches for _ in range(hosts)]
    return Topology(
        switches,
        {f"h{i}": name for i, name in enumerate(names)},
        tuple(cables),
        routing=Routing(kind, 0.5 if kind == "adaptive" else 1.0),
    )
