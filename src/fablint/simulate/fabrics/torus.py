"""Torus: switches on a grid that wraps round, messages go dimension by dimension."""

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
    """A torus of `dims` switches, each with `hosts_per_switch` hosts; the routes are written as forwarding tables.

    Switches are `s0_0_0`, `s0_0_1`, ... A message corrects the first dimension first, the shorter way round; halfway
    it goes up. Raises UsageError for numbers below 1 and where the tables would have more than 4 million entries.
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
            beside = _moved(place, axis, 1, length)
            if beside != place and Cable(names[beside], name) not in cables:
                cables.setdefault(Cable(name, names[beside]))
    hosts = numbered("h", count * hosts_per_switch, 2)
    of_switch = {
        place: hosts[number * hosts_per_switch : (number + 1) * hosts_per_switch] for number, place in enumerate(names)
    }
    tables = {
        name: {
            host: names[_next(place, goal, dims)]
            for goal, there in of_switch.items()
            if goal != place
            for host in there
        }
        for place, name in names.items()
    }
    topology = Topology(
        switches={name: Switch(name) for name in names.values()},
        host_switch={host: names[place] for place, there in of_switch.items() for host in there},
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
