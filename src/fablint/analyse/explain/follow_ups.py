"""Follow-up measurements: pairs that would decide about components that are neither detected nor healthy.

A component is open if its e-value is between 1/1000 and the limit of a detection and there is more evidence against it
than by chance; or if too few of its pairs remain, since a detection explains the others. New partners near and far
decide about a host, new combinations of senders and receivers across a link about the link: such a pair crosses the
link as well if the destination determines the path.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.candidates.components import Cables, ComponentType, find_crossing_cells
from fablint.analyse.explain.ambiguity import GroupMember
from fablint.analyse.explain.evidence import UNITS_PER_NAT, Evidence
from fablint.analyse.explain.search import Bar, Detection, Sides, detect_components
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.settings import CLEAR_EVIDENCE, FEWEST_VALUES, FOLLOW_UP_PAIRS, MOST_FOLLOW_UPS
from fablint.model import FollowUp, Placement
from fablint.model.arrays import Codes, Mask, RankPairs
from fablint.topology.routed_placement import links_crossed

TRIES = 2000  # combinations of senders and receivers examined per component


def propose_follow_ups(
    detected: Sequence[Detection],
    suspects: Sequence[Detection],
    evidence: Evidence,
    effects: Effects,
    component_types: Sequence[ComponentType],
    sides: Sides,
) -> list[FollowUp]:
    """Return the follow-up measurements of one view, those with the most evidence first.

    Pairs of open components are removed from `evidence`.

    Parameters
    ----------
    detected
        Detections of the view.
    suspects
        Candidates of the view.
    evidence
        Evidence without the pairs of detections.
    effects
        Model without the pairs of detections.
    component_types
        All component types.
    sides
        Rule for the directions of a host.
    """
    asked = Bar(CLEAR_EVIDENCE, fewest=1, surely=False, most=MOST_FOLLOW_UPS)
    healthy = _healthy_ranks(evidence)
    hidden = _hidden_links(evidence, component_types)
    cases = [*suspects, *detect_components(evidence, effects, component_types, asked, sides=sides)]
    result = [propose_follow_up(case, evidence, healthy) for case in cases]
    result += [propose_split(case, evidence, healthy) for case in detected if case.ambiguity_group.all]
    return [follow_up for follow_up in [*result, *_propose_link_pairs(hidden, evidence, healthy)] if follow_up.open]


def propose_late_follow_ups(cases: Sequence[Detection], evidence: Evidence, placement: Placement) -> list[FollowUp]:
    """Return one follow-up measurement per case: pairs of ranks whose messages cross the component.

    Pairs with a link or cable are between ranks on the switches at its two ends, in its direction, if both switches
    have ranks; other pairs are between the senders and the receivers of the case.

    Parameters
    ----------
    cases
        Candidates and detections of tail latency, in any order; the result has their order.
    evidence
        Evidence of the pairs of the same row.
    placement
        Host and switch of each rank of that row.

    Returns
    -------
    Follow-up measurements of at most 24 (k, 2) pairs each, those that are not measured yet and those with healthy ranks
    first.
    """
    healthy = _healthy_ranks(evidence)
    result = []
    for case in cases:
        component = case.component()
        ends = case.cells[0], evidence.pairs.destination(case.cells)
        if component.kind in ("link", "cable"):
            there, back = (end.label for end in case.whole.ends)
            at = _ranks_at(placement, *((back, there) if case.sides == (1,) else (there, back)))
            ends = at if at[0].size and at[1].size else ends
        result.append(FollowUp(component, _between(ends, healthy, evidence)))
    return result


def _ranks_at(placement: Placement, *switches: str) -> tuple[Codes, Codes]:
    """Return the ranks on the hosts of each of two switches."""
    a, b = (
        placement.switches.index(name) if name in placement.switches else len(placement.switches) for name in switches
    )
    return np.flatnonzero(placement.switch == a), np.flatnonzero(placement.switch == b)


def _between(ends: tuple[Codes, Codes], healthy: Codes, evidence: Evidence) -> RankPairs:
    """Return pairs from the first ranks to the second, with healthy ranks first."""
    rng, host = np.random.default_rng(_seed(ends[0])), evidence.placement.host
    src, dst = (rng.choice(ranks, TRIES) for ranks in ends)
    pairs = rng.permutation(_distinct(src, dst, host[src] != host[dst]))
    number_of_suspects = 2 - np.isin(pairs, healthy).sum(axis=1)
    return _unmeasured_first(pairs[np.argsort(number_of_suspects, kind="stable")], evidence)[:FOLLOW_UP_PAIRS]


def retests(cases: Sequence[Detection], evidence: Evidence) -> list[FollowUp]:
    """Return one follow-up measurement per case, in the same order: pairs that measure the component again."""
    healthy = _healthy_ranks(evidence)
    return [propose_follow_up(case, evidence, healthy) for case in cases]


def propose_follow_up(case: Detection, evidence: Evidence, healthy: Codes) -> FollowUp:
    """Return the follow-up measurement of one component."""
    component = case.component()
    between = case.kind == "cable" or (case.kind == "switch" and component.label not in evidence.placement.switches)
    pairs = _across(case.cells, evidence, healthy) if between else _with_others(case, evidence, healthy)
    if between and not len(pairs):  # the other pairs that cross it are unknown: the same pairs again
        pairs = _distinct(case.cells[0], evidence.pairs.destination(case.cells))[:FOLLOW_UP_PAIRS]
    return FollowUp(component, pairs)


def propose_split(case: Detection, evidence: Evidence, healthy: Codes) -> FollowUp:
    """Return pairs whose messages cross some members of an ambiguity group and not the others."""
    rng = np.random.default_rng(_seed(case.cells[0]))
    placement, to = evidence.placement, evidence.pairs.destination(case.cells)
    members = (*case.own, *case.ambiguity_group.all)
    ends = [
        np.unique(
            np.concatenate([ranks, np.flatnonzero(np.isin(placement.switch, np.unique(placement.switch[ranks])))])
        )
        for ranks in (case.cells[0], to)
    ]
    # One end at the group, the other anywhere.
    src = np.concatenate([rng.choice(ends[0], TRIES), rng.choice(healthy, TRIES)])
    dst = np.concatenate([rng.choice(healthy, TRIES), rng.choice(np.concatenate([to, ends[1]]), TRIES)])
    pairs = _distinct(src, dst, placement.host[src] != placement.host[dst])
    crossed = np.stack([_crosses_member(member, pairs, evidence) for member in members], axis=1)
    split = crossed.any(axis=1) & ~crossed.all(axis=1)
    component = case.component()
    return FollowUp(component, _unmeasured_first(rng.permutation(pairs[split]), evidence)[:FOLLOW_UP_PAIRS])


def _crosses_member(member: GroupMember, pairs: RankPairs, evidence: Evidence) -> Mask:
    """Return a (k,) mask of the pairs whose messages cross the component."""
    placement, routes = evidence.placement, evidence.message_paths.routes
    if member.component in ("host", "nic"):
        code = placement.host if member.component == "host" else placement.nic
        return np.asarray(code[pairs[:, member.side]] == member.number)
    if member.component == "link":
        return _cross(pairs, np.array([member.number]), evidence)
    name = member.reference.label
    at = placement.switches.index(name) if name in placement.switches else len(placement.switches)
    links = (
        np.zeros(0, np.int64) if routes is None else np.flatnonzero(routes.ends[:, 1] == routes.switches.index(name))
    )
    return np.asarray((placement.switch[pairs] == at).any(axis=1) | _cross(pairs, links, evidence))


def _healthy_ranks(evidence: Evidence) -> Codes:
    """Return the ranks without evidence against them as senders or receivers; all ranks if there are none."""
    healthy = np.flatnonzero((evidence.total.own_sent <= 0) & (evidence.total.own_received <= 0))
    return healthy if healthy.size else np.arange(evidence.pairs.ranks)


def _hidden_links(evidence: Evidence, component_types: Sequence[ComponentType]) -> Codes:
    """Return the links with too few unexplained pairs, since a detection explains the others."""
    if not any(isinstance(component_type, Cables) for component_type in component_types):
        return np.empty(0, dtype=np.int64)
    live = evidence.live.segment[: evidence.message_paths.known_links]
    speaks = evidence.total.segment[: evidence.message_paths.known_links] > -np.log(1000) * UNITS_PER_NAT
    return np.flatnonzero((live < FEWEST_VALUES) & (live > 0) & speaks)


def _propose_link_pairs(links: Codes, evidence: Evidence, healthy: Codes) -> list[FollowUp]:
    """Return follow-up measurements of links."""
    follow_ups = []
    for link in links[:MOST_FOLLOW_UPS]:
        cells = find_crossing_cells(evidence.message_paths, evidence.pairs, np.array([link]), bidirectional=False)
        assert evidence.message_paths.routes is not None
        follow_ups.append(
            FollowUp(evidence.message_paths.routes.component(int(link)), _across(cells, evidence, healthy))
        )
    return follow_ups


def _with_others(case: Detection, evidence: Evidence, healthy: Codes) -> RankPairs:
    """Return pairs of the component's ranks with healthy ranks: on its own switches first, then on all others."""
    rng = np.random.default_rng(_seed(case.ranks))
    placement = evidence.placement
    others = healthy[~np.isin(placement.host[healthy], np.unique(placement.host[case.ranks]))]
    if not others.size:
        return np.empty((0, 2), dtype=np.int64)
    home = np.unique(placement.switch[case.ranks])
    near = rng.permutation(others[np.isin(placement.switch[others], home[home >= 0])])[: FOLLOW_UP_PAIRS // 4]
    far = rng.permutation(others[~np.isin(others, near)])[: FOLLOW_UP_PAIRS - near.size]
    partner = rng.permutation(np.concatenate([near, far]))
    rank = np.resize(rng.permutation(case.ranks), partner.size)
    pairs = np.stack([rank, partner] if case.sides != (1,) else [partner, rank], axis=1)
    return _unmeasured_first(pairs, evidence)


def _across(cells: tuple[Codes, Codes], evidence: Evidence, healthy: Codes) -> RankPairs:
    """Return new pairs of the senders and receivers of these cells that cross the same segments, healthy ranks
    first.
    """
    rng = np.random.default_rng(_seed(cells[0]))
    message_paths, to = evidence.message_paths, evidence.pairs.destination(cells)
    if not cells[0].size:
        return np.empty((0, 2), dtype=np.int64)
    common = _common_segments(cells, evidence)
    senders, receivers = np.unique(cells[0]), np.unique(to)
    if (
        message_paths.switch[senders].min() == message_paths.switch[senders].max()
    ):  # other ranks on this switch send over it as well
        senders = np.flatnonzero(message_paths.switch == message_paths.switch[senders[0]])
    src, dst = rng.choice(senders, TRIES), rng.choice(receivers, TRIES)
    pairs = _distinct(src, dst, src != dst)
    crosses = _cross(pairs, common, evidence)
    pairs = rng.permutation(pairs[crosses])
    number_of_suspects = 2 - np.isin(pairs, healthy).sum(axis=1)
    return _unmeasured_first(pairs[np.argsort(number_of_suspects, kind="stable")], evidence)[:FOLLOW_UP_PAIRS]


def _distinct(src: Codes, dst: Codes, selected: Mask | slice = slice(None)) -> RankPairs:
    """Return the distinct pairs of a sender and a receiver in ascending order.

    One number per pair is sorted: `np.unique` of rows sorts records, which takes ten times as long.
    """
    ranks = int(dst.max(initial=0)) + 1
    pairs = np.unique(src[selected].astype(np.int64) * ranks + dst[selected])
    return np.stack(np.divmod(pairs, ranks), axis=1)


def _common_segments(cells: tuple[Codes, Codes], evidence: Evidence) -> Codes:
    """Return the segments that most of these cells share."""
    counts = evidence.on_segments(cells, np.ones(cells[0].size, dtype=np.int64))
    return np.flatnonzero(counts == counts.max(initial=1))


def _cross(pairs: RankPairs, segments: Codes, evidence: Evidence) -> Mask:
    """Return a (k,) mask of the pairs whose messages cross one of these segments, measured or not."""
    message_paths, placement = evidence.message_paths, evidence.placement
    if message_paths.routes is None or not pairs.size:
        return np.zeros(len(pairs), dtype=bool)
    src, dst = pairs.T
    source_switch, target_switch = placement.switch[src], placement.switch[dst]
    message, link = links_crossed(
        message_paths.routes, source_switch, target_switch, placement.location[dst], placement.switches
    )
    crossing = np.zeros(len(pairs), dtype=bool)
    crossing[message[np.isin(link, segments)]] = True
    return crossing


def _unmeasured_first(pairs: RankPairs, evidence: Evidence) -> RankPairs:
    """Return the pairs with those last that were measured already: they carry less information than new pairs."""
    partner = evidence.pairs.partner
    if partner is None or not len(pairs):
        return pairs
    was_measured = (partner[pairs[:, 0]] == pairs[:, 1, None]).any(axis=1)
    return pairs[np.argsort(was_measured, kind="stable")]


def _seed(ranks: Codes) -> int:
    """Return the seed of a component's random numbers: the same component has the same follow-up pairs each time."""
    return int(ranks.sum()) % (1 << 32)
