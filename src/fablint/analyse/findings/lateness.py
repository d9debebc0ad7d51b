"""Parts across which some messages are much later than the others: what is lost on the way is sent again.

The median of a pair does not show it, and a stream recovers. The mean of small messages does: one in a hundred that
waits for a timeout of 10 ms makes a mean of 100 us of a median of 2. So a cell is late when its mean is a multiple of
its median, and that multiple far above what is usual in the run; a part is at fault when a good share of its cells is
late, and hardly any of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.flows import Usable
from fablint.analyse.data.mean_ratios import Cells, Counts, JoinedRatios, Ratios, joined, ratios_of
from fablint.analyse.data.places import Places
from fablint.analyse.findings.path_streams import Way, links_of
from fablint.analyse.settings import Settings
from fablint.analyse.words import NEXT_STEP
from fablint.model import Finding, State
from fablint.names import plural
from fablint.routing import Routes

SHARE = 0.3  # of a part's cells are late,
FEWEST = 6  # and at least so many,
TIMES = 5.0  # and so much more than elsewhere
LOG10_CHANCE = -12.0  # of so many by accident
CLEAN = 0.05  # share of late cells, up to which a way is fine
MOST_RANKS = 20_000

Mask = npt.NDArray[np.bool_]
Count = Counts | np.integer | int


def late_messages(rows: Sequence[Usable], places: Places, routes: Routes | None, settings: Settings) -> list[Finding]:
    """Hosts, and links between switches, of which a good share of small messages is late."""
    ratios = _ratios(rows, places)
    if ratios is None:
        return []
    findings: list[Finding] = []
    measured, late = (_per_host(counts, places) for counts in ratios.per_rank())
    while (host := _worst_host(ratios, measured, late, places, settings)) is not None:
        ranks = np.flatnonzero(places.host == host)
        own = ratios.of_ranks(ranks)
        findings.append(_about_host(host, own, places))
        for counts, cells in ((measured, own), (late, own.only(own.late))):
            for end in (cells.src, cells.dst):
                counts -= np.bincount(places.host[end], minlength=counts.size)
        ratios.remove(ranks)
    return findings + _about_links(ratios, places, routes, settings)


def _ratios(rows: Sequence[Usable], places: Places) -> Ratios | None:
    """Cells of all latency rows; None where means and medians were not both stored."""
    if places.host.size > MOST_RANKS:
        return None
    every = (row for usable in rows for row in (usable.row, *usable.more) if row.quantity == "latency")
    found = [ratios for row in every if (ratios := ratios_of(row, places)) is not None]
    return JoinedRatios(found) if found else None


def _per_host(counts: Counts, places: Places) -> Counts:
    return np.bincount(places.host, weights=counts, minlength=len(places.hosts)).astype(np.int64)


def _worst_host(ratios: Ratios, measured: Counts, late: Counts, places: Places, settings: Settings) -> int | None:
    """The host at fault with the largest share of late cells; None where there is none.

    A pair that was measured repeatedly is one pair: late messages with one partner belong to either end, or to the
    route. So several partners must be late, and the evidence must suffice without the partner that is late most often.
    """
    cells, every = int(measured.sum()) // 2, int(late.sum()) // 2
    candidates = np.flatnonzero(_stand_out(late, measured, every - late, cells - measured))
    share = late[candidates] / measured[candidates]
    for host in candidates[np.argsort(-share, kind="stable")]:
        own = ratios.of_ranks(np.flatnonzero(places.host == host))
        partner = np.where(places.host[own.src] == host, places.host[own.dst], places.host[own.src])
        met, slow = (np.bincount(one, minlength=measured.size) for one in (partner, partner[own.late]))
        most = int(slow.argmax())
        rest = late[host] - slow[most], measured[host] - met[most]
        several = np.count_nonzero(slow) >= settings.min_partners
        if several and _stand_out(*rest, every - late[host], cells - measured[host]):
            return int(host)
    return None


def _stand_out(late: Count, measured: Count, others_late: Count, others: Count) -> Mask:
    """Is a good share of a part's own cells late, and hardly any of the others?"""
    elsewhere = (others_late + 1.0) / (others + 2.0)
    enough = (late >= FEWEST) & (late >= SHARE * measured) & (late >= TIMES * elsewhere * measured)
    if not np.any(enough):
        return np.asarray(enough)
    from scipy.stats import binom

    chance = binom.logsf(late - 1, measured, np.minimum(elsewhere, 1.0)) / np.log(10)
    return np.asarray(enough & (chance < LOG10_CHANCE))


def _about_links(ratios: Ratios, places: Places, routes: Routes | None, settings: Settings) -> list[Finding]:
    """Links that only ways with late messages cross; of round trips the direction is not known."""
    if routes is None or routes.routing.kind in ("adaptive", "ecmp"):
        return []
    measured, late = ratios.between(places.switch, len(places.switches))
    for counts in (measured, late):
        np.fill_diagonal(counts, 0)
    both, both_late = measured + measured.T, late + late.T
    own = {
        way: ratios.of_block(*(np.flatnonzero(places.switch == switch) for switch in way))
        for way in _ways((measured > 0) & (both_late >= FEWEST) & (both_late >= SHARE * both))
    }
    slow = {way for way in own if _late_pairs(own, way, places) >= settings.min_partners}
    if not slow:
        return []
    cells = joined([own[way] for way in sorted(slow)])
    every, all_late = (int(counts.sum()) // 2 for counts in ratios.per_rank())
    own_late = np.count_nonzero(cells.late)
    if not _stand_out(own_late, cells.late.size, all_late - own_late, every - cells.late.size):
        return []
    fine = set(_ways((measured > 0) & (both_late <= CLEAN * both)))
    return _cables(slow, fine, cells, places, routes)


def _ways(chosen: Mask) -> list[Way]:
    return [(int(a), int(b)) for a, b in zip(*np.nonzero(chosen), strict=True)]


def _late_pairs(own: dict[Way, Cells], way: Way, places: Places) -> int:
    """Distinct pairs of hosts that are late on a way or on the way back."""
    pairs = set[tuple[int, int]]()
    for cells in (own.get(one) for one in (way, way[::-1])):
        if cells is not None:
            ends = (places.host[end[cells.late]].tolist() for end in (cells.src, cells.dst))
            pairs |= {(min(pair), max(pair)) for pair in zip(*ends, strict=True)}
    return len(pairs)


def _cables(slow: set[Way], fine: set[Way], cells: Cells, places: Places, routes: Routes) -> list[Finding]:
    """The cables that explain the slow ways."""
    cables: dict[str, list[str]] = {}
    for one in links_of(slow, fine, places, routes):
        others = [routes.cable(link) for link in one.others]
        cables.setdefault(routes.cable(one.link), []).extend(others)
    return [
        Finding(
            state=State.FAULT,
            component="cable",
            name=name,
            quantity="latency",
            effect=_effect(cells),
            evidence=_evidence(cells),
            alternatives=tuple(other for other in dict.fromkeys(others) if other != name),
            next_step=NEXT_STEP["cable"].format(name=name),
        )
        for name, others in cables.items()
    ]


def _about_host(host: int, cells: Cells, places: Places) -> Finding:
    name = places.hosts[host]
    return Finding(
        state=State.FAULT,
        component="host",
        name=name,
        quantity="latency",
        effect=_effect(cells),
        evidence=_evidence(cells),
        alternatives=(f"NIC of {name}", f"cable of {name}", f"switch port of {name}"),
        next_step=f"read the error and drop counters at both ends of the cable of {name}; then reseat or swap it",
    )


def _effect(cells: Cells) -> float:
    """Of the mean latency."""
    return float(cells.ratio.mean()) - 1.0


def _evidence(cells: Cells) -> str:
    late = int(cells.late.sum())
    worst = float(np.median(cells.ratio[cells.late]))
    return (
        f"some messages come much later than the others, as after a loss: the mean is {worst:.0f} times what is usual"
        f" in {late} of {plural(cells.late.size, 'measurement')}, and hardly ever elsewhere"
    )
