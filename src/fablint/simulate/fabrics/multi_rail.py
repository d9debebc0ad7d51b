"""Several rails: the same fabric several times over, each a plane of its own, with one NIC of every host in each."""

from __future__ import annotations

from dataclasses import replace

from fablint.model import Cable, Switch, Topology
from fablint.simulate.simulated_fabric import Fabric, checked


def multi_rail(fabric: Fabric, rails: int) -> Fabric:
    """`rails` planes of `fabric`. NICs are `hsn0`, `hsn1`, ...; switches and groups of plane 1 are `p1.NAME`.

    A message stays in the plane of its sender's NIC: it enters the receiver by the NIC of that rail.
    """
    checked("multi-rail", rails=rails)
    if rails == 1:
        return fabric
    one = fabric.topology
    nics = tuple(f"hsn{rail}" for rail in range(rails))

    def named(rail: int, name: str) -> str:
        return f"p{rail}.{name}"

    planes = range(rails)
    tables = {
        named(rail, switch): {host: named(rail, beyond) for host, beyond in entries.items()}
        for rail in planes
        for switch, entries in one.routing.tables.items()
    }
    topology = Topology(
        switches={
            named(rail, switch.name): Switch(named(rail, switch.name), switch.group and named(rail, switch.group))
            for rail in planes
            for switch in one.switches.values()
        },
        host_switch={host: named(0, switch) for host, switch in one.host_switch.items()},
        cables=tuple(Cable(named(rail, cable.a), named(rail, cable.b)) for rail in planes for cable in one.cables),
        source=f"{one.source}, {rails} rails",
        routing=replace(one.routing, tables=tables),
        nic_switch={
            f"{host}/{nic}": named(rail, switch)
            for host, switch in one.host_switch.items()
            for rail, nic in enumerate(nics)
        },
    )
    return Fabric(topology, nics)
