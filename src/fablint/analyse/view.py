"""Judge one view of the fabric: one size of one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fablint.analyse.culprits import Conviction, convict
from fablint.analyse.evidence import gather
from fablint.analyse.fit import Effects, fit
from fablint.analyse.leads import SlowPair, slow_hosts, slow_pairs
from fablint.analyse.pairs import Pairs
from fablint.analyse.parts import Kind, families, per_link_totals
from fablint.analyse.places import Codes, Places
from fablint.analyse.quantiles import Floats
from fablint.analyse.routes import Routes
from fablint.analyse.settings import Settings
from fablint.model import SCOPES, Fit, Observations

Quantity = Literal["latency", "bandwidth"]
ONE_WAY_KERNELS = frozenset({"bandwidth"})  # whose times tell the direction
STATISTICS = ("median", "mean", "min", "p99", "max")  # the first that a row has is judged


@dataclass(frozen=True)
class Judged:
    """What one view says."""

    row: str
    kernel: str
    size: int
    fit: Fit
    convictions: list[Conviction]
    slow_pairs: list[SlowPair]
    slow_hosts: list[tuple[int, float]]  # host code, log-effect
    compared: frozenset[Kind]  # kinds of parts that had peers to be compared with
    host_tolerance: float  # log-effect that a healthy host may have here
    link_tolerance: float
    host_partners: Codes  # (hosts,) other hosts that each was measured with, in its scarcer direction
    host_bound: Floats  # (hosts,) upper 95 % bound of the log-effect, NaN where unknown
    link_pairs: Codes  # (links,) measured pairs that cross each link
    link_bound: Floats  # (links,) upper 95 % bound of its log-effect, NaN where unknown
    pairs_measured: int

    @property
    def quantity(self) -> Quantity:
        """What an administrator calls it."""
        return "bandwidth" if "bandwidth" in self.kernel else "latency"

    @property
    def one_way(self) -> bool:
        """Does this view tell the direction?"""
        return self.kernel in ONE_WAY_KERNELS


def judge(
    observations: Observations, places: Places, routes: Routes | None, settings: Settings, *, views: int
) -> Judged:
    """Fit, weigh, convict. `views` is the number of views of the run, among which the chance of error is shared."""
    pairs = Pairs.log_times(observations)
    measured = int(np.count_nonzero(~np.isnan(pairs.value)))
    effects = fit(pairs, places, settings)
    parts = [family for family in families(pairs, places, routes) if _comparable(family.component, effects, settings)]
    one_way = observations.kernel in ONE_WAY_KERNELS
    evidence = gather(effects, places, settings)
    convictions: list[Conviction] = []
    pairs_left: list[SlowPair] = []
    if evidence:
        convictions = convict(evidence, effects, parts, settings, views=views, directed=one_way)
        pairs_left = slow_pairs(evidence, effects, settings, views=views)
    link_pairs, link_bound = _links(effects, places, routes)
    return Judged(
        row=observations.row,
        kernel=observations.kernel,
        size=observations.size,
        fit=_as_fit(observations, effects, one_way=one_way),
        convictions=convictions,
        slow_pairs=pairs_left,
        slow_hosts=slow_hosts(effects, places, evidence),
        compared=frozenset(family.component for family in parts),
        host_tolerance=effects.host_tolerance,
        link_tolerance=effects.link_tolerance,
        host_partners=_host_partners(pairs, places, settings),
        host_bound=_host_bounds(effects, places),
        link_pairs=link_pairs,
        link_bound=link_bound,
        pairs_measured=measured,
    )


def _comparable(kind: Kind, effects: Effects, settings: Settings) -> bool:
    """Switches and links are compared through their hosts, which must be alike; links must be so themselves."""
    alike = effects.host_tolerance <= settings.most_tolerance
    return {
        "switch": alike,
        "cable": alike and effects.link_tolerance <= settings.most_tolerance,
    }.get(kind, True)


def _as_fit(observations: Observations, effects: Effects, *, one_way: bool) -> Fit:
    """The fit for the report. A round trip has one effect per rank, which both of its ends share."""
    sent, received = effects.sent, effects.received
    if not one_way:
        sent = received = (sent + received) * np.float32(0.5)
    classes = {SCOPES[code]: float(np.exp(value)) for code, value in effects.class_log_time.items()}
    return Fit(observations.row, observations.kernel, observations.size, classes, sent, received, effects.noise)


def _host_partners(pairs: Pairs, places: Places, settings: Settings) -> Codes:
    """(hosts,) distinct other hosts measured with, in the scarcer direction.

    Counted exactly only where it may fall short of what is asked for.
    """
    hosts = len(places.hosts)
    most_ranks = int(np.bincount(places.host, minlength=hosts).max())
    counts = np.full(hosts, np.iinfo(np.int64).max)
    for sent in (True, False):
        count = np.zeros(hosts, dtype=np.int64)
        for rows in pairs.blocks():
            measured = ~np.isnan(pairs.sent(rows) if sent else pairs.received(rows))
            np.maximum.at(count, places.host[rows], -(-measured.sum(axis=1) // most_ranks))
        for host in np.nonzero(count < max(settings.min_partners, 1))[0]:
            count[host] = _distinct_partners(pairs, places, int(host), sent=sent)
        counts = np.minimum(counts, count)
    return counts


def _distinct_partners(pairs: Pairs, places: Places, host: int, *, sent: bool) -> int:
    ranks = np.nonzero(places.host == host)[0]
    cells = pairs.cells_from(ranks) if sent else pairs.cells_to(ranks)
    measured = ~np.isnan(pairs.value[cells])
    partners = (pairs.destination(cells) if sent else cells[0])[measured]
    return int(np.unique(places.host[partners]).size)


def _host_bounds(effects: Effects, places: Places) -> Floats:
    """(hosts,) the largest loss that a host can hide: of its worst rank, in its worse direction."""
    upper = np.fmax(effects.sent_bounds[2], effects.received_bounds[2])
    bound = np.full(len(places.hosts), np.nan)
    np.fmax.at(bound, places.host, upper)
    return bound


def _links(effects: Effects, places: Places, routes: Routes | None) -> tuple[Codes, Floats]:
    """Measured pairs per link, and the largest loss that each can hide."""
    if routes is None:
        return np.zeros(0, np.int64), np.zeros(0)
    pairs, size = effects.residual, len(places.switches)
    measured = np.zeros((size, size), dtype=np.int64)
    for switch in range(size):
        rows = np.nonzero(places.switch == switch)[0]
        known = ~np.isnan(pairs.value[rows])
        other = np.broadcast_to(places.switch[pairs.partners(rows)], known.shape)
        measured[switch] = np.bincount(other[known & (other >= 0)], minlength=size)
    bound: npt.NDArray[np.float64] = np.full(len(routes.links), np.nan)
    for links in routes.hops:
        used = links >= 0
        np.fmin.at(bound, links[used], effects.between_upper[:size, :size][used])
    return per_link_totals(routes, measured), bound
