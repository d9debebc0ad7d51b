"""Is every host where the topology says? Judged by the latency of its pairs on its switch and off it.

A pair on one switch is faster than a pair on two. A host whose pairs with the hosts of its own switch take as long as
pairs on different switches hangs somewhere else: most likely where its pairs are as fast as those on one switch.
The likelihood ratio of both classes, normalised to an e-value, decides (evidence.py has the method); a host that is slow with all others alike is
not meant, since what a host adds to every pair is taken out first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from fablint.analyse.places import Codes, Places
from fablint.analyse.quantiles import Floats, robust_sd
from fablint.analyse.settings import Settings
from fablint.analyse.words import counted
from fablint.model import SCOPES, Finding, Observations, Scope, State

Mask = npt.NDArray[np.bool_]

FAR_COLUMNS = 128  # partners off the switch that are looked at per rank
CLEAR_GAP = 3.0  # robust standard deviations that pairs on a switch must be faster than pairs off it
LARGEST_GAIN = 4.0  # nats that one pair can say
FEWEST_POOL = 6  # pairs of a class that show what it is like
BINS = 24
PASSES = 2
EDGE = SCOPES.index(Scope.EDGE)


@dataclass(frozen=True)
class HostPairs:
    """Measured pairs of hosts, each once, with `a` < `b`."""

    a: Codes  # (k,) host codes
    b: Codes
    seconds: Floats  # (k,)

    @classmethod
    def of(cls, src: Codes, dst: Codes, seconds: npt.NDArray[np.floating], places: Places) -> HostPairs:
        """From measurements between ranks: the median (of two the smaller) of all between two hosts."""
        a, b = places.host[src], places.host[dst]
        use = (a != b) & (seconds > 0)  # NaN is not
        low, high = np.minimum(a, b)[use].astype(np.int64), np.maximum(a, b)[use].astype(np.int64)
        key, known = low * len(places.hosts) + high, seconds[use].astype(np.float64)
        order = np.lexsort((known, key))
        unique, first, count = np.unique(key[order], return_index=True, return_counts=True)
        middle = known[order][first + (count - 1) // 2]
        return cls(unique // len(places.hosts), unique % len(places.hosts), middle)

    def some(self, which: Mask) -> HostPairs:
        """Those of the pairs."""
        return HostPairs(self.a[which], self.b[which], self.seconds[which])

    def ends(self) -> tuple[Codes, Codes, Codes]:
        """Every pair as seen from either end: host, the other host, number of the pair."""
        number = np.arange(self.a.size)
        return np.concatenate([self.a, self.b]), np.concatenate([self.b, self.a]), np.concatenate([number, number])


@dataclass(frozen=True)
class _Classes:
    """What pairs on one switch and on two take, what each host adds, and what a time says about where its host is."""

    near: float  # median seconds on one switch
    far: float  # of the nearest class off it
    host: Floats  # (hosts,) seconds that a host adds to each of its pairs, NaN where unknown
    edges: Floats  # of the bins of a time
    away: Floats  # (bins,) nats for "on different switches", by time; its exponential has mean 1 on one switch
    beside: Floats  # (bins,) for "on the same switch"; its exponential has mean 1 on different switches

    @property
    def middle(self) -> float:
        return (self.near + self.far) / 2

    def gain(self, table: Floats, seconds: Floats) -> Floats:
        """Nats of single times."""
        return np.asarray(table[np.searchsorted(self.edges, seconds)])


def verify(observations: Observations, places: Places, settings: Settings) -> list[Finding]:
    """Hosts that do not hang where the topology says.

    Args:
        observations: round trips of the smallest message; the `min` statistic shows the way best.
        places: with the declared switches.
        settings: `alpha` is the chance of one false FAULT, `min_partners` the fewest partners on a switch.
    """
    if len(places.switches) < 2:
        return []
    pairs = HostPairs.of(*_near_and_sampled(observations, places), places)
    switch = _switch_of_host(places)
    findings = []
    while found := _misplaced(pairs, switch, settings):
        classes, accused = found
        for host, nats in accused:
            everywhere = HostPairs.of(*_of_host(observations, places, host), places)
            findings.append(_finding(everywhere, host, nats, switch, classes, places, settings))
        switch = switch.copy()
        switch[[host for host, _ in accused]] = -1  # what they measured says nothing about their former neighbours
    return sorted(findings, key=lambda finding: finding.name)


# ------------------------------------------------------------------------------------------------ what was measured


def _near_and_sampled(
    observations: Observations, places: Places
) -> tuple[Codes, Codes, npt.NDArray[np.floating]]:
    """Sender, receiver and seconds of all pairs on a switch, and of as many others as are needed."""
    sent, n = np.asarray(observations.sent), len(places.host)
    if observations.partner is not None:
        src, column = np.nonzero(np.asarray(observations.partner) >= 0)
        return src, np.asarray(observations.partner)[src, column].astype(np.int64), sent[src, column]
    columns = np.random.default_rng(n).permutation(n)[:FAR_COLUMNS]
    src, dst = (index.ravel() for index in np.meshgrid(np.arange(n), columns, indexing="ij"))
    far = places.switch[src] != places.switch[dst]
    blocks = [(src[far], dst[far])]
    for members in _members(places.switch, len(places.switches)):
        blocks.append((np.repeat(members, members.size), np.tile(members, members.size)))
    src, dst = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return src, dst, sent[src, dst]


def _of_host(observations: Observations, places: Places, host: int) -> tuple[Codes, Codes, npt.NDArray[np.floating]]:
    """All that its ranks sent and received."""
    ranks = np.flatnonzero(places.host == host)
    sent, received = np.asarray(observations.sent)[ranks], np.asarray(observations.received[ranks])
    if observations.partner is None:
        other = np.broadcast_to(np.arange(sent.shape[1]), sent.shape)
    else:
        other = np.asarray(observations.partner, dtype=np.int64)[ranks]
    own = np.broadcast_to(ranks[:, None], sent.shape)
    use = other >= 0
    own, other = own[use], other[use]
    return np.concatenate([own, own]), np.concatenate([other, other]), np.concatenate([sent[use], received[use]])


def _members(code: Codes, count: int) -> Iterator[Codes]:
    """Who is in each part."""
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(count + 1))
    for first, last in zip(bounds[:-1], bounds[1:], strict=True):
        yield order[first:last]


def _switch_of_host(places: Places) -> Codes:
    """(hosts,) code of the declared switch, -1 where the topology does not say, or a host's ranks are on several."""
    first = np.full(len(places.hosts), -1, dtype=np.int64)
    first[places.host[::-1]] = places.switch[::-1]
    several = np.unique(places.host[first[places.host] != places.switch])
    first[several] = -1
    return first


# ------------------------------------------------------------------------------------------------ who is elsewhere


def _misplaced(
    pairs: HostPairs, switch: Codes, settings: Settings
) -> tuple[_Classes, list[tuple[int, float]]] | None:
    """Hosts that are not with their switch, the clearest of each switch, with the evidence; None where there is none."""
    known = (switch[pairs.a] >= 0) & (switch[pairs.b] >= 0)
    pairs = pairs.some(known)
    near = switch[pairs.a] == switch[pairs.b]
    classes = _classes(pairs, near, switch.size)
    if classes is None:
        return None
    inside = pairs.some(near)
    time = inside.seconds - classes.host[inside.a] - classes.host[inside.b]
    inside, time = inside.some(~np.isnan(time)), time[~np.isnan(time)]
    host, _, number = inside.ends()
    gain = classes.gain(classes.away, time)
    evidence = np.bincount(host, weights=gain[number], minlength=switch.size)
    partners = np.bincount(host, minlength=switch.size)
    slow = np.bincount(host, weights=time[number] > classes.middle, minlength=switch.size)
    threshold = np.log(np.count_nonzero(switch >= 0) / settings.alpha)
    suspects = np.flatnonzero((evidence > threshold) & (partners >= settings.min_partners) & (2 * slow > partners))
    accused: dict[int, tuple[int, float]] = {}
    for one in sorted(suspects.tolist(), key=lambda one: -evidence[one]):
        others = (switch[inside.a] == switch[one]) & (inside.a != one) & (inside.b != one)
        # Were the pairs of the others on this switch slow too, it would be the switch, or the whole map.
        if int(switch[one]) not in accused and others.any() and np.median(time[others]) < classes.middle:
            accused[int(switch[one])] = one, float(evidence[one])
    return (classes, list(accused.values())) if accused else None


def _classes(pairs: HostPairs, near: Mask, hosts: int) -> _Classes | None:
    """The two classes; None where they cannot be told from each other."""
    far = pairs.some(~near)
    if near.sum() < FEWEST_POOL or far.a.size < FEWEST_POOL:
        return None
    host = _host_seconds(far, hosts)
    time = pairs.seconds - host[pairs.a] - host[pairs.b]
    on, off = time[near & ~np.isnan(time)], time[~near & ~np.isnan(time)]
    if min(on.size, off.size) < FEWEST_POOL:
        return None
    spread = max(robust_sd(on), robust_sd(off), 1e-3 * float(np.median(on)))
    if np.median(off) - np.median(on) < CLEAR_GAP * spread:
        return None
    edges = np.unique(np.concatenate([np.quantile(part, np.linspace(0, 1, BINS // 2 + 1)[1:-1]) for part in (on, off)]))
    shares = [np.bincount(np.searchsorted(edges, part), minlength=edges.size + 1) + 0.5 for part in (on, off)]
    f_on, f_off = (counts / counts.sum() for counts in shares)
    return _Classes(
        float(np.median(on)), float(np.median(off)), host, edges, _table(f_on, f_off), -_table(-f_off[::-1], -f_on[::-1])
    )


def _host_seconds(far: HostPairs, hosts: int) -> Floats:
    """(hosts,) seconds that each host adds to its pairs off its switch; NaN with fewer than three."""
    added = np.zeros(hosts)
    host, other, number = far.ends()
    for _ in range(PASSES):
        left = far.seconds[number] - np.nan_to_num(added)[other]
        added = _medians(host, left - np.median(left), hosts)
    return added


def _medians(group: Codes, values: Floats, groups: int) -> Floats:
    """(groups,) median of each group; NaN with fewer than three values."""
    order = np.lexsort((values, group))
    count = np.bincount(group, minlength=groups)
    first = np.cumsum(count) - count
    ordered = np.append(values[order], np.nan)
    middle = (ordered[first + np.maximum(count - 1, 0) // 2] + ordered[np.minimum(first + count // 2, values.size)]) / 2
    return np.where(count >= 3, middle, np.nan)
