"""Fat tree of two or three levels: the k-ary n-tree, in which every level has the full bandwidth of the level below."""

from __future__ import annotations

from typing import Literal

from fablint.errors import UsageError
from fablint.model import Cable, Routing, Switch, Topology
from fablint.simulate.simulated_fabric import Fabric, checked, numbered

LEVELS = {2: ("leaf", "spine"), 3: ("leaf", "agg", "core")}


def fat_tree(arity: int = 16, levels: int = 3, routing: Literal["d-mod-k", "ecmp"] = "d-mod-k") -> Fabric:
    """Fat tree of arity^levels hosts: `arity` hosts on each leaf and as many up-links per switch.

    Leaves and the `agg` switches above them are in groups `pod0`, `pod1`, ... (three levels). 16 and 3 make 4,096
    hosts, 46 and 3 make 97,336. A switch of level l shares with the switches above it all digits of its number, base
    `arity`, except digit l (Petrini and Vanneschi, k-ary n-trees, IPPS 1997).

    Raises
    ------
    UsageError
        The arity is below 1, or there are not two or three levels.
    """
    checked("fat tree", arity=arity)
    if levels not in LEVELS:
        raise UsageError(f"fat tree: {levels} levels", "it has 2 or 3")
    width = arity ** (levels - 1)  # switches per level
    names = [numbered(word, width) for word in LEVELS[levels]]
    pods = numbered("pod", arity) if levels == 3 else []
    switches = {
        name: Switch(name, pods[index // arity] if pods and level < levels - 1 else "")
        for level, row in enumerate(names)
        for index, name in enumerate(row)
    }
    cables = []
    for level in range(levels - 1):
        step = arity**level
        for index, name in enumerate(names[level]):
            base = index - index // step % arity * step
            cables += [Cable(name, names[level + 1][base + digit * step]) for digit in range(arity)]
    hosts = numbered("h", arity**levels, 2)
    topology = Topology(
        switches=switches,
        host_switch={host: names[0][index // arity] for index, host in enumerate(hosts)},
        cables=tuple(cables),
        source=f"simulated {arity}-ary fat tree of {levels} levels",
        routing=Routing(routing),
    )
    return Fabric(topology)
