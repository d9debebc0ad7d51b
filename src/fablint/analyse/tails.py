"""Parts across which some messages are much later than the others: what is lost on the way is sent again.

The median of a pair does not show it, and a stream recovers. The mean of small messages does: one in a hundred that
waits for a timeout of 10 ms makes a mean of 100 us of a median of 2. So a cell is late when its mean is a multiple of
its median, and that multiple far above what is usual in the run; a part is at fault when a good share of its cells is
late, and hardly any of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.analyse.distances import Way, links_of
from fablint.analyse.flows import Usable
from fablint.analyse.places import Codes, Places
from fablint.analyse.words import NEXT_STEP
from fablint.model import Finding, State
from fablint.names import plural
from fablint.routing import Routes

LATE = 3.0  # times the usual ratio of mean and median
SHARE = 0.3  # of a part's cells are late,
FEWEST = 6  # and at least so many,
TIMES = 5.0  # and so much more than elsewhere
LOG10_CHANCE = -12.0  # of so many by accident
CLEAN = 0.05  # share of late cells, up to which a way is fine
MOST_RANKS = 20_000

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Cells:
    """Pairs of ranks, one for each round in which they were measured, and whether some messages were late."""

    src: Codes
    dst: Codes
    late: Mask
    ratio: npt.NDArray[np.float64]  # mean by median, 1: as usual in the run

    def only(self, mask: Mask) -> _Cells:
        return _Cells(self.src[mask], self.dst[mask], self.late[mask], self.ratio[mask])


def late_messages(rows: Sequence[Usable], places: Places, routes: Routes | None) -> list[Finding]:
    """Hosts, and links between switches, of which a good share of small messages is late."""
    cells = _cells(rows, places)
    if cells is None:
        return []
    findings: list[Finding] = []
    while (host := _worst_host(cells, places)) is not None:
        own = _of_host(cells, host, places)
        findings.append(_about_host(host, cells.only(own), places))
        cells = cells.only(~own)
    return findings + _about_links(cells, places, routes)


def _cells(rows: Sequence[Usable], places: Places) -> _Cells | None:
    """Cells of all latency rows of lists; None where means and medians were not both stored."""
    parts = []
    for row in (one for usable in rows for one in (usable.row, *usable.more)):
        both = {"mean", "median"} <= set(row.statistics)
        if row.quantity != "latency" or row.layout != "list" or not both or places.host.size > MOST_RANKS:
            continue
        size = min(row.sizes)
        mean, median = (np.asarray(row.observations(size, name).sent, np.float64) for name in ("mean", "median"))
        partner = np.asarray(row.arrays["dst"][:])
        src, column = np.nonzero((partner >= 0) & (mean > 0) & (median > 0))
        ratio = mean[src, column] / median[src, column]
        if ratio.size:
            parts.append((src, partner[src, column], ratio / np.median(ratio)))
    if not parts:
        return None
    src, dst, ratio = (np.concatenate(column) for column in zip(*parts, strict=True))
    between = places.host[src] != places.host[dst]
    return _Cells(src[between], dst[between], (ratio > LATE)[between], ratio[between])


def _of_host(cells: _Cells, host: int, places: Places) -> Mask:
    return np.asarray((places.host[cells.src] == host) | (places.host[cells.dst] == host))


def _worst_host(cells: _Cells, places: Places) -> int | None:
    """The host with the largest share of late cells, if that is no accident; of hosts that are alike none."""
    if int(cells.late.sum()) < FEWEST:
        return None
    hosts = len(places.hosts)
    ends = (places.host[cells.src], places.host[cells.dst])
    measured, late = (sum(np.bincount(end, weights, hosts) for end in ends) for weights in (None, cells.late))
    share = np.divide(late, measured, out=np.zeros(hosts), where=measured > 0)
    worst = int(share.argmax())
    return worst if _at_fault(cells, _of_host(cells, worst, places)) else None


def _at_fault(cells: _Cells, own: Mask) -> bool:
    """Is a good share of the part's own cells late, and hardly any of the others?"""
    late, measured = int(cells.late[own].sum()), int(own.sum())
    others = cells.late[~own]
    elsewhere = (float(others.sum()) + 1.0) / (others.size + 2.0)
    if late < FEWEST or late < SHARE * measured or late / measured < TIMES * elsewhere:
        return False
    from scipy.stats import binom

    return bool(binom.logsf(late - 1, measured, elsewhere) / np.log(10) < LOG10_CHANCE)


def _about_links(cells: _Cells, places: Places, routes: Routes | None) -> list[Finding]:
    """Links that only ways with late messages cross; of round trips the direction is not known."""
    a, b = places.switch[cells.src], places.switch[cells.dst]
    between = (a != b) & (a >= 0) & (b >= 0)
    slow, fine = set[Way](), set[Way]()
    for way in {(int(x), int(y)) for x, y in zip(a[between], b[between], strict=True)}:
        own = ((a == way[0]) & (b == way[1])) | ((a == way[1]) & (b == way[0]))
        late, measured = int(cells.late[own].sum()), int(own.sum())
        if late >= FEWEST and late >= SHARE * measured:
            slow.add(way)
        elif late <= CLEAN * measured:
            fine.add(way)
    apart = ~np.isin(a * places.switch.size + b, [x * places.switch.size + y for x, y in slow])
    if not slow or routes is None or routes.routing.kind in ("adaptive", "ecmp") or not _at_fault(cells, ~apart):
        return []
    cables: dict[str, list[str]] = {}
    for one in links_of(slow, fine, places, routes):
        others = [routes.cable(link) for link in one.others]
        cables.setdefault(routes.cable(one.link), []).extend(others)
    evidence = _evidence(cells.only(~apart))
    return [
        Finding(
            state=State.FAULT,
            component="cable",
            name=name,
            quantity="latency",
            effect=_effect(cells.only(~apart)),
            evidence=evidence,
            alternatives=tuple(other for other in dict.fromkeys(others) if other != name),
            next_step=NEXT_STEP["cable"].format(name=name),
        )
        for name, others in cables.items()
    ]


def _about_host(host: int, cells: _Cells, places: Places) -> Finding:
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


def _effect(cells: _Cells) -> float:
    """Of the mean latency."""
    return float(cells.ratio.mean()) - 1.0


def _evidence(cells: _Cells) -> str:
    late = int(cells.late.sum())
    worst = float(np.median(cells.ratio[cells.late]))
    return (
        f"some messages come much later than the others, as after a loss: the mean is {worst:.0f} times what is usual"
        f" in {late} of {plural(cells.late.size, 'measurement')}, and hardly ever elsewhere"
    )
