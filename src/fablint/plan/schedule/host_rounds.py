"""Rounds of the levels of a suite: in a round all ranks of a host communicate with those of one other host.

Rank k of a host meets rank k of the other, as osu_mbw_mr and osu_multi_lat have it. Where the ranks of a host sit on
NICs of several switches, those of each NIC are paired by themselves, for their distances differ.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from fablint.model import Scope
from fablint.model.arrays import Codes, RankPairs
from fablint.plan.schedule.edge_coloring import coloured
from fablint.plan.schedule.interleaving import interleaved
from fablint.plan.schedule.stratified import COUNTS, strata, stratified_rounds, tournament
from fablint.topology.routed_placement import RoutedPlacement, number_within

REACH_ROUNDS = 3
LOOKED_AT = 64  # rounds of a tournament, of which those with most pairs of a scope are taken

Rounds = list[RankPairs]


def ranks_of_hosts(placement: RoutedPlacement, left_out: Collection[int] = ()) -> Codes:
    """(hosts, ranks of a host) the ranks that take part, -1 where there is none; hosts without any are left out."""
    rank = np.arange(placement.ranks, dtype=np.int32)
    table = np.full((len(placement.hosts), int(np.bincount(placement.host).max(initial=0))), -1, dtype=np.int32)
    table[placement.host, number_within(placement.host, rank)] = rank
    table[np.isin(table, list(left_out))] = -1
    return table[(table >= 0).any(axis=1)]


def leads(table: Codes) -> Codes:
    """(hosts,) the first rank of each host that takes part."""
    lead: Codes = table[np.arange(len(table)), (table >= 0).argmax(axis=1)]
    return lead


def scope_rounds(
    placement: RoutedPlacement, scope: Scope, left_out: Collection[int] = (), *, most: int | None = None, seed: int = 1
) -> tuple[Rounds, bool]:
    """Rounds of pairs of a scope, and whether these are all of its pairs, each once.

    Parameters
    ----------
    placement
        Where the ranks are.
    scope
        Edge, local or global; where no topology tells, all pairs are global.
    left_out
        Ranks that take no part.
    most
        Rounds up to which all pairs are measured; with more, matchings that collide little. None: always all.
    seed
        Same seed, same rounds.
    """
    table = ranks_of_hosts(placement, left_out)
    if len(table) < 2:
        return [], True
    lead = leads(table)
    has_rank = table >= 0
    if (
        placement.switch_or_host[np.where(has_rank, table, lead[:, None])] == placement.switch_or_host[lead][:, None]
    ).all():
        rounds, complete = _of_hosts(placement.one_per_host(lead), scope, most, seed)
        return _expanded(rounds, table), complete
    result = []
    for lane in range(table.shape[1]):
        ranks = table[table[:, lane] >= 0, lane]
        rounds, complete = _of_hosts(placement.one_per_host(ranks), scope, most, seed)
        result.append(([ranks[pairs] for pairs in rounds], complete))
    return _side_by_side([rounds for rounds, _ in result]), all(complete for _, complete in result)


def reach_rounds(placement: RoutedPlacement, left_out: Collection[int] = (), seed: int = 1) -> Rounds:
    """Return a few rounds in which each rank communicates with a near and with a distant rank."""
    table = ranks_of_hosts(placement, left_out)
    if len(table) < 2:
        return []
    thin = placement.one_per_host(leads(table))
    kinds = strata(thin, dict.fromkeys(COUNTS, 1))
    counts = dict.fromkeys(kinds, 1)
    if kinds:
        counts[list(kinds)[-1]] += max(0, REACH_ROUNDS - len(kinds))
    rounds = stratified_rounds(thin, seed, counts) if kinds else []
    return _expanded(rounds or _turns(np.arange(thin.ranks, dtype=np.int32), REACH_ROUNDS), table)


def all_pairs_rounds(placement: RoutedPlacement, left_out: Collection[int] = (), seed: int = 1) -> Rounds:
    """Every pair of hosts once."""
    table = ranks_of_hosts(placement, left_out)
    labels = np.random.default_rng(seed).permutation(len(table)).astype(np.int32)
    return _expanded(_turns(labels, len(table)), table)


def neighbour_rounds(placement: RoutedPlacement, left_out: Collection[int] = ()) -> Rounds:
    """Ranks of one host in pairs of neighbours; with an odd number of ranks a second round has those left over."""
    table = ranks_of_hosts(placement, left_out)
    lanes = table.shape[1]
    starts = [start for start in (0, 1) if start + 1 < lanes and (start == 0 or lanes % 2)]
    rounds = [
        np.concatenate([table[:, lane : lane + 2] for lane in range(start, lanes - 1, 2)]).astype(np.int32)
        for start in starts
    ]
    return _filled([pairs[(pairs >= 0).all(axis=1)] for pairs in rounds])


def crossing_rounds(codes: Codes, other: Codes, table: Codes, count: int, seed: int = 1) -> Rounds:
    """Rounds between two halves, host i of the one with host i of the other first, then matched at random.

    Parameters
    ----------
    codes
        Hosts of a half, as rows of `table`.
    other
        As many hosts of the other half.
    table
        `ranks_of_hosts`.
    count
        Rounds; fewer where there are fewer partners.
    seed
        Same seed, same rounds.
    """
    random = np.random.default_rng(seed)
    labels, turns = random.permutation(other.size), random.permutation(other.size)
    rounds = [np.stack([codes, other], axis=1)]
    place = np.empty_like(labels)
    place[labels] = np.arange(other.size)
    for turn in turns[turns != 0][: count - 1].tolist():
        rounds.append(np.stack([codes, other[labels[(place + turn) % other.size]]], axis=1))
    return _expanded(rounds, table)


# ------------------------------------------------------------------------------------------------ hosts


def _of_hosts(thin: RoutedPlacement, scope: Scope, most: int | None, seed: int) -> tuple[Rounds, bool]:
    """Rounds of a scope for one rank on each host."""
    box, part = _boxes(thin, scope)
    partners = np.bincount(box)[box] - np.bincount(part)[part]
    busiest = int(partners.max(initial=0))
    if not busiest:
        return [], True
    random = np.random.default_rng(seed)
    if most is None or busiest <= most:
        return _complete(box, part, random), True
    count = min(strata(thin).get(scope, COUNTS[scope]), most)
    rounds = stratified_rounds(thin, seed, {scope: count})
    rounds = _filled([pairs[thin.in_stratum(pairs, scope)] for pairs in rounds])
    return rounds or interleaved(_few(thin, scope, box, count, random), thin, seed), False


def _boxes(thin: RoutedPlacement, scope: Scope) -> tuple[Codes, Codes]:
    """Return of each host what its partners of a scope share with it, and what they do not."""
    none = np.zeros_like(thin.host)
    return {
        Scope.EDGE: (thin.switch_or_host, thin.host),
        Scope.LOCAL: (thin.group_or_host, thin.switch_or_host),
        Scope.GLOBAL: (none, thin.group_or_host),
    }[scope]


def _complete(box: Codes, part: Codes, random: np.random.Generator) -> Rounds:
    """All pairs of hosts with the same box and different parts; each box plays by itself, all at once.

    Boxes of the same shape have their rounds in the same order: what spreads the paths of one spreads those of all.
    """
    result = []
    for code in np.unique(box):
        members = random.permutation(np.flatnonzero(box == code)).astype(np.int32)
        parts, place, sizes = np.unique(part[members], return_inverse=True, return_counts=True)
        ranked = np.lexsort((random.permutation(parts.size), sizes))
        position = np.empty_like(ranked)
        position[ranked] = np.arange(parts.size)
        members = members[np.argsort(position[place], kind="stable")]
        rounds = coloured(tuple(np.sort(sizes).tolist()))
        result.append([members[pairs] for pairs in rounds])
    return _side_by_side(result)


def _few(thin: RoutedPlacement, scope: Scope, box: Codes, count: int, random: np.random.Generator) -> Rounds:
    """Some rounds of a scope in which most hosts have no partner: a tournament in each box, without other pairs."""
    result = []
    for code in np.unique(box):
        rounds = _turns(random.permutation(np.flatnonzero(box == code)).astype(np.int32), max(count, LOOKED_AT))
        kept = sorted((pairs[thin.in_stratum(pairs, scope)] for pairs in rounds), key=len, reverse=True)
        result.append(_filled(kept[:count]))
    return _side_by_side(result)


def _turns(labels: Codes, most: int) -> Rounds:
    """The first rounds of a tournament."""
    turns = range(min(most, labels.size - 1 + labels.size % 2) if labels.size > 1 else 0)
    return [np.stack(tournament(labels, turn), axis=1).astype(np.int32) for turn in turns]


# ------------------------------------------------------------------------------------------------ ranks


def _expanded(rounds: Sequence[RankPairs], table: Codes) -> Rounds:
    """Pairs of hosts, rows of the table, as pairs of their ranks."""
    expanded = [np.stack([table[pairs[:, 0]].ravel(), table[pairs[:, 1]].ravel()], axis=1) for pairs in rounds]
    return _filled([pairs[(pairs >= 0).all(axis=1)] for pairs in expanded])


def _side_by_side(rank_pairs: Sequence[Sequence[RankPairs]]) -> Rounds:
    """Rounds of sets of ranks that have none in common, as rounds of all of them."""
    longest = max((len(rounds) for rounds in rank_pairs), default=0)
    merged = [[rounds[number] for rounds in rank_pairs if number < len(rounds)] for number in range(longest)]
    return _filled([np.concatenate(parts) for parts in merged])


def _filled(rounds: Sequence[RankPairs]) -> Rounds:
    return [pairs for pairs in rounds if len(pairs)]
