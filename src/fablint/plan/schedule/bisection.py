"""Two halves of the fabric, cut across its bottleneck: as many hosts in the one as in the other, no group in both.

The rules of LinkTest's bisection (references: LinkTest description, Rules): the test runs across the network's
bottleneck, with the ranks equally distributed on either half of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.errors import UsageError
from fablint.model.arrays import Codes, RankPairs
from fablint.model.names import plural
from fablint.plan.schedule.host_rounds import crossing_rounds, leads, ranks_of_hosts
from fablint.topology.routed_placement import RoutedPlacement

ROUNDS = 8  # matchings across the cut
MOST_NAMED = 8  # groups or hosts in a message


@dataclass(frozen=True)
class Halves:
    """Hosts of the two halves as rows of `table` (`ranks_of_hosts`), and those that stay idle since they are too many.

    `parts` are the groups (or switches) of each half.
    """

    one: Codes
    other: Codes
    idle: tuple[str, ...]
    kind: str  # `group` or `switch`: what was kept together
    parts: tuple[tuple[str, ...], tuple[str, ...]]
    table: Codes

    @property
    def text(self) -> str:
        """`4 hosts of g0 and 4 hosts of g1`."""
        both = zip((self.one, self.other), self.parts, strict=True)
        words = " and ".join(f"{plural(half.size, 'host')} of {_listed(parts)}" for half, parts in both)
        return f"{words}; idle: {_listed(self.idle)}" if self.idle else words


def bisection_rounds(
    placement: RoutedPlacement,
    rank_hosts: Sequence[str],
    left_out: Collection[int] = (),
    *,
    unequal: bool = False,
    seed: int = 1,
) -> list[RankPairs]:
    """Host i of the one half with host i of the other, then other matchings across the cut.

    Raises UsageError as `halves`.
    """
    cut = halves(placement, rank_hosts, left_out, unequal=unequal)
    return crossing_rounds(cut.one, cut.other, cut.table, ROUNDS, seed)


def halves(
    placement: RoutedPlacement,
    rank_hosts: Sequence[str],
    left_out: Collection[int] = (),
    *,
    unequal: bool = False,
) -> Halves:
    """The halves of a fabric: whole groups, whole switches where there is but one group.

    Parameters
    ----------
    placement
        Where the ranks are.
    rank_hosts
        The host of each rank.
    left_out
        Ranks that take no part.
    unequal
        Where the groups make no equal halves, the nearest to it, and what is too many stays idle.

    Raises
    ------
    UsageError
        No topology, one switch, or no equal halves; says how many hosts each group has, and which to leave out.
    """
    table = ranks_of_hosts(placement, left_out)
    lead = leads(table)
    if len(table) < 2:
        raise UsageError(f"bisection: {plural(len(table), 'host')}", "give two or more")
    if not (placement.location[lead] >= 0).any():
        raise UsageError("bisection: the bottleneck is not known", "give a --topology")
    kind, code = "group", placement.group_or_host[lead]
    if np.ptp(code) == 0:
        kind, code = "switch", placement.switch_or_host[lead]
    if np.ptp(code) == 0:
        raise UsageError("bisection: all hosts are on one switch, which nothing cuts", "measure --suite edge")
    codes, place, sizes = np.unique(code, return_inverse=True, return_counts=True)
    chosen = _nearest_half(sizes.tolist())
    item, other = (np.flatnonzero(np.isin(place, chosen) == side).astype(np.int32) for side in (True, False))
    first = [rank_hosts[rank] for rank in lead[np.unique(place, return_index=True)[1]].tolist()]
    containers = placement.groups if kind == "group" else placement.switches
    names = [
        containers[code] if code < len(containers) else f"{host} alone"
        for code, host in zip(codes.tolist(), first, strict=True)
    ]
    more, surplus = (item if item.size > other.size else other), abs(item.size - other.size)
    idle = tuple(rank_hosts[lead[host]] for host in more[more.size - surplus :]) if surplus else ()
    if surplus and not unequal:
        raise _unequal(kind, names, sizes.tolist(), idle)
    fewer = min(item.size, other.size)
    parts = tuple(
        tuple(names[part] for part in range(codes.size) if (part in chosen) == side) for side in (True, False)
    )
    return Halves(item[:fewer], other[:fewer], idle, kind, (parts[0], parts[1]), table)


def _nearest_half(sizes: Sequence[int]) -> list[int]:
    """Return which of them together come nearest to half of all: the first ones, where several sets do."""
    whole = sum(sizes)
    reached: dict[int, tuple[int, int] | None] = {0: None}  # sum: what was added last, and the sum before
    for number, size in enumerate(sizes[:-1]):  # the last is in the other half: the halves have no names
        for total in list(reached):
            reached.setdefault(total + size, (number, total))
        if 2 * max(reached) >= whole and whole // 2 in reached:
            break
    best = min((total for total in reached if total), key=lambda total: abs(2 * total - whole))
    chosen = []
    while (step := reached[best]) is not None:
        chosen.append(step[0])
        best = step[1]
    return sorted(chosen)


def _unequal(kind: str, names: Sequence[str], sizes: Sequence[int], idle: Sequence[str]) -> UsageError:
    """Return the sizes of the groups, and which hosts to leave out."""
    counts = [f"{name} {size}" for name, size in zip(names, sizes, strict=True)]
    return UsageError(
        f"bisection: no equal halves of {plural(sum(sizes), 'host')} ({kind}s: {_listed(counts)})",
        f"leave out {plural(len(idle), 'host')}, such as {_listed(idle)}, or allow unequal halves, where they idle",
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
