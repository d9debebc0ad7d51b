"""The fabrics by name, and their shapes."""

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

MOST_HOSTS = 200_000
WIDE = 8  # from which arity on a fat tree has three levels


@dataclass(frozen=True)
class Kind:
    """A kind of fabric."""

    form: str  # of the shape
    numbers: range  # how many a shape has
    build: Callable[[Shape], Fabric]
    shapes: Callable[[int], Iterator[Shape]]  # with that many hosts, the best one first
    routings: tuple[str, ...]  # to choose from, its own first


def _fat_trees(hosts: int) -> Iterator[Shape]:
    for levels, least in ((3, WIDE), (2, 1), (3, 1)):
        arity = round(hosts ** (1 / levels))
        if arity**levels == hosts and arity >= least:
            yield arity, levels


def _dragonflies(hosts: int) -> Iterator[Shape]:
    """Balanced ones first: twice as many routers as hosts on each, and no more groups than there are cables for."""
    found = [
        (groups, routers, each)
        for each in _divisors(hosts)
        for routers in _divisors(hosts // each)
        for groups in [hosts // each // routers]
        if 2 <= groups <= routers * each + 1
    ]
    yield from sorted(found, key=lambda shape: (abs(math.log(shape[1] / 2 / shape[2])), -shape[0]))


def _tori(hosts: int) -> Iterator[Shape]:
    for dimensions in (3, 2):
        for each in (1, 2, 4, 8):
            length = round((hosts / each) ** (1 / dimensions))
            if length**dimensions * each == hosts and length > 1:
                yield (*[length] * dimensions, each)


def _meshes(hosts: int) -> Iterator[Shape]:
    """About as many switches as hosts on each."""
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
    """A fabric of that kind with so many hosts, or of that shape. Raises UsageError where there is none."""
    known = KINDS[kind]
    if (hosts is None) == (shape is None):
        raise UsageError(f"{kind}: its size", f"give either the number of hosts or a shape, {known.form}")
    if shape is not None:
        return known.build(_parsed(kind, known, shape))
    assert hosts is not None
    if not 2 <= hosts <= MOST_HOSTS:
        raise UsageError(f"{kind}: {hosts} hosts", f"give between 2 and {MOST_HOSTS:,}")
    found = next(known.shapes(hosts), None)
    if found is None:
        near = [number for step in (-1, 1) if (number := _nearest(known, hosts, step))]
        others = " or ".join(f"{number:,}" for number in near)
        raise UsageError(f"{kind}: {hosts:,} hosts do not fit its shape", f"take {others}, or a shape, {known.form}")
    return known.build(found)


def _parsed(kind: str, known: Kind, shape: str) -> Shape:
    words = shape.lower().split("x")
    if not all(word.isdecimal() for word in words) or len(words) not in known.numbers:
        raise UsageError(f"{kind}: '{shape}' is no shape", f"write {known.form}")
    numbers = tuple(int(word) for word in words)
    size = numbers[0] ** numbers[1] if kind == "fat-tree" and numbers[1] < 64 else math.prod(numbers)
    if size > MOST_HOSTS:
        raise UsageError(f"{kind}: '{shape}' has {size:,} hosts", f"take {MOST_HOSTS:,} at most")
    return numbers


def _nearest(known: Kind, hosts: int, step: int) -> int | None:
    number = hosts + step
    while 2 <= number <= MOST_HOSTS:
        if next(known.shapes(number), None):
            return number
        number += step
    return None


def rerouted(kind: str, fabric: Fabric, routing: str | None, minimal_share: float | None) -> Fabric:
    """The same fabric with another routing than its own. Raises UsageError for one that the kind does not have."""
    known, own = KINDS[kind], fabric.topology.routing
    if routing is not None and routing not in known.routings:
        raise UsageError(f"{kind}: routing '{routing}'", f"choose from {', '.join(known.routings)}")
    chosen = routing or own.kind
    if minimal_share is not None and chosen != "adaptive":
        raise UsageError(f"{kind}: a minimal share with routing '{chosen}'", "it belongs to adaptive routing")
    if minimal_share is not None and not 0 < minimal_share <= 1:
        raise UsageError(f"{kind}: a minimal share of {minimal_share:g}", "give a number above 0, 1 at most")
    if routing is None and minimal_share is None:
        return fabric
    share = own.minimal_share if minimal_share is None else minimal_share
    made = own if chosen == "tables" else Routing(chosen, share if chosen == "adaptive" else 1.0)  # type: ignore[arg-type]
    return replace(fabric, topology=replace(fabric.topology, routing=made))
