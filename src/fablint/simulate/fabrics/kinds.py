"""Table of fabrics by name, and their shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from fablint.errors import UsageError
from fablint.model import Routing
from fablint.simulate.fabrics.dragonfly import dragonfly
from fablint.simulate.fabrics.fat_tree import fat_tree
from fablint.simulate.fabrics.full_mesh import full_mesh
from fablint.simulate.fabrics.torus import torus
from fablint.simulate.simulated_fabric import Fabric

Shape = tuple[int, ...]

MOST_HOSTS = 250_000
WIDE = 8  # smallest arity of a fat tree of three levels


@dataclass(frozen=True)
class Kind:
    """A kind of fabric."""

    form: str  # format of the shape
    numbers: range  # number of numbers in a shape
    build: Callable[[Shape], Fabric]
    shapes: Callable[[int], Iterator[Shape]]  # with that many hosts, the best shape first
    routings: tuple[str, ...]  # available routings, the default first


def _fat_trees(hosts: int) -> Iterator[Shape]:
    for levels, least in ((3, WIDE), (2, 1), (3, 1)):
        arity = round(hosts ** (1 / levels))
        if arity**levels == hosts and arity >= least:
            yield arity, levels


def _dragonflies(hosts: int) -> Iterator[Shape]:
    """Yield shapes, balanced first: twice as many routers as hosts per router, and at most as many groups as cables
    allow.
    """
    shapes = [
        (groups, routers, each)
        for each in _divisors(hosts)
        for routers in _divisors(hosts // each)
        for groups in [hosts // each // routers]
        if 2 <= groups <= routers * each + 1
    ]
    yield from sorted(shapes, key=lambda shape: (abs(math.log(shape[1] / 2 / shape[2])), -shape[0]))


def _tori(hosts: int) -> Iterator[Shape]:
    for dimensions in (3, 2):
        for each in (1, 2, 4, 8):
            length = round((hosts / each) ** (1 / dimensions))
            if length**dimensions * each == hosts and length > 1:
                yield (*[length] * dimensions, each)


def _meshes(hosts: int) -> Iterator[Shape]:
    """Yield shapes with about as many switches as hosts per switch first."""
    for each in sorted(_divisors(hosts), key=lambda each: abs(math.log(each * each / hosts))):
        yield hosts // each, each


def _divisors(number: int) -> list[int]:
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})


KINDS: Mapping[str, Kind] = {
    "fat-tree": Kind(
        "ARITYxLEVELS",
        range(2, 3),
        lambda shape: fat_tree(shape[0], shape[1]),
        _fat_trees,
        ("d-mod-k", "ecmp", "adaptive"),
    ),
    "dragonfly": Kind(
        "GROUPSxROUTERSxHOSTS", range(3, 4), lambda shape: dragonfly(*shape), _dragonflies, ("adaptive", "shortest")
    ),
    "torus": Kind("AxBxCxHOSTS", range(2, 8), lambda shape: torus(shape[:-1], shape[-1]), _tori, ("tables",)),
    "mesh": Kind("SWITCHESxHOSTS", range(2, 3), lambda shape: full_mesh(*shape), _meshes, ("shortest",)),
}


def build(kind: str, hosts: int | None = None, shape: str | None = None) -> Fabric:
    """Return a fabric of a kind.

    Parameters
    ----------
    kind
        `fat-tree`, `dragonfly`, `torus` or `mesh`.
    hosts
        Number of hosts.
    shape
        Numbers of the kind, such as `9x4x2`, instead of the number of hosts.

    Raises
    ------
    UsageError
        There is no fabric of that size or shape, or both or neither are given.
    """
    entry = KINDS[kind]
    if (hosts is None) == (shape is None):
        raise UsageError(f"{kind}: its size", f"give either the number of hosts or a shape, {entry.form}")
    if shape is not None:
        return entry.build(_parsed(kind, entry, shape))
    assert hosts is not None
    if not 2 <= hosts <= MOST_HOSTS:
        raise UsageError(f"{kind}: {hosts} hosts", f"give between 2 and {MOST_HOSTS:,}")
    chosen = next(entry.shapes(hosts), None)
    if chosen is None:
        near = [number for step in (-1, 1) if (number := _nearest(entry, hosts, step))]
        sizes = " or ".join(f"{number:,}" for number in near)
        raise UsageError(f"{kind}: {hosts:,} hosts do not fit its shape", f"take {sizes}, or a shape, {entry.form}")
    return entry.build(chosen)


def _parsed(kind: str, entry: Kind, shape: str) -> Shape:
    words = shape.lower().split("x")
    if not all(word.isdecimal() for word in words) or len(words) not in entry.numbers:
        raise UsageError(f"{kind}: '{shape}' is not a shape", f"write {entry.form}")
    numbers = tuple(int(word) for word in words)
    size = numbers[0] ** numbers[1] if kind == "fat-tree" and numbers[1] < 64 else math.prod(numbers)
    if size > MOST_HOSTS:
        raise UsageError(f"{kind}: '{shape}' has {size:,} hosts", f"take {MOST_HOSTS:,} at most")
    return numbers


def _nearest(entry: Kind, hosts: int, step: int) -> int | None:
    number = hosts + step
    while 2 <= number <= MOST_HOSTS:
        if next(entry.shapes(number), None):
            return number
        number += step
    return None


def rerouted(kind: str, fabric: Fabric, routing: str | None, minimal_share: float | None) -> Fabric:
    """Return a fabric with another routing.

    Parameters
    ----------
    kind
        The kind of the fabric.
    fabric
        The fabric.
    routing
        Name of the routing; None: that of the fabric.
    minimal_share
        Share of messages on shortest paths, of adaptive routing; None: that of the fabric.

    Raises
    ------
    UsageError
        The kind does not support the routing, or the share is not one of adaptive routing.
    """
    entry, present = KINDS[kind], fabric.topology.routing
    if routing is not None and routing not in entry.routings:
        raise UsageError(f"{kind}: routing '{routing}'", f"choose from {', '.join(entry.routings)}")
    chosen = routing or present.kind
    if minimal_share is not None and chosen != "adaptive":
        raise UsageError(f"{kind}: a minimal share with routing '{chosen}'", "it belongs to adaptive routing")
    if minimal_share is not None and not 0 < minimal_share <= 1:
        raise UsageError(f"{kind}: a minimal share of {minimal_share:g}", "give a number above 0, 1 at most")
    if routing is None and minimal_share is None:
        return fabric
    share = present.minimal_share if minimal_share is None else minimal_share
    replacement = present if chosen == "tables" else Routing(chosen, share if chosen == "adaptive" else 1.0)  # type: ignore[arg-type]
    return replace(fabric, topology=replace(fabric.topology, routing=replacement))
