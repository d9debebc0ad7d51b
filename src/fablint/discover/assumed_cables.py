"""Assumed cables: names for the paths between switches whose cables no source reports.

Sources at the hosts (LLDP, Slurm, addresses) report switches and groups, but not the cables between them. The assumed
cables are those of a dragonfly: one between every two switches of a group, and one between every two groups, which
every switch of the group reaches. An assumed cable stands for a path, whatever cables the path consists of.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import combinations

from fablint.model import Cable, Switch, Topology

MAX_GROUP_SWITCHES = 64  # in larger groups not every pair of switches has a cable


def add_assumed_cables(topology: Topology) -> Topology:
    """Return the topology with assumed cables; unchanged if its cables are known or a switch has no group.

    Each group gets a switch with the name of the group, through which its switches reach the other groups.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for switch in topology.switches.values():
        groups[switch.group].append(switch.name)
    if topology.cables or "" in groups or set(groups) & set(topology.switches):
        return topology
    if len(groups) == len(topology.switches) or max(map(len, groups.values())) > MAX_GROUP_SWITCHES:
        return topology
    cables = [Cable(a, b) for members in groups.values() for a, b in combinations(members, 2)]
    if len(groups) > 1:
        cables += [Cable(name, group) for group, members in groups.items() for name in members]
        cables += [Cable(a, b) for a, b in combinations(groups, 2)]
    gates = {group: Switch(group, group) for group in groups} if len(groups) > 1 else {}
    return replace(topology, switches={**topology.switches, **gates}, cables=tuple(cables))
