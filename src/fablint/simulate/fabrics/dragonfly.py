"""Dragonfly: groups of routers, each group connected to every other by one cable."""

from __future__ import annotations

from fablint.errors import UsageError
from fablint.model import Cable, Routing, Switch, Topology
from fablint.simulate.simulated_fabric import Fabric, checked, numbered

MOST_CABLES = 64  # between groups, per router


def dragonfly(
    groups: int = 33, routers: int = 16, hosts_per_router: int = 8, minimal_share: float | None = 0.5
) -> Fabric:
    """Dragonfly of `groups` groups of `routers` routers; the defaults 33, 16 and 8 make 4,224 hosts.

    Routers are `g00r00`, `g00r01`, ... in groups `g00`, `g01`, ..., connected all-to-all inside a group. The cables of
    a group to the others are assigned to its routers in turn (Kim et al., Technology-Driven, Highly-Scalable Dragonfly
    Topology, ISCA 2008).

    Parameters
    ----------
    minimal_share
        Share of messages on shortest paths, with adaptive routing; the others pass through a random group. None: all
        messages take a shortest path.

    Raises
    ------
    UsageError
        A number is below 1, or the share is not above 0 and at most 1.
    """
    checked("dragonfly", groups=groups, routers=routers, hosts_per_router=hosts_per_router)
    if minimal_share is not None and not 0 < minimal_share <= 1:
        raise UsageError(f"dragonfly: a minimal share of {minimal_share}", "give a number above 0, 1 at most")
    if groups - 1 > routers * MOST_CABLES:
        raise UsageError(
            f"dragonfly: {groups} groups need more than {MOST_CABLES} cables between groups at each router",
            "give more routers or fewer groups",
        )
    group_names, router_digits = numbered("g", groups), len(str(routers - 1))
    names = [[f"{group}r{router:0{router_digits}d}" for router in range(routers)] for group in group_names]
    cables = [Cable(a, b) for row in names for index, a in enumerate(row) for b in row[index + 1 :]]

    def gateway(group: int, peer: int) -> str:
        place = (peer - group - 1) % groups  # 0 .. groups - 2
        return names[group][place * routers // (groups - 1)]

    cables += [Cable(gateway(a, b), gateway(b, a)) for a in range(groups) for b in range(a + 1, groups)]
    flat = [name for row in names for name in row]
    hosts = numbered("h", len(flat) * hosts_per_router, 2)
    routing = Routing() if minimal_share is None else Routing("adaptive", minimal_share)
    topology = Topology(
        switches={name: Switch(name, group) for group, row in zip(group_names, names, strict=True) for name in row},
        host_switch={host: flat[index // hosts_per_router] for index, host in enumerate(hosts)},
        cables=tuple(cables),
        source=f"simulated dragonfly of {groups} groups of {routers} routers",
        routing=routing,
    )
    return Fabric(topology)
