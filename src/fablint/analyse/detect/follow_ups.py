"""What to measure next: pairs that would decide about the parts that are neither convicted nor cleared.

A part is open while its e-value is between 1/1000 and what convicts it, and more than chance speaks against it; or when
too few of the pairs that cross it are left to speak, since others were explained by a culprit. A host is told by new
partners near and far, a link by new combinations of those who sent and those who received across it: such a
pair uses the link as well, as long as the destination decides on the way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.pair_matrix import Codes
from fablint.analyse.data.robust_stats import FEWEST_VALUES
from fablint.analyse.detect.ambiguity import GroupMember
from fablint.analyse.detect.components import Cables, Family, crossing_cells
from fablint.analyse.detect.evidence import UNITS_PER_NAT, Evidence
from fablint.analyse.detect.search import Bar, Detection, Sides, detect_components
from fablint.analyse.fit.effects import Effects
from fablint.model import FollowUp, Placement
from fablint.topology.routed_placement import links_crossed

SPEAKS = 3.0  # nats: what speaks against a part 20 to 1
MOST_QUESTIONS = 200
PAIRS = 24  # proposed per part
TRIES = 2000  # combinations of senders and receivers looked at per part

RankPairs = npt.NDArray[np.int64]


def propose_follow_ups(
    detected: Sequence[Detection],
    suspects: Sequence[Detection],
    evidence: Evidence,
    effects: Effects,
    parts: Sequence[Family],
    sides: Sides,
) -> list[FollowUp]:
    """Questions of one view, those with the most evidence first. `evidence` is used up on the way."""
    asked = Bar(SPEAKS, fewest=1, surely=False, most=MOST_QUESTIONS)
    clean = _clean(evidence)
    hidden = _hidden_links(evidence, parts)
    cases = [*suspects, *detect_components(evidence, effects, parts, asked, sides=sides)]
    found = [propose_follow_up(case, evidence, clean) for case in cases]
    found += [propose_split(case, evidence, clean) for case in detected if case.ambiguity_group.names]
    return [follow_up for follow_up in [*found, *_about_links(hidden, evidence, clean)] if follow_up.open]


def propose_late_follow_ups(cases: Sequence[Detection], evidence: Evidence, placement: Placement) -> list[FollowUp]:
    """What would tell of links that messages may or may not cross: ranks at both of its ends, if there are such."""
    clean = _clean(evidence)
    found = []
    for case in cases:
        component, name = case.part()
        ends = case.cells[0], evidence.pairs.destination(case.cells)
        if component in ("link", "cable"):
            there, back = case.name.split("=")
            at = _ranks_at(placement, *((back, there) if case.sides == (1,) else (there, back)))
            ends = at if at[0].size and at[1].size else ends
        found.append(FollowUp(component, name, _between(ends, clean, evidence)))
    return found


def _ranks_at(placement: Placement, *switches: str) -> tuple[Codes, Codes]:
    """Ranks on the hosts of each of two switches."""
    a, b = (
        placement.switches.index(name) if name in placement.switches else len(placement.switches) for name in switches
    )
    return np.flatnonzero(placement.switch == a), np.flatnonzero(placement.switch == b)


def _between(ends: tuple[Codes, Codes], clean: Codes, evidence: Evidence) -> RankPairs:
    """Pairs from the first ranks to the second, clean ones first."""
    rng, host = np.random.default_rng(_seed(ends[0])), evidence.placement.host
    pairs = np.stack([rng.choice(one, TRIES) for one in ends], axis=1)
    pairs = rng.permutation(np.unique(pairs[host[pairs[:, 0]] != host[pairs[:, 1]]], axis=0))
    spoilt = 2 - np.isin(pairs, clean).sum(axis=1)
    return _unmeasured_first(pairs[np.argsort(spoilt, kind="stable")], evidence)[:PAIRS]


def retests(cases: Sequence[Detection], evidence: Evidence) -> list[FollowUp]:
    """What would test again those who were accused."""
    clean = _clean(evidence)
    return [propose_follow_up(case, evidence, clean) for case in cases]


def propose_follow_up(case: Detection, evidence: Evidence, clean: Codes) -> FollowUp:
    """What would tell more about a part."""
    component, name = case.part()
    between = case.kind == "cable" or (case.kind == "switch" and name not in evidence.placement.switches)
    pairs = _across(case.cells, evidence, clean) if between else _with_others(case, evidence, clean)
    if between and not len(pairs):  # nobody knows who else crosses it: the same once more
        pairs = np.unique(np.stack([case.cells[0], evidence.pairs.destination(case.cells)], axis=1), axis=0)[:PAIRS]
    return FollowUp(component, name, pairs)


def propose_split(case: Detection, evidence: Evidence, clean: Codes) -> FollowUp:
    """Pairs whose messages cross some of a class of parts and not the others."""
    rng = np.random.default_rng(_seed(case.cells[0]))
    placement, to = evidence.placement, evidence.pairs.destination(case.cells)
    members = (*case.own, *case.ambiguity_group.all)
    ends = [
        np.unique(
            np.concatenate([ranks, np.flatnonzero(np.isin(placement.switch, np.unique(placement.switch[ranks])))])
        )
        for ranks in (case.cells[0], to)
    ]
    # One end where the class is, the other anywhere.
    src = np.concatenate([rng.choice(ends[0], TRIES), rng.choice(clean, TRIES)])
    dst = np.concatenate([rng.choice(clean, TRIES), rng.choice(np.concatenate([to, ends[1]]), TRIES)])
    pairs = np.unique(np.stack([src, dst], axis=1)[placement.host[src] != placement.host[dst]], axis=0)
    crossed = np.stack([_touches(member, pairs, evidence) for member in members], axis=1)
    split = crossed.any(axis=1) & ~crossed.all(axis=1)
    component, name = case.part()
    return FollowUp(component, name, _unmeasured_first(rng.permutation(pairs[split]), evidence)[:PAIRS])


def _touches(member: GroupMember, pairs: RankPairs, evidence: Evidence) -> npt.NDArray[np.bool_]:
    """(k,) which pairs' messages cross the part."""
    if member.component == "host":
        return np.asarray(evidence.placement.host[pairs[:, member.side]] == member.number)
    return _cross(pairs, np.array([member.number]), evidence)


def _clean(evidence: Evidence) -> Codes:
    """Ranks against whom nothing speaks, as senders or receivers, all of them where something speaks against each."""
    clean = np.flatnonzero((evidence.total.sent <= 0) & (evidence.total.received <= 0))
    return clean if clean.size else np.arange(evidence.pairs.ranks)


def _hidden_links(evidence: Evidence, parts: Sequence[Family]) -> Codes:
    """Links that were crossed, of whose pairs too few are left since a culprit explains the others."""
    if not any(isinstance(family, Cables) for family in parts):
        return np.empty(0, dtype=np.int64)
    live = evidence.live.segment[: evidence.message_paths.known_links]
    speaks = evidence.total.segment[: evidence.message_paths.known_links] > -np.log(1000) * UNITS_PER_NAT
    return np.flatnonzero((live < FEWEST_VALUES) & (live > 0) & speaks)


def _about_links(links: Codes, evidence: Evidence, clean: Codes) -> list[FollowUp]:
    follow_ups = []
    for link in links[:MOST_QUESTIONS]:
        cells = crossing_cells(evidence.message_paths, evidence.pairs, np.array([link]), bidirectional=False)
        assert evidence.message_paths.routes is not None
        follow_ups.append(FollowUp("link", evidence.message_paths.routes.names[link], _across(cells, evidence, clean)))
    return follow_ups


def _with_others(case: Detection, evidence: Evidence, clean: Codes) -> RankPairs:
    """Pairs of the part's ranks with clean ones elsewhere: on its own switches first, then spread over all others."""
    rng = np.random.default_rng(_seed(case.ranks))
    placement = evidence.placement
    others = clean[~np.isin(placement.host[clean], np.unique(placement.host[case.ranks]))]
    if not others.size:
        return np.empty((0, 2), dtype=np.int64)
    home = np.unique(placement.switch[case.ranks])
    near = rng.permutation(others[np.isin(placement.switch[others], home[home >= 0])])[: PAIRS // 4]
    far = rng.permutation(others[~np.isin(others, near)])[: PAIRS - near.size]
    partner = rng.permutation(np.concatenate([near, far]))
    own = np.resize(rng.permutation(case.ranks), partner.size)
    pairs = np.stack([own, partner] if case.sides != (1,) else [partner, own], axis=1)
    return _unmeasured_first(pairs, evidence)


def _across(cells: tuple[Codes, Codes], evidence: Evidence, clean: Codes) -> RankPairs:
    """New combinations of the senders and receivers of these cells that cross the same segments, clean ones first."""
    rng = np.random.default_rng(_seed(cells[0]))
    message_paths, to = evidence.message_paths, evidence.pairs.destination(cells)
    if not cells[0].size:
        return np.empty((0, 2), dtype=np.int64)
    common = _common_segments(cells, evidence)
    senders, receivers = np.unique(cells[0]), np.unique(to)
    if (
        message_paths.switch[senders].min() == message_paths.switch[senders].max()
    ):  # its neighbours send over it as well
        senders = np.flatnonzero(message_paths.switch == message_paths.switch[senders[0]])
    src, dst = rng.choice(senders, TRIES), rng.choice(receivers, TRIES)
    pairs = np.unique(np.stack([src, dst], axis=1)[src != dst], axis=0)
    crosses = _cross(pairs, common, evidence)
    pairs = rng.permutation(pairs[crosses])
    spoilt = 2 - np.isin(pairs, clean).sum(axis=1)
    return _unmeasured_first(pairs[np.argsort(spoilt, kind="stable")], evidence)[:PAIRS]


def _common_segments(cells: tuple[Codes, Codes], evidence: Evidence) -> Codes:
    """Segments that most of these cells share."""
    counts = evidence.on_segments(cells, np.ones(cells[0].size, dtype=np.int64))
    return np.flatnonzero(counts == counts.max(initial=1))


def _cross(pairs: RankPairs, segments: Codes, evidence: Evidence) -> npt.NDArray[np.bool_]:
    """(k,) which pairs' messages cross one of these segments, be the pairs measured or not."""
    message_paths, placement = evidence.message_paths, evidence.placement
    if message_paths.routes is None or not pairs.size:
        return np.zeros(len(pairs), dtype=bool)
    src, dst = pairs.T
    here, there = placement.switch[src], placement.switch[dst]
    message, link = links_crossed(message_paths.routes, here, there, placement.location[dst], placement.switches)
    crossing = np.zeros(len(pairs), dtype=bool)
    crossing[message[np.isin(link, segments)]] = True
    return crossing


def _unmeasured_first(pairs: RankPairs, evidence: Evidence) -> RankPairs:
    """Pairs that have met already last: another time tells less than another partner."""
    partner = evidence.pairs.partner
    if partner is None or not len(pairs):
        return pairs
    met = (partner[pairs[:, 0]] == pairs[:, 1, None]).any(axis=1)
    return pairs[np.argsort(met, kind="stable")]


def _seed(ranks: Codes) -> int:
    """The same question has the same answer each time."""
    return int(ranks.sum()) % (1 << 32)
