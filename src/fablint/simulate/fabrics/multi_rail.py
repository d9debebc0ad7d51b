"""Several rails: separate planes with copies of the same fabric, and one NIC of every host in each plane."""

from __future__ import annotations

from dataclasses import replace

from fablint.model import Cable, Switch, Topology
from fablint.model.host_name import NicRef
from fablint.simulate.simulated_fabric import Fabric, checked


def multi_rail(fabric: Fabric, rails: int) -> Fabric:
    """Fabric with `rails` planes. NICs are `hsn0`, `hsn1`, ...; switches and groups of plane 1 are `p1.NAME`.

    A message stays in the plane of its sender's NIC: it enters the receiver by the NIC of that rail.
    """
    checked("multi-rail", rails=rails)
    if rails == 1:
        return fabric
    plane = fabric.topology
    nics = tuple(f"hsn{rail}" for rail in range(rails))

    def named(rail: int, name: str) -> str:
        return f"p{rail}.{name}"

    planes = range(rails)
    tables = {
        named(rail, switch): {host: named(rail, beyond) for host, beyond in entries.items()}
        for rail in planes
        for switch, entries in plane.routing.tables.items()
    }
    topology = Topology(
        switches={
            named(rail, switch.name): Switch(named(rail, switch.name), switch.group and named(rail, switch.group))
            for rail in planes
            for switch in plane.switches.values()
        },
        host_switch={host: named(0, switch) for host, switch in plane.host_switch.items()},
        cables=tuple(Cable(named(rail, cable.a), named(rail, cable.b)) for rail in planes for cable in plane.cables),
        source=f"{plane.source}, {rails} rails",
        routing=replace(plane.routing, tables=tables),
        nic_switch={
            NicRef.of(host, nic): named(rail, switch)
            for host, switch in plane.host_switch.items()
            for rail, nic in enumerate(nics)
        },
    )
    return Fabric(topology, nics)
