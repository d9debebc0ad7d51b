"""Is every host where the topology says? Judged by the latency of its pairs on its switch and off it.

A pair on one switch is faster than a pair on two. A host whose pairs with the hosts of its own switch take as long as
pairs on different switches is connected elsewhere: most likely where its pairs are as fast as those on one switch.
The likelihood ratio of both classes, normalised to an e-value, decides (evidence.py has the method). A host that is
equally slow with all others is not meant: what a host adds to every pair is taken out first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fablint.analyse.explain.evidence import e_value_increments
from fablint.analyse.observations.robust_stats import robust_sd
from fablint.analyse.settings import (
    CLEAR_DISTANCE,
    CLUSTER_OF_PLACE,
    FEWEST_PEERS,
    FEWEST_VALUES,
    FINEST_NOISE,
    Settings,
)
from fablint.model import ComponentRef, Finding, Observations, Placement, Run, State
from fablint.model.arrays import Codes, Floats, Mask, Values
from fablint.model.figures.grouped_values import GroupedValues
from fablint.text import actions as advise, evidence as seen

FAR_COLUMNS = 48  # partners off the switch that are looked at per rank
SHORTEST = ("min", "median", "mean")  # statistics, the one that disturbances change least first
PAIRWISE = ("all-pairs", "rounds", "random", "bisection", "pairs", "pair")  # patterns in which two alone meet
MOST_BINS = 12  # of a class
PASSES = 2


@dataclass(frozen=True)
class HostPairs:
    """Measured pairs of hosts, each once, with `a` < `b`."""

    a: Codes  # (k,) host codes
    b: Codes
    seconds: Floats  # (k,)

    @classmethod
    def of(cls, src: Codes, dst: Codes, seconds: Floats | Values, placement: Placement) -> HostPairs:
        """Combine measurements between ranks: each pair of hosts has the lower median of all between its ranks.

        Parameters
        ----------
        src, dst
            (k,) ranks.
        seconds
            (k,) times; NaN and 0 are ignored, and so are pairs within a host.
        placement
            Host of each rank.
        """
        a, b = placement.host[src], placement.host[dst]
        use = (a != b) & (seconds > 0)  # NaN is not
        low, high = np.minimum(a, b)[use].astype(np.int64), np.maximum(a, b)[use].astype(np.int64)
        key, times = low * len(placement.hosts) + high, seconds[use].astype(np.float64)
        unique, of_pair = np.unique(key, return_inverse=True)
        middle = GroupedValues.of(times, of_pair, unique.size).lower_medians()
        return cls(unique // len(placement.hosts), unique % len(placement.hosts), middle)

    def some(self, which: Mask) -> HostPairs:
        """Return the pairs that a (k,) mask selects."""
        return HostPairs(self.a[which], self.b[which], self.seconds[which])

    def ends(self) -> tuple[Codes, Codes, Codes]:
        """Every pair as seen from either end: host, the other host, number of the pair."""
        number = np.arange(self.a.size)
        return np.concatenate([self.a, self.b]), np.concatenate([self.b, self.a]), np.concatenate([number, number])


@dataclass(frozen=True)
class _Classes:
    """What pairs on one switch and on two take, and what each host adds."""

    near: float  # median seconds on one switch
    far: float  # of the nearest class off it
    host: Floats  # (hosts,) seconds that a host adds to each of its pairs, NaN where unknown
    off: HostPairs  # pairs of that class, in seconds without what their hosts add

    @property
    def middle(self) -> float:
        return (self.near + self.far) / 2


@dataclass(frozen=True)
class _Gains:
    """What a time says about where its host is, in nats."""

    edges: Floats  # of the bins of a time
    away: Floats  # (bins,) for "on different switches"; its exponential has mean 1 on one switch
    beside: Floats  # (bins,) for "on the same switch"; its exponential has mean 1 on different switches

    def of(self, table: Floats, seconds: Floats) -> Floats:
        """Nats of single times."""
        return np.asarray(table[np.searchsorted(self.edges, seconds)])


def shortest_round_trips(run: Run) -> Observations | None:
    """Return the times that show the path between hosts best: the smallest message of the row with the most pairs.

    Only rows of round trips count, their shortest statistic (`min`, else `median`); None if the run has none.
    """
    rows = [
        row
        for row in run.rows
        if row.kernel == "latency" and not row.facts.schedule.retest_of
        if set(row.statistics) & set(SHORTEST) and row.sizes and row.pattern in ("", *PAIRWISE)
    ]
    if not rows:
        return None
    row = max(rows, key=lambda row: np.prod(row.arrays["count"].shape[:-1]))
    return row.observations(min(row.sizes), next(name for name in SHORTEST if name in row.statistics))


@dataclass(frozen=True)
class _MisplacedHost:
    """A host that is not where the topology says."""

    host: int
    nats: float
    classes: _Classes
    gains: _Gains
    switch: Codes  # (hosts,) as declared, but for the hosts that were found elsewhere


def verify(observations: Observations, placement: Placement, settings: Settings) -> list[Finding]:
    """Hosts that are not connected where the topology says.

    Parameters
    ----------
    observations
        Round trips of the smallest message; the `min` statistic shows the path best.
    placement
        With the declared switches.
    settings
        `alpha` is the chance of one false FAULT, `min_partners` the fewest partners on a switch.
    """
    if len(placement.switches) < 2:
        return []
    pairs = HostPairs.of(*_near_and_sampled(observations, placement), placement)
    switch = _of_hosts(placement, placement.switch)
    group = _of_hosts(placement, placement.group)
    findings = []
    while misplaced_hosts := _misplaced(pairs, switch, group, settings):
        for misplaced in misplaced_hosts:
            everywhere = HostPairs.of(*_of_host(observations, placement, misplaced.host), placement)
            findings.append(_finding(misplaced, everywhere, placement, settings))
        switch = switch.copy()
        switch[
            [misplaced.host for misplaced in misplaced_hosts]
        ] = -1  # what they measured says nothing about their former neighbours
    return sorted(findings, key=lambda finding: finding.name)


# ------------------------------------------------------------------------------------------------ what was measured


def _near_and_sampled(observations: Observations, placement: Placement) -> tuple[Codes, Codes, Floats | Values]:
    """Sender, receiver and seconds of all pairs on a switch, and of as many others as are needed."""
    sent, n = np.asarray(observations.sent), len(placement.host)
    if observations.partner is not None:
        src, column = np.nonzero(np.asarray(observations.partner) >= 0)
        return src, np.asarray(observations.partner)[src, column].astype(np.int64), sent[src, column]
    columns = np.random.default_rng(n).permutation(n)[:FAR_COLUMNS]
    src, dst = (index.ravel() for index in np.meshgrid(np.arange(n), columns, indexing="ij"))
    far = placement.switch[src] != placement.switch[dst]
    blocks = [(src[far], dst[far])]
    for members in _members(placement.switch, len(placement.switches)):
        blocks.append((np.repeat(members, members.size), np.tile(members, members.size)))
    src, dst = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return src, dst, sent[src, dst]


def _of_host(observations: Observations, placement: Placement, host: int) -> tuple[Codes, Codes, Floats | Values]:
    """All that its ranks sent and received."""
    ranks = np.flatnonzero(placement.host == host)
    sent, received = np.asarray(observations.sent)[ranks], np.asarray(observations.received[ranks])
    if observations.partner is None:
        other = np.broadcast_to(np.arange(sent.shape[1]), sent.shape)
    else:
        other = np.asarray(observations.partner, dtype=np.int64)[ranks]
    rank = np.broadcast_to(ranks[:, None], sent.shape)
    use = other >= 0
    rank, other = rank[use], other[use]
    return (
        np.concatenate([rank, rank]),
        np.concatenate([other, other]),
        np.concatenate([sent[use], received[use]]),
    )


def _members(code: Codes, count: int) -> Iterator[Codes]:
    """The hosts of each group."""
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(count + 1))
    for first, last in pairwise(bounds):
        yield order[first:last]


def _of_hosts(placement: Placement, code: Codes) -> Codes:
    """(hosts,) the switch or group of each host, -1 where the topology does not say, or its ranks are on several."""
    first = np.full(len(placement.hosts), -1, dtype=np.int64)
    first[placement.host[::-1]] = code[::-1]
    first[placement.host[first[placement.host] != code]] = -1
    return first


# ------------------------------------------------------------------------------------------------ misplaced hosts


def _misplaced(pairs: HostPairs, switch: Codes, group: Codes, settings: Settings) -> list[_MisplacedHost]:
    """Hosts that are not with their switch, the clearest of each switch."""
    pairs = pairs.some((switch[pairs.a] >= 0) & (switch[pairs.b] >= 0))
    classes = _classes(pairs, switch, group)
    if classes is None:
        return []
    inside = _without_hosts(pairs.some(switch[pairs.a] == switch[pairs.b]), classes.host)
    time = inside.seconds
    host, _, number = inside.ends()
    partners = np.bincount(host, minlength=switch.size)
    slow = np.bincount(host, weights=time[number] > classes.middle, minlength=switch.size)
    suspect = (partners >= settings.min_partners) & (2 * slow > partners)
    # The null is what everybody else shows: in a small fabric one misplaced host is many of the pairs.
    on, off = (kind.seconds[~suspect[kind.a] & ~suspect[kind.b]] for kind in (inside, classes.off))
    if not suspect.any() or min(on.size, off.size) < FEWEST_VALUES:
        return []
    gains = _gains(on, off)
    evidence = np.bincount(host, weights=gains.of(gains.away, time)[number], minlength=switch.size)
    threshold = np.log(np.count_nonzero(switch >= 0) / settings.alpha_of("wiring"))
    misplaced: dict[int, _MisplacedHost] = {}
    for index in sorted(np.flatnonzero(suspect & (evidence > threshold)).tolist(), key=lambda one: -evidence[one]):
        others = (switch[inside.a] == switch[index]) & (inside.a != index) & (inside.b != index)
        # Were the pairs of the others on this switch slow too, it would be the switch, or the whole map.
        if int(switch[index]) not in misplaced and others.any() and np.median(time[others]) < classes.middle:
            misplaced[int(switch[index])] = _MisplacedHost(index, float(evidence[index]), classes, gains, switch)
    return list(misplaced.values())


def _without_hosts(pairs: HostPairs, host: Floats) -> HostPairs:
    """Pairs of hosts that are known, without what these hosts add."""
    time = pairs.seconds - host[pairs.a] - host[pairs.b]
    is_measured = ~np.isnan(time)
    return HostPairs(pairs.a[is_measured], pairs.b[is_measured], time[is_measured])


def _classes(pairs: HostPairs, switch: Codes, group: Codes) -> _Classes | None:
    """The pairs on one switch and the nearest class off it; None where they are indistinguishable."""
    near = switch[pairs.a] == switch[pairs.b]
    local = ~near & (group[pairs.a] == group[pairs.b])
    kinds = [kind for kind in (local, ~near & ~local) if kind.sum() >= FEWEST_VALUES]
    if near.sum() < FEWEST_VALUES or not kinds:
        return None
    host = _host_seconds(pairs, kinds, switch.size)
    on, off = (_without_hosts(pairs.some(kind), host) for kind in (near, kinds[0]))
    if min(on.a.size, off.a.size) < FEWEST_VALUES:
        return None
    middles = float(np.median(on.seconds)), float(np.median(off.seconds))
    spread = max(robust_sd(on.seconds), robust_sd(off.seconds), FINEST_NOISE * middles[0])
    if middles[1] - middles[0] < CLEAR_DISTANCE * spread:
        return None
    return _Classes(*middles, host, off)


def _gains(on: Floats, off: Floats) -> _Gains:
    """From single times of both classes."""
    bins = int(np.clip(min(on.size, off.size) // FEWEST_VALUES, 2, MOST_BINS))  # few times show no fine distribution
    levels = np.linspace(0, 1, bins + 1)[1:-1]
    edges = np.unique(np.concatenate([np.quantile(part, levels) for part in (on, off)]))
    counts = [np.bincount(np.searchsorted(edges, part), minlength=edges.size + 1) + 0.5 for part in (on, off)]
    f_on, f_off = (count / count.sum() for count in counts)
    away = e_value_increments(f_on, f_off, CLUSTER_OF_PLACE)
    return _Gains(edges, away, e_value_increments(f_off, f_on, CLUSTER_OF_PLACE, rising=False))


def _host_seconds(pairs: HostPairs, kinds: list[Mask], hosts: int) -> Floats:
    """(hosts,) seconds that each host adds to its pairs off its switch; NaN with fewer than three of them."""
    excess = np.full(pairs.a.size, np.nan)
    for kind in kinds:
        excess[kind] = pairs.seconds[kind] - np.median(pairs.seconds[kind])
    far, left = pairs.some(~np.isnan(excess)), excess[~np.isnan(excess)]
    added = np.zeros(hosts)
    host, other, number = far.ends()
    for _ in range(PASSES):
        added = GroupedValues.of(left[number] - np.nan_to_num(added)[other], host, hosts).medians(FEWEST_PEERS)
    return added


# ------------------------------------------------------------------------------------------------ where it is


def _finding(misplaced: _MisplacedHost, everywhere: HostPairs, placement: Placement, settings: Settings) -> Finding:
    """`everywhere`: its pairs with all other hosts."""
    classes, home = misplaced.classes, int(misplaced.switch[misplaced.host])
    pairs = _without_hosts(everywhere, classes.host)
    time = pairs.seconds
    beside = misplaced.switch[pairs.a + pairs.b - misplaced.host]  # the switch of each partner
    place = _place(misplaced, beside, time, settings)
    declared, host = placement.switches[home], placement.hosts[misplaced.host]
    seen_s = time[beside == home]
    evidence = [
        seen.misplaced(
            declared=declared,
            slow=int((seen_s > classes.middle).sum()),
            pairs=int(seen_s.size),
            median_s=float(np.median(seen_s)),
            near_s=classes.near,
            far_s=classes.far,
        )
    ]
    if place is None:
        evidence.append(seen.place_unknown())
    else:
        there = time[beside == place]
        evidence.append(seen.placed_elsewhere(placement.switches[place], float(np.median(there))))
    return Finding(
        state=State.SUSPECT if place is None else State.FAULT,
        components=(ComponentRef.of("host", host),),
        quantity="latency",
        effect=float(np.median(seen_s) / classes.near - 1),
        log10_e=misplaced.nats / np.log(10),
        evidence=tuple(evidence),
        ambiguity_group=(
            ComponentRef.of("cable", host, declared, title="place"),
            ComponentRef.of("config", host, title="declared switch"),
        ),
        next_step=advise.check_cabling(ComponentRef.of("host", host)),
    )


def _place(misplaced: _MisplacedHost, beside: Codes, time: Floats, settings: Settings) -> int | None:
    """The switch with whose hosts it is as fast as hosts on one switch are; None where there is none."""
    gain = misplaced.gains.of(misplaced.gains.beside, time)
    best, most = None, float(np.log((beside.max(initial=0) + 1) / settings.alpha_of("wiring")))
    for switch in np.unique(beside[(beside >= 0) & (beside != misplaced.switch[misplaced.host])]):
        with_it = beside == switch
        if np.median(time[with_it]) < misplaced.classes.middle and (total := float(gain[with_it].sum())) > most:
            best, most = int(switch), total
    return best
