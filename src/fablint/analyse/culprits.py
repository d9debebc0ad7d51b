"""Find the fewest parts that explain the slow pairs: the culprit, not its victims.

Greedy: take the part with the most evidence, check that the loss is real and its own, set its pairs aside, repeat.
A part is convicted when its e-value exceeds (number of parts and views) / alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from fablint.analyse.evidence import UNITS_PER_NAT, Evidence
from fablint.analyse.fit import Effects
from fablint.analyse.pairs import Cells
from fablint.analyse.parts import Cables, Endpoints, Family, Kind
from fablint.analyse.places import Codes, Places
from fablint.analyse.quantiles import FEWEST_VALUES, interval_ranks
from fablint.analyse.settings import Settings

SHARED_BY = 0.6  # of a switch's hosts or a link's users must be slow, else it is not the switch or the link
CARRIED_BY_ONE = 0.75  # share of the evidence from which one host may be the real culprit


class Sides(Enum):
    """How the two sides of a part are held responsible, by what was measured."""

    EACH = "a stream tells the direction: each side by itself"
    BOTH = "a round trip in each direction: a sick part slows both sides, or it is not sick"
    TOGETHER = "one round trip per pair: either side may have few of them, and all speak for the part"


@dataclass(frozen=True)
class Conviction:
    """A part whose pairs are slow beyond noise and tolerance, in one view."""

    kind: Kind
    name: str
    ranks: Codes  # at its ends: of a host or switch its own, of a cable those behind both of its switches
    sides: tuple[int, ...]  # 0 (sends; a > b), 1 (receives; b > a) or both
    loss: tuple[float, float, float]  # lower 95 % bound, median, upper bound of the log-effect
    pairs: int  # judged by
    slow: int  # of these, slower than tolerated
    log_e: float  # evidence, nats
    ambiguous: tuple[str, ...] = ()  # other parts that explain the same pairs


def convict(
    evidence: Evidence, effects: Effects, parts: Sequence[Family], settings: Settings, *, views: int, sides: Sides
) -> list[Conviction]:
    """All culprits of one view, the one with the most evidence first. `evidence` is used up on the way."""
    tests = 2 * sum(len(family) for family in parts) * views
    threshold = int(np.ceil(np.log(tests / settings.alpha) * UNITS_PER_NAT))
    rejected = [np.zeros(len(family), dtype=bool) for family in parts]
    found: list[Conviction] = []
    while True:
        best, best_score = None, 0
        for family, refused in zip(parts, rejected, strict=True):
            part, score, guilty = _strongest(family, evidence, threshold, refused, sides)
            if score > best_score:
                best, best_score = (family, part, guilty, refused), score
        if best is None:
            return found
        family, part, guilty, refused = best
        conviction = _examine(family, part, guilty, evidence, effects)
        refused[part] = True
        if conviction:
            found.append(conviction)
            for side in guilty:
                evidence.remove(_open(family.cells(part, side), evidence))
            rejected = [np.zeros(len(family), dtype=bool) for family in parts]  # what it hid may now stand by itself


def _strongest(
    family: Family, evidence: Evidence, threshold: int, refused: npt.NDArray[np.bool_], sides: Sides
) -> tuple[int, int, tuple[int, ...]]:
    """Number, score and convicted sides of the part with the most evidence in a family."""
    first, second, inner = family.sums(evidence)
    yes_first, yes_second = first >= threshold, second >= threshold
    if sides is Sides.BOTH:
        yes_first = yes_second = yes_first & yes_second
    elif sides is Sides.TOGETHER:
        yes_first = yes_second = first + second - inner >= threshold
    score = np.where(yes_first, first, 0) + np.where(yes_second, second, 0)
    score -= np.where(yes_first & yes_second, inner, 0)
    score[refused] = 0
    part = int(np.argmax(score)) if score.size else 0
    if not score.size or score[part] <= 0:
        return 0, 0, ()
    return part, int(score[part]), tuple(side for side, yes in ((0, yes_first[part]), (1, yes_second[part])) if yes)


def _open(cells: Cells, evidence: Evidence) -> Cells:
    """Those of the cells that were measured and are not explained yet, each once."""
    live = evidence.gain[cells] != 0
    return cells[0][live], cells[1][live]


def _examine(
    family: Family, part: int, sides: tuple[int, ...], evidence: Evidence, effects: Effects
) -> Conviction | None:
    """Is the loss real (its interval beyond the tolerance), and is it this part's own?"""
    tolerance = effects.link_tolerance if isinstance(family, Cables) else effects.host_tolerance
    losses, gains, froms, tos = [], [], [], []
    ambiguous: set[str] = set()
    for side in sides:
        cells = _open(family.cells(part, side), evidence)
        if not cells[0].size:
            continue
        gain, to = evidence.gain[cells].astype(np.int64), evidence.pairs.destination(cells)
        other = _rival(family, side, gain, cells[0], to, evidence)
        if other is None:
            return None
        ambiguous |= other
        losses.append(_loss(family, side, cells, to, effects, evidence.places))
        gains.append(gain)
        froms.append(cells[0])
        tos.append(to)
    loss = np.sort(np.concatenate(losses))
    lower, upper = (int(rank) for rank in interval_ranks(loss.size))
    bounds = (float(loss[lower]), float(np.median(loss)), float(loss[upper]))
    if loss.size < FEWEST_VALUES or bounds[0] <= tolerance:
        return None
    return Conviction(
        family.component,
        family.name(part),
        _ends(family, part, froms, tos),
        sides,
        bounds,
        loss.size,
        int(np.count_nonzero(loss > tolerance)),
        max(float(gain.sum()) for gain in gains) / UNITS_PER_NAT,
        tuple(sorted(ambiguous)),
    )


def _ends(family: Family, part: int, froms: list[Codes], tos: list[Codes]) -> Codes:
    """Ranks that the conviction is about."""
    return family.ranks(part) if isinstance(family, Endpoints) else np.unique(np.concatenate([*froms, *tos]))


def _loss(
    family: Family, side: int, cells: Cells, to: Codes, effects: Effects, places: Places
) -> npt.NDArray[np.float64]:
    """Log-effects of the part as each of its pairs shows it: the tolerated effects of the other parts taken out."""
    host, link = effects.host_tolerance, effects.link_tolerance
    loss = effects.residual.value[cells].astype(np.float64)
    own = isinstance(family, Endpoints)
    if not (own and side == 0):
        loss -= np.clip(effects.sent, -host, host)[cells[0]]
    if not (own and side == 1):
        loss -= np.clip(effects.received, -host, host)[to]
    if own and places.switches:
        loss -= np.clip(effects.between, -link, link)[places.switch[cells[0]], places.switch[to]]
    return loss


def _rival(
    family: Family, side: int, gain: npt.NDArray[np.int64], source: Codes, to: Codes, evidence: Evidence
) -> set[str] | None:
    """Parts that explain these pairs as well; None when one of them, or chance, explains them better."""
    places = evidence.places
    if isinstance(family, Cables) or family.component == "switch":
        return _rival_hosts(gain, source, to, evidence, own_side=None if isinstance(family, Cables) else side)
    partner = to if side == 0 else source
    behind = places.switch[partner]
    if not places.switches or (behind < 0).all():
        return set()
    totals = np.bincount(behind[behind >= 0], weights=gain[behind >= 0], minlength=len(places.switches))
    strongest = int(np.argmax(totals))
    elsewhere = behind != strongest
    if elsewhere.any() and gain[elsewhere].sum() <= 0:
        return None  # slow towards one switch only: not this host
    home = int(places.switch[(source if side == 0 else to)[0]])
    if elsewhere.any() or home < 0 or home == strongest:
        return set()
    ends = (home, strongest) if side == 0 else (strongest, home)
    return {f"link {places.switches[ends[0]]}>{places.switches[ends[1]]}"}


def _rival_hosts(
    gain: npt.NDArray[np.int64], source: Codes, to: Codes, evidence: Evidence, *, own_side: int | None
) -> set[str] | None:
    """For a link or a switch: is its slowness shared by its users, or is it one host's?

    `own_side`: for a switch, the side on which its own hosts are (0: senders); for a link, both sides are users.
    """
    places = evidence.places
    rivals = set()
    for side, ranks, host_sums in ((0, source, evidence.sent), (1, to, evidence.received)):
        if own_side is not None and own_side != side:
            continue
        per_host = np.bincount(places.host[ranks], weights=gain, minlength=len(places.hosts))
        users = np.unique(places.host[ranks])
        if np.count_nonzero(per_host[users] > 0) < SHARED_BY * users.size:
            return None
        strongest = int(np.argmax(per_host))
        if per_host[strongest] <= CARRIED_BY_ONE * gain.sum():
            continue
        if own_side is not None:
            return None
        if host_sums[places.host == strongest].sum() > 0:
            rivals.add(f"host {places.hosts[strongest]}")
    return rivals
