"""Find the fewest parts that explain the slow pairs: the culprit, not its victims.

Greedy: take the part with the most evidence, check that the loss is real and its own, set its pairs aside, repeat.
A part is convicted when its e-value exceeds (number of parts and views) / alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.binomial import upper_tail
from fablint.analyse.data.pair_matrix import Cells, Codes, Values, unordered
from fablint.analyse.data.robust_stats import FEWEST_VALUES, interval_ranks, row_medians
from fablint.analyse.detect.ambiguity import AmbiguityGroup, GroupMember, find_ambiguity_group, group_member
from fablint.analyse.detect.components import Endpoints, Family, Kind
from fablint.analyse.detect.evidence import UNITS_PER_NAT, Evidence
from fablint.analyse.fit.effects import Effects
from fablint.model import Component, Direction

CLUSTER = 2.5  # nats that one partner may add; more only where three partners would not be enough
UNHEALTHY = 0.5  # of the loss of a component: a user that loses less contradicts it, beyond chance
EACH_SIDE = 0.25  # of the evidence that convicts both sides together
SMALL_RUN = 1 << 20  # cells, up to which all ends are fitted again without those of a link
FEW_ENDS = 64  # of a link
CHANCE = 0.01  # that a user of a faulty component contradicts it by chance, all users together


class Sides(Enum):
    """How the two sides of a host are held responsible, by what was measured."""

    EACH = "a stream tells the direction: each side by itself"
    BOTH = "a round trip in each direction: a sick part slows both sides, or it is not sick"
    TOGETHER = "one round trip per pair: either side may have few of them, and all speak for the part"


@dataclass(frozen=True)
class Detection:
    """A part whose pairs are slow beyond noise and tolerance, in one view."""

    kind: Kind
    name: str
    ranks: Codes  # at its ends: of a host or switch its own, of a cable those whose messages cross it
    sides: tuple[int, ...]  # 0 (sends; a > b), 1 (receives; b > a) or both
    loss: tuple[float, float, float]  # lower 95 % bound, median, upper bound of the log-effect
    pairs: int  # judged by
    slow: int  # of these, slower than tolerated
    log_e: float  # evidence, nats
    cells: Cells  # its pairs
    ambiguity_group: AmbiguityGroup  # other parts that explain the same pairs
    when: str = ""  # empty where it was slow all the time, or where nobody knows
    shared: str = ""  # how much slower it was among others than alone, where both were measured
    own: tuple[GroupMember, ...] = ()  # itself as its rivals see it: the sides of a host or of a cable, else empty
    late: float | None = None  # of a link that messages may or may not cross: share of its messages that are late
    lasting: bool = True  # False: slow in one stretch of time only, or from some time on
    partners: int = 0  # clusters of evidence: other hosts, of a link pairs of hosts
    stretches: int | None = None  # of the time of the row, in which it was slow; None: the times are not known
    usual: bool = False  # of a host: do healthy hosts of this fabric differ by as much?

    def part(self, direction: Direction | None = None) -> tuple[Component, str]:
        """Component and name for the verdict. A cable that is slow one way is a directed link."""
        if self.kind == "rank":
            return "host", self.name
        if self.kind == "cable" and len(self.sides) == 1 and direction != "both":
            ends = self.name.split("=")
            return "link", ">".join(ends if self.sides == (0,) else reversed(ends))
        if self.kind == "uplinks":
            return "switch", self.name
        return self.kind, self.name


@dataclass(frozen=True)
class Bar:
    """What it takes to be found: evidence, pairs, and whether the loss must surely be beyond the tolerance."""

    log_e: float  # nats
    fewest: int = FEWEST_VALUES
    surely: bool = True
    most: int = 1000  # culprits
    partners: int = 1  # that the part was measured with; of a link, pairs of hosts across it


def detect_components(
    evidence: Evidence, effects: Effects, parts: Sequence[Family], bar: Bar, *, sides: Sides
) -> list[Detection]:
    """All culprits of one view, the one with the most evidence first. `evidence` is used up on the way."""
    threshold = int(np.ceil(bar.log_e * UNITS_PER_NAT))
    rejected = [np.zeros(len(family), dtype=bool) for family in parts]
    found: list[Detection] = []
    while len(found) < bar.most:
        best, best_score = None, 0
        for family, refused in zip(parts, rejected, strict=True):
            part, score, slow_sides = _strongest(family, evidence, threshold, refused, sides)
            if score > best_score:
                best, best_score = (family, part, slow_sides, refused), score
        if best is None:
            break
        family, part, slow_sides, refused = best
        detection = _examine(family, part, slow_sides, evidence, effects, parts, bar)
        refused[part] = True
        if detection:
            found.append(detection)
            evidence.remove(_open(family, part, slow_sides, evidence))
            rejected = [np.zeros(len(family), dtype=bool) for family in parts]  # what it hid may now stand by itself
    return found


def _strongest(
    family: Family, evidence: Evidence, threshold: int, refused: npt.NDArray[np.bool_], sides: Sides
) -> tuple[int, int, tuple[int, ...]]:
    """Number, score and convicted sides of the part with the most evidence in a family."""
    first, second, inner = family.sums(evidence.total)
    yes_first, yes_second = first >= threshold, second >= threshold
    if isinstance(family, Endpoints):
        if sides is Sides.BOTH:
            yes_first = yes_second = yes_first & yes_second
        elif sides is Sides.TOGETHER:
            yes_first = yes_second = first + second - inner >= threshold
    if sides is Sides.EACH:
        # Where neither side has pairs enough to be convicted by itself, a part that is slow in both ways may be.
        both = (first + second - inner >= threshold) & (np.minimum(first, second) >= EACH_SIDE * threshold)
        yes_first, yes_second = yes_first | both, yes_second | both
    score = np.where(yes_first, first, 0) + np.where(yes_second, second, 0)
    score -= np.where(yes_first & yes_second, inner, 0)
    score[refused] = 0
    part = int(np.argmax(score)) if score.size else 0
    if not score.size or score[part] <= 0:
        return 0, 0, ()
    return part, int(score[part]), tuple(side for side, yes in ((0, yes_first[part]), (1, yes_second[part])) if yes)


def _informative(family: Family, part: int, sides: Sequence[int], evidence: Evidence) -> Cells:
    """Of the part's open cells those that tell how fast it is."""
    cells = _open(family, part, sides, evidence)
    if not isinstance(family, Endpoints):
        return cells
    told = evidence.of_ends(cells)
    return cells[0][told], cells[1][told]


def _open(family: Family, part: int, sides: Sequence[int], evidence: Evidence) -> Cells:
    """The part's cells that were measured and are not explained yet, each once."""
    width = evidence.gain.shape[1]
    keys = []
    for side in sides:
        row, column = family.cells(part, side)
        live = evidence.gain[row, column] != 0
        keys.append(row[live].astype(np.int64) * width + column[live])
    key = np.unique(np.concatenate(keys)) if len(keys) > 1 else keys[0]
    return key // width, key % width


def _examine(
    family: Family,
    part: int,
    sides: tuple[int, ...],
    evidence: Evidence,
    effects: Effects,
    parts: Sequence[Family],
    bar: Bar,
) -> Detection | None:
    """Is the loss real (its interval beyond the tolerance), and is it this part's own?"""
    tolerance = effects.host_tolerance if isinstance(family, Endpoints) else effects.link_tolerance
    for side in sides:
        if not _own(family, part, side, _informative(family, part, (side,), evidence), evidence, effects):
            return None
    cells = _informative(family, part, sides, evidence)
    clusters = _clusters(family, part, cells, evidence)
    partners = np.unique(clusters).size
    if cells[0].size < bar.fewest or partners < bar.partners:
        return None
    if _clustered(clusters, evidence.gain[cells], bar) < bar.log_e:
        return None
    loss = np.sort(_loss(family, part, sides, cells, effects))
    lower, upper = (int(rank) for rank in interval_ranks(loss.size))
    bounds = (float(loss[lower]), float(np.median(loss)), float(loss[upper]))
    if (bounds[0] if bar.surely else bounds[1]) <= tolerance:
        return None
    score = int(evidence.gain[cells].sum(dtype=np.int64))
    return Detection(
        family.component,
        family.name(part),
        _ends(family, part, cells, evidence),
        sides,
        bounds,
        loss.size,
        int(np.count_nonzero(loss > tolerance)),
        score / UNITS_PER_NAT,
        cells,
        find_ambiguity_group(family, part, sides, cells, evidence, parts),
        own=tuple(group_member(family, part, side) for side in sides if family.component in ("host", "cable")),
        partners=int(partners),
    )


def _clustered(clusters: Codes, gain: npt.NDArray[np.int8], bar: Bar) -> float:
    """Evidence in nats where every cluster counts once: what it adds is bounded.

    Measurements of one pair share what its start drew: placement, connection, memory. Their evidence does not add up
    to more than that of one observation.
    """
    most = max(CLUSTER, bar.log_e / max(bar.partners, 1))
    inverse = np.unique(clusters, return_inverse=True)[1]
    return float(np.minimum(np.bincount(inverse, weights=gain) / UNITS_PER_NAT, most).sum())


def _clusters(family: Family, part: int, cells: Cells, evidence: Evidence) -> Codes:
    """(k,) the cluster of each cell: the other host; of a link, the pair of hosts.

    With fewer than a few, a part is not to be separated from them. In a run on one host, ranks are partners.
    """
    placement, to = evidence.placement, evidence.pairs.destination(cells)
    one = np.arange(evidence.pairs.ranks) if len(placement.hosts) == 1 else placement.host
    a, b = one[cells[0]].astype(np.int64), one[to].astype(np.int64)
    if isinstance(family, Endpoints):
        return np.asarray(np.where(family.code[cells[0]] == part, b, a))
    return unordered(a, b, int(one.max()) + 1)


def _ends(family: Family, part: int, cells: Cells, evidence: Evidence) -> Codes:
    """Ranks that the conviction is about."""
    if isinstance(family, Endpoints):
        return family.ranks(part)
    return np.unique(np.concatenate([cells[0], evidence.pairs.destination(cells)]))


def _loss(family: Family, part: int, sides: Sequence[int], cells: Cells, effects: Effects) -> npt.NDArray[np.float64]:
    """Log-effects of the part as each of its pairs shows it: the tolerated effects of the other parts taken out."""
    host, link = effects.host_tolerance, effects.link_tolerance
    to = effects.residual.destination(cells)
    loss = effects.residual.value[cells].astype(np.float64)
    if not isinstance(family, Endpoints):
        return np.asarray(loss - _elsewhere(effects, cells, 0) - _elsewhere(effects, cells, 1))
    sent, received = np.clip(effects.sent, -host, host)[cells[0]], np.clip(effects.received, -host, host)[to]
    own_sent = (family.code[cells[0]] == part) & (0 in sides)
    own_received = (family.code[to] == part) & (1 in sides)
    loss -= np.where(own_sent, 0.0, sent) + np.where(own_received, 0.0, received)
    if effects.message_paths.count:
        loss -= effects.path_effect(link)[effects.message_paths.of_cells(effects.residual, cells)]
    return loss


def _elsewhere(effects: Effects, cells: Cells, side: int) -> Values:
    """(k,) the tolerated effect of each cell's sender (side 0) or receiver.

    Much of what an end sends or receives may cross the link, and what is the link's would be taken for the end's: its
    effect is that of its other pairs. Of a large run only where the link serves few ends.
    """
    pairs, most = effects.residual, effects.host_tolerance
    ends = cells[0] if side == 0 else pairs.destination(cells)
    known, partner = (effects.sent, effects.received) if side == 0 else (effects.received, effects.sent)
    if pairs.value.size <= SMALL_RUN:
        effect = _of_other_pairs(effects, cells, side)
    elif np.unique(ends).size <= FEW_ENDS:
        effect = known.copy()
        for end in np.unique(ends):
            effect[end] = _of_others(effects, cells, int(end), side, np.clip(partner, -most, most))
    else:
        effect = known
    return np.asarray(np.clip(effect, -most, most)[ends], dtype=np.float32)


def _of_other_pairs(effects: Effects, cells: Cells, side: int) -> Values:
    """(n,) effect of each rank as sender or receiver without these cells, 0 where it has no others."""
    pairs, most = effects.residual, effects.host_tolerance
    value = pairs.value.copy()
    value[cells] = np.nan
    if effects.informative is not None:
        value[~effects.informative] = np.nan
    others = replace(pairs, value=value)
    every = slice(0, pairs.ranks)
    partner = np.clip(effects.received if side == 0 else effects.sent, -most, most)
    left = (others.sent(every) if side == 0 else others.received(every)) - partner[pairs.partners(every)]
    return np.asarray(np.nan_to_num(row_medians(left)[1]), dtype=np.float32)


def _of_others(effects: Effects, cells: Cells, end: int, side: int, partner: Values) -> float:
    """The same for one rank."""
    pairs = effects.residual
    width = pairs.value.shape[1]
    own = np.array([end])
    row, column = pairs.cells_from(own) if side == 0 else pairs.cells_to(own)
    off = ~np.isin(row * width + column, cells[0] * width + cells[1]) & ~np.isnan(pairs.value[row, column])
    if effects.informative is not None:
        off &= effects.informative[row, column]
    beyond = (row[off], column[off])
    across = pairs.destination(beyond) if side == 0 else beyond[0]
    return float(np.median(pairs.value[beyond] - partner[across])) if across.size else 0.0


def _own(family: Family, part: int, side: int, cells: Cells, evidence: Evidence, effects: Effects) -> bool:
    """Is the slowness the component's own: towards all switches, and with no user that shows it to be healthy?"""
    if not cells[0].size:
        return True  # one round trip per pair: the other side speaks
    placement, to = evidence.placement, evidence.pairs.destination(cells)
    gain = evidence.gain[cells].astype(np.int64)
    if isinstance(family, Endpoints):
        own, behind = (placement.switch[ends] for ends in ((cells[0], to) if side == 0 else (to, cells[0])))
        told = (behind >= 0) & ((behind != own) | (family.of_switch.size == 0))  # of a switch: towards others
        if told.any():
            totals = np.bincount(behind[told], weights=gain[told], minlength=len(placement.switches))
            elsewhere = told & (behind != int(np.argmax(totals)))
            if elsewhere.any() and int(gain[elsewhere].sum()) <= 0:
                return False  # slow towards one switch only
        if not family.of_switch.size:
            # Streams on a switch show what a host can do: where they are fast, what is slow lies behind the switch.
            near = (behind == own) & (behind >= 0) & (placement.host[cells[0]] != placement.host[to])
            return not _contradicts(near.astype(np.int64), cells, evidence, effects, most=1)
        inside = (family.code[cells[0]] == part) & (family.code[to] == part) & (not family.outward)
        if _contradicts(inside.astype(np.int64), cells, evidence, effects, most=1):
            return False
        outside = np.logical_not(inside)
        cells, to = (cells[0][outside], cells[1][outside]), to[outside]
        if _is_healthy_host(family, part, side, placement.host[to if side else cells[0]], evidence, effects):
            return False
    return not any(_contradicts(placement.host[end] + 1, cells, evidence, effects) for end in (cells[0], to))


def _is_healthy_host(
    switches: Endpoints, part: int, side: int, told: Codes, evidence: Evidence, effects: Effects
) -> bool:
    """Is a host of a switch fast, of which no cell tells how fast it is?

    Such a host was measured beside others only. One that is fast there all the same shows that the switch is healthy.

    Parameters
    ----------
    told
        Hosts with cells that tell.
    """
    cells = _open(switches, part, (side,), evidence)
    ends = (cells[0], evidence.pairs.destination(cells))
    own = evidence.placement.host[ends[side]]
    outside = (switches.code[ends[0]] != part) | (switches.code[ends[1]] != part)
    user = np.where(outside & ~np.isin(own, told), own + 1, 0)
    return _contradicts(user, cells, evidence, effects, most=evidence.pairs.ranks)


def _contradicts(user: Codes, cells: Cells, evidence: Evidence, effects: Effects, *, most: int = 0) -> bool:
    """Is there a user of these cells that shows the component to be healthy, or do most of them not show it slow?

    `user` (k,): who used each cell, 0: nobody that counts. A user contradicts a component where more of its cells lose
    less than half of what is typical than the noise explains, by a binomial test. With `most` users at most the
    majority is not asked.
    """
    users, inverse, measured = np.unique(user, return_inverse=True, return_counts=True)
    counts = users > 0
    if not counts.any():
        return False
    loss = effects.residual.value[cells]
    typical = float(np.median(loss))
    healthy = np.bincount(inverse, weights=loss < UNHEALTHY * typical)
    by_chance = upper_tail(healthy, measured, evidence.chance_below((UNHEALTHY - 1) * typical))
    if (counts & (2 * healthy > measured) & (by_chance < CHANCE / np.count_nonzero(counts))).any():
        return True
    total = np.bincount(inverse, weights=evidence.gain[cells])
    return bool(counts.sum() > max(most, 2) and 2 * np.count_nonzero(total[counts] > 0) <= counts.sum())
