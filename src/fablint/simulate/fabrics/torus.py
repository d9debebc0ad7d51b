"""Torus: switches on a periodic grid; messages are routed dimension by dimension."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from fablint.errors import UsageError
from fablint.model import Cable, Routing, Switch, Topology
from fablint.simulate.simulated_fabric import Fabric, checked, numbered

MOST_ENTRIES = 4_000_000  # of forwarding tables

Place = tuple[int, ...]


def torus(dims: Sequence[int] = (4, 4, 4), hosts_per_switch: int = 2) -> Fabric:
    """Torus of `dims` switches, each with `hosts_per_switch` hosts; the routes are forwarding tables.

    Switches are `s0_0_0`, `s0_0_1`, ... A message corrects the first dimension first, in the shorter direction; at half
    the length it goes up.

    Raises
    ------
    UsageError
        A number is below 1, or the tables would have more than 4 million entries.
    """
    checked("torus", hosts_per_switch=hosts_per_switch, **{f"switches in dimension {n}": d for n, d in enumerate(dims)})
    if not dims:
        raise UsageError("torus: no dimensions", "give their lengths, as in 4x4x4")
    count = math.prod(dims)
    if count * count * hosts_per_switch > MOST_ENTRIES:
        raise UsageError(
            f"torus: {count} switches of {hosts_per_switch} hosts need forwarding tables of more than "
            f"{MOST_ENTRIES:,} entries",
            "make it smaller",
        )
    names = {place: "s" + "_".join(map(str, place)) for place in itertools.product(*map(range, dims))}
    cables: dict[Cable, None] = {}
    for place, name in names.items():
        for axis, length in enumerate(dims):
            neighbour = _moved(place, axis, 1, length)
            if neighbour != place and Cable(names[neighbour], name) not in cables:
                cables.setdefault(Cable(name, names[neighbour]))
    hosts = numbered("h", count * hosts_per_switch, 2)
    of_switch = {
        place: hosts[number * hosts_per_switch : (number + 1) * hosts_per_switch] for number, place in enumerate(names)
    }
    tables = {
        name: {
            host: names[_next(place, goal, dims)]
            for goal, hosts_there in of_switch.items()
            if goal != place
            for host in hosts_there
        }
        for place, name in names.items()
    }
    topology = Topology(
        switches={name: Switch(name) for name in names.values()},
        host_switch={host: names[place] for place, hosts_there in of_switch.items() for host in hosts_there},
        cables=tuple(cables),
        source=f"simulated torus of {'x'.join(map(str, dims))} switches",
        routing=Routing("tables", tables=tables),
    )
    return Fabric(topology)


def _moved(place: Place, axis: int, step: int, length: int) -> Place:
    return (*place[:axis], (place[axis] + step) % length, *place[axis + 1 :])


def _next(place: Place, goal: Place, dims: Sequence[int]) -> Place:
    axis = next(axis for axis in range(len(dims)) if place[axis] != goal[axis])
    ahead = (goal[axis] - place[axis]) % dims[axis]
    return _moved(place, axis, 1 if 2 * ahead <= dims[axis] else -1, dims[axis])
