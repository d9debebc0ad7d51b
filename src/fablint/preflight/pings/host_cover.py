"""The fewest hosts without which no pair of unconnected hosts is left: a minimum vertex cover."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

_MOST_EXACT = 24  # hosts of a part that is not bipartite: a cover of more is not always the smallest

Neighbours = Mapping[str, set[str]]


def smallest_cover(pairs: Iterable[frozenset[str]], order: Sequence[str]) -> list[str]:
    """Return the hosts of a smallest set with a host of every pair, in the order of all hosts.

    Of two sides of the same size, that of the first host stays. A part of the graph that is bipartite, as hosts behind
    two switches are, is solved by a maximum matching (Koenig 1931), a small one by branching. Of a large part that is
    not bipartite the host with most pairs is taken again and again.
    """
    rank = {host: number for number, host in enumerate(order)}
    neighbours: dict[str, set[str]] = defaultdict(set)
    for item, other in map(tuple, pairs):
        neighbours[item].add(other)
        neighbours[other].add(item)
    cover: set[str] = set()
    left = sorted(neighbours, key=rank.__getitem__)
    seen: set[str] = set()
    for host in left:
        if host not in seen:
            sides = _sides(host, neighbours)
            part = sides.keys()
            seen |= part
            if all(sides[one] != sides[other] for one in part for other in neighbours[one]):
                cover |= _bipartite_cover(sides, neighbours, rank)
            elif len(part) <= _MOST_EXACT:
                cover |= _exact_cover({one: set(neighbours[one]) for one in part}, rank)
            else:
                cover |= _greedy_cover({one: set(neighbours[one]) for one in part}, rank)
    return sorted(cover, key=rank.__getitem__)


def _sides(first: str, neighbours: Neighbours) -> dict[str, bool]:
    """Return the hosts that are connected with the first one, by the parity of their distance from it."""
    sides, waiting = {first: False}, [first]
    while waiting:
        host = waiting.pop()
        for other in sorted(neighbours[host] - sides.keys()):
            sides[other] = not sides[host]
            waiting.append(other)
    return sides


def _bipartite_cover(sides: Mapping[str, bool], neighbours: Neighbours, rank: Mapping[str, int]) -> set[str]:
    """Return the cover of a bipartite part: rows reached from no unmatched row, and columns that are."""
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    rows, columns = (
        sorted((one for one in sides if sides[one] is side), key=rank.__getitem__) for side in (True, False)
    )
    number = {host: at for at, host in enumerate(columns)}
    cells = [(at, number[other]) for at, host in enumerate(rows) for other in neighbours[host]]
    at_row, at_column = np.array(cells).T
    graph = csr_array((np.ones(len(cells), np.int8), (at_row, at_column)), shape=(len(rows), len(columns)))
    row_of = maximum_bipartite_matching(graph, perm_type="row")  # by column, -1: none
    matched = {rows[at]: columns[column] for column, at in enumerate(row_of.tolist()) if at >= 0}
    row_of_column = {column: row for row, column in matched.items()}
    reached, waiting = set[str](), [row for row in rows if row not in matched]
    reached_rows = set(waiting)
    while waiting:
        for column in neighbours[waiting.pop()] - reached:
            reached.add(column)
            row = row_of_column[column]
            if row not in reached_rows:
                reached_rows.add(row)
                waiting.append(row)
    return reached | {row for row in rows if row not in reached_rows}


def _exact_cover(neighbours: dict[str, set[str]], rank: Mapping[str, int]) -> set[str]:
    """Return a smallest cover by branching on the host with most pairs: it is in the cover, or all its partners are."""
    best = set(neighbours)

    def branch(left: Mapping[str, set[str]], taken: set[str]) -> None:
        nonlocal best
        open_hosts = [host for host in left if left[host]]
        if not open_hosts:
            best = taken if len(taken) < len(best) else best
            return
        host = max(open_hosts, key=lambda one: (len(left[one]), rank[one]))
        pairs = sum(len(left[one]) for one in open_hosts) // 2
        if len(taken) - (-pairs // len(left[host])) >= len(best):
            return
        for chosen in ({host}, set(left[host])):
            branch({one: left[one] - chosen for one in open_hosts if one not in chosen}, taken | chosen)

    branch(neighbours, set())
    return best


def _greedy_cover(neighbours: dict[str, set[str]], rank: Mapping[str, int]) -> set[str]:
    """Return a cover that need not be the smallest."""
    cover: set[str] = set()
    while any(neighbours.values()):
        host = max(neighbours, key=lambda one: (len(neighbours[one]), rank[one]))
        cover.add(host)
        for other in neighbours.pop(host):
            neighbours[other].discard(host)
    return cover
