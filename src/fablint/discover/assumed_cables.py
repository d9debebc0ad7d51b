"""Cables that nobody has told of: without them a slow way between two switches would have no name.

Sources at the hosts (LLDP, Slurm, addresses) tell switches and groups, and not what joins them. Presumed is what a
dragonfly has: a cable between each two switches of a group, and one way between each two groups, which each switch
of the group reaches somehow. A part named so is a way, whatever cables it is made of.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import combinations

from fablint.model import Cable, Switch, Topology

MOST_IN_A_GROUP = 64  # switches: in larger groups they are not joined each with each


def with_presumed_cables(topology: Topology) -> Topology:
    """The same with a cable for each way; as it is where cables are known, or nothing tells which groups there are.

    A group gets a switch of its name, through which its switches reach the other groups.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for switch in topology.switches.values():
        groups[switch.group].append(switch.name)
    if topology.cables or "" in groups or set(groups) & set(topology.switches):
        return topology
    if len(groups) == len(topology.switches) or max(map(len, groups.values())) > MOST_IN_A_GROUP:
        return topology
    cables = [Cable(a, b) for members in groups.values() for a, b in combinations(members, 2)]
    if len(groups) > 1:
        cables += [Cable(name, group) for group, members in groups.items() for name in members]
        cables += [Cable(a, b) for a, b in combinations(groups, 2)]
    gates = {group: Switch(group, group) for group in groups} if len(groups) > 1 else {}
    return replace(topology, switches={**topology.switches, **gates}, cables=tuple(cables))
