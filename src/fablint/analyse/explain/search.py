"""Search for the smallest set of components that explains the slow pairs.

Greedy: take the component with the most evidence, test whether the loss is real and its own, remove its pairs, repeat.
A component is detected if its e-value exceeds (number of components and views) / alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from fablint.analyse.candidates.components import ComponentType, Endpoints, Kind
from fablint.analyse.explain.ambiguity import AmbiguityGroup, GroupMember, find_ambiguity_group, group_member
from fablint.analyse.explain.evidence import UNITS_PER_NAT, Evidence
from fablint.analyse.explain.link_ends import effect_elsewhere, without_slow_ends
from fablint.analyse.explain.own_loss import find_open_cells, is_own_loss
from fablint.analyse.null_model.effects import Effects
from fablint.analyse.observations.clustered_median import RelatedValues
from fablint.analyse.observations.pair_matrix import unordered
from fablint.analyse.observations.robust_stats import interval_ranks
from fablint.analyse.settings import CLUSTER, FEWEST_VALUES, QUARTER
from fablint.model import ComponentRef, Direction, EvidenceRecord
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask


class Sides(Enum):
    """Rule for the two directions of a host, by what was measured."""

    EACH = "a stream shows the direction: each direction is judged separately"
    BOTH = "a round trip in each direction: a faulty component slows both directions"
    TOGETHER = "one round trip per pair: all pairs of a component are one sum"


Loss = tuple[float, float, float]  # lower 95 % bound, median, upper bound of a log-effect


class DirectionLosses(NamedTuple):
    """Losses of all pairs of a component, and of those that it sends and receives."""

    both: Loss
    sending: Loss
    receiving: Loss


@dataclass(frozen=True)
class SlowCount:
    """Number of slow measurements of a component that is slow for a share of the time, and elsewhere."""

    slow: int
    measured: int
    others_slow: int
    others: int


@dataclass(frozen=True)
class Detection:
    """A component whose pairs are slow beyond noise and tolerance, in one view."""

    kind: Kind
    whole: ComponentRef  # of a cable both directions
    ranks: Codes  # ranks at its ends: of a host or switch its own, of a cable those whose messages cross it
    sides: tuple[int, ...]  # 0 (sends; a > b), 1 (receives; b > a) or both
    loss: Loss
    pairs: int  # number of its pairs
    slow: int  # number of pairs slower than tolerated
    log_e: float  # evidence in nats
    cells: Cells  # its pairs
    ambiguity_group: AmbiguityGroup  # other components that explain the same pairs
    circumstances: tuple[EvidenceRecord, ...] = ()  # when it was slow, and by how much more on shared links
    own: tuple[GroupMember, ...] = ()  # its own directions as group members: of a host or cable, else empty
    late: float | None = None  # share of late messages, of a link that messages may cross
    share: SlowCount | None = None  # of a component that is slow for a share of the time: `loss` is that while slow
    lasting: bool = True  # False: slow in one stretch of time only, or from some time on
    partners: int = 0  # clusters of evidence: other hosts; of a link, pairs of hosts
    stretches: int | None = None  # stretches of the time of the row in which it was slow; None: times unknown
    usual: bool = False  # whether healthy hosts of this fabric differ by as much
    log_times: RelatedValues | None = None  # of its pairs; None: of late messages, or of a share of the time
    losses: DirectionLosses | None = None  # where they differ: `loss` is the larger one

    @property
    def name(self) -> str:
        """Label of the whole component."""
        return self.whole.label

    def added_s(self, usual_s: float) -> float:
        """Return the median time in s that its messages take longer: of late messages, than `usual_s`."""
        if self.log_times is None:
            return usual_s * math.expm1(self.loss[1])
        return float(np.exp(np.median(self.log_times.value))) * -math.expm1(-self.loss[1])

    def component(self, direction: Direction | None = None) -> ComponentRef:
        """The component for the verdict. A cable that is slow in one direction is a directed link."""
        if self.kind == "cable" and len(self.sides) == 1 and direction != "both":
            return ComponentRef.of("link", *self.whole.ends[:: -1 if self.sides == (1,) else 1])
        return self.whole


@dataclass(frozen=True)
class Bar:
    """Requirements of a detection."""

    log_e: float  # nats
    fewest: int = FEWEST_VALUES
    surely: bool = True
    most: int = 1000  # most detections
    partners: int = 1  # partners that the component was measured with; of a link, pairs of hosts that cross it


def detect_components(
    evidence: Evidence, effects: Effects, component_types: Sequence[ComponentType], bar: Bar, *, sides: Sides
) -> list[Detection]:
    """Return the detections of one view, the one with the most evidence first. Their pairs are removed from `evidence`.

    Parameters
    ----------
    evidence
        Evidence of all pairs.
    effects
        Fitted model of the view.
    component_types
        All component types.
    bar
        Requirements of a detection.
    sides
        Rule for the directions of a host.
    """
    threshold = int(np.ceil(bar.log_e * UNITS_PER_NAT))
    rejected = [np.zeros(len(component_type), dtype=bool) for component_type in component_types]
    detections: list[Detection] = []
    while len(detections) < bar.most:
        best, best_score = None, 0
        for component_type, excluded in zip(component_types, rejected, strict=True):
            part, score, slow_sides = _strongest(component_type, evidence, threshold, excluded, sides)
            if score > best_score:
                best, best_score = (component_type, part, slow_sides, excluded), score
        if best is None:
            break
        component_type, part, slow_sides, excluded = best
        # Where many hosts send slowly, each host also receives slowly from many: one direction may be its own.
        is_host = isinstance(component_type, Endpoints) and not component_type.inside
        single = [(side,) for side in slow_sides] if is_host and bar.surely and sides is Sides.EACH else []
        detection = None
        for tried in (slow_sides, *single):
            detection = detection or _examine(component_type, part, tried, evidence, effects, component_types, bar)
        excluded[part] = True
        if detection:
            detections.append(detection)
            evidence.remove(find_open_cells(component_type, part, detection.sides, evidence))
            # components that it hid may now be detected
            rejected = [np.zeros(len(component_type), dtype=bool) for component_type in component_types]
    return detections


def _strongest(
    component_type: ComponentType, evidence: Evidence, threshold: int, excluded: Mask, sides: Sides
) -> tuple[int, int, tuple[int, ...]]:
    """Return number, score and slow directions of the component of a type with the most evidence."""
    first, second, inner = component_type.sums(evidence.total)
    is_first_slow, is_second_slow = first >= threshold, second >= threshold
    if isinstance(component_type, Endpoints):
        if sides is Sides.BOTH:
            is_first_slow = is_second_slow = is_first_slow & is_second_slow
        elif sides is Sides.TOGETHER:
            is_first_slow = is_second_slow = first + second - inner >= threshold
    if sides is Sides.EACH:
        # If neither direction has enough pairs for a detection, both together may have.
        are_both_slow = (first + second - inner >= threshold) & (np.minimum(first, second) >= QUARTER * threshold)
        is_first_slow, is_second_slow = is_first_slow | are_both_slow, is_second_slow | are_both_slow
    score = np.where(is_first_slow, first, 0) + np.where(is_second_slow, second, 0)
    score -= np.where(is_first_slow & is_second_slow, inner, 0)
    score[excluded] = 0
    part = int(np.argmax(score)) if score.size else 0
    if not score.size or score[part] <= 0:
        return 0, 0, ()
    return (
        part,
        int(score[part]),
        tuple(side for side, is_slow in ((0, is_first_slow[part]), (1, is_second_slow[part])) if is_slow),
    )


def _informative(component_type: ComponentType, part: int, sides: Sequence[int], evidence: Evidence) -> Cells:
    """Return the open cells of the component that show how fast it is."""
    cells = find_open_cells(component_type, part, sides, evidence)
    if not isinstance(component_type, Endpoints):
        return cells
    is_informative = evidence.informative.counts(cells, "both")
    if not component_type.inside:
        is_sent = component_type.code[cells[0]] == part
        sides_of_cells = (evidence.informative.counts(cells, end) for end in ("sender", "receiver"))
        is_informative = np.where(is_sent, *sides_of_cells)
    return cells[0][is_informative], cells[1][is_informative]


def _examine(
    component_type: ComponentType,
    part: int,
    sides: tuple[int, ...],
    evidence: Evidence,
    effects: Effects,
    component_types: Sequence[ComponentType],
    bar: Bar,
) -> Detection | None:
    """Return the detection if the loss is real (its interval beyond the tolerance) and the component's own; else
    None.
    """
    tolerance = effects.host_tolerance if isinstance(component_type, Endpoints) else effects.link_tolerance
    for side in sides:
        if not is_own_loss(
            component_type, part, side, _informative(component_type, part, (side,), evidence), evidence, effects
        ):
            return None
    cells = _informative(component_type, part, sides, evidence)
    if not isinstance(component_type, Endpoints):
        cells = without_slow_ends(cells, effects)
    clusters = _clusters(component_type, part, cells, evidence)
    partners = np.unique(clusters).size
    if cells[0].size < bar.fewest or partners < bar.partners:
        return None
    if _clustered(clusters, evidence.gain[cells], bar) < bar.log_e:
        return None
    loss = np.sort(_loss(component_type, part, sides, cells, effects))
    lower, upper = (int(rank) for rank in interval_ranks(loss.size))
    bounds = (float(loss[lower]), float(np.median(loss)), float(loss[upper]))
    if (bounds[0] if bar.surely else bounds[1]) <= tolerance:
        return None
    score = int(evidence.gain[cells].sum(dtype=np.int64))
    return Detection(
        component_type.kind,
        component_type.reference(part),
        _ends(component_type, part, cells, evidence),
        sides,
        bounds,
        loss.size,
        int(np.count_nonzero(loss > tolerance)),
        score / UNITS_PER_NAT,
        cells,
        find_ambiguity_group(component_type, part, sides, cells, evidence, component_types),
        own=tuple(
            group_member(component_type, part, side) for side in sides if component_type.kind in ("host", "cable")
        ),
        partners=int(partners),
        log_times=RelatedValues(
            effects.residual.value[cells] + effects.usual(cells), _hosts_of_cells(component_type, part, cells, evidence)
        ),
    )


def _clustered(clusters: Codes, gain: Ints, bar: Bar) -> float:
    """Return the evidence in nats with a bound per cluster.

    Measurements of one pair share placement, connection and memory. Their evidence is at most that of one observation.
    """
    most = max(CLUSTER, bar.log_e / max(bar.partners, 1))
    inverse = np.unique(clusters, return_inverse=True)[1]
    return float(np.minimum(np.bincount(inverse, weights=gain) / UNITS_PER_NAT, most).sum())


def _clusters(component_type: ComponentType, part: int, cells: Cells, evidence: Evidence) -> Codes:
    """Return the (k,) cluster of each cell: the other host; of a link, the pair of hosts.

    With very few of these, a component is not distinguishable from them. In a run on one host, ranks are partners.
    """
    a, b = _hosts(cells, evidence)
    if isinstance(component_type, Endpoints):
        return np.asarray(np.where(component_type.code[cells[0]] == part, b, a))
    return unordered(a, b, int(max(a.max(initial=0), b.max(initial=0))) + 1)


def _hosts(cells: Cells, evidence: Evidence) -> tuple[Codes, Codes]:
    """Return the (k,) hosts that send and receive; in a run on one host, the ranks."""
    placement = evidence.placement
    unit = np.arange(evidence.pairs.ranks) if len(placement.hosts) == 1 else placement.host
    return unit[cells[0]].astype(np.int64), unit[evidence.pairs.destination(cells)].astype(np.int64)


def _hosts_of_cells(component_type: ComponentType, part: int, cells: Cells, evidence: Evidence) -> Codes:
    """Return the (2, k) hosts at the ends of each cell; -1 for a host that is the component."""
    hosts = np.stack(_hosts(cells, evidence))
    if isinstance(component_type, Endpoints) and not component_type.inside:
        ends = np.stack([cells[0], evidence.pairs.destination(cells)])
        hosts[component_type.code[ends] == part] = -1
    return hosts


def _ends(component_type: ComponentType, part: int, cells: Cells, evidence: Evidence) -> Codes:
    """Return the ranks at the ends of a component."""
    if isinstance(component_type, Endpoints):
        return component_type.ranks(part)
    return np.unique(np.concatenate([cells[0], evidence.pairs.destination(cells)]))


def _loss(component_type: ComponentType, part: int, sides: Sequence[int], cells: Cells, effects: Effects) -> Floats:
    """Return the (k,) log-effects of the component in its cells, without the tolerated effects of other components."""
    host, link = effects.host_tolerance, effects.link_tolerance
    to = effects.residual.destination(cells)
    loss = effects.residual.value[cells].astype(np.float64)
    if not isinstance(component_type, Endpoints):
        return np.asarray(loss - effect_elsewhere(cells, effects, 0) - effect_elsewhere(cells, effects, 1))
    sent, received = np.clip(effects.sent, -host, host)[cells[0]], np.clip(effects.received, -host, host)[to]
    is_sender = (component_type.code[cells[0]] == part) & (0 in sides)
    is_receiver = (component_type.code[to] == part) & (1 in sides)
    loss -= np.where(is_sender, 0.0, sent) + np.where(is_receiver, 0.0, received)
    if effects.message_paths.count:
        loss -= effects.path_effect(link)[effects.message_paths.of_cells(effects.residual, cells)]
    return loss
