"""Full mesh: every switch is connected to every other."""

from __future__ import annotations

from fablint.model import Cable, Switch, Topology
from fablint.simulate.simulated_fabric import Fabric, checked, numbered


def full_mesh(switches: int = 8, hosts_per_switch: int = 8) -> Fabric:
    """Full mesh: every switch is connected to every other by one cable, as inside a Slingshot group.

    Hosts are `h00`, `h01`, ... in switch order, switches `s0`, `s1`, ..., all in group `g0`.

    Raises
    ------
    UsageError
        A number is below 1.
    """
    checked("full mesh", switches=switches, hosts_per_switch=hosts_per_switch)
    names = numbered("s", switches)
    hosts = numbered("h", switches * hosts_per_switch, 2)
    topology = Topology(
        switches={name: Switch(name, "g0") for name in names},
        host_switch={host: names[index // hosts_per_switch] for index, host in enumerate(hosts)},
        cables=tuple(Cable(a, b) for index, a in enumerate(names) for b in names[index + 1 :]),
        source=f"simulated full mesh of {switches} switches",
    )
    return Fabric(topology)
