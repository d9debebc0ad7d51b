"""Which rows of a run say something about its parts, and who sent to whom in them.

The cells of a row belong to the rank that led or recorded; the parts are judged by who sent the payload. A row of
`get` kernels is therefore turned round, a star becomes a table of senders and receivers, and what was measured again
goes into the row that it was chosen from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.pair_matrix import Codes
from fablint.analyse.settings import Settings
from fablint.model import Observations, Placement, Row, Run
from fablint.model.grouped_values import GroupedValues
from fablint.text.names import plural

STATISTICS = ("median", "mean", "min", "p99", "max")  # the first that a row has is judged
MATCHINGS = frozenset({"pair", "pairs", "random", "rounds"})  # patterns whose rounds can be joined
STARS = frozenset({"fan-in", "fan-out", "clients-servers"})
MOST_MATRIX_RANKS = 4096  # of a matrix whose rounds are looked at
MOST_STAR_RANKS = 4096  # a star is judged as a full matrix: 64 MiB


@dataclass(frozen=True)
class Flows:
    """One size of one row, turned so that `observations.sent[i, c]` is what i sent to its partner in column c."""

    observations: Observations
    row: Row
    one_way: bool  # does it tell the direction? Only a stream does: a put or get of few bytes is a round trip
    forward: bool = False  # each pair was measured once, not once in each direction
    hubs: Codes = field(default_factory=lambda: np.empty(0, np.int64))  # of a star: ranks that all others share
    concurrent: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))  # (m,) of a list: its rounds
    rounds: Codes | None = None  # (n, n) of a matrix: the round of each pair, where these were measured at once

    started: npt.NDArray[np.float64] | None = None  # (n, m) s since the run's start; None where it is not known
    later: npt.NDArray[np.bool_] | None = None  # (n, m) cells that were measured later than the others, to confirm them
    histograms: tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]] | None = None  # (n, m, buckets), lower edges

    @property
    def star(self) -> bool:
        """Is it evidence against its leaves, and no proof that anybody is fine?"""
        return self.hubs.size > 0


@dataclass(frozen=True)
class UsableRow:
    """A row that is judged, more rounds of the same, and the rows in which some of its pairs were measured again."""

    row: Row
    retests: tuple[Row, ...] = ()
    more: tuple[Row, ...] = ()

    def flows(self, size: int, placement: Placement) -> Flows:
        """One size of the row."""
        row = self.row
        observations = _joined([one.observations(size, statistic_of(one)) for one in (row, *self.more)])
        for again in self.retests:
            if size in again.sizes:
                observations = _at_best(observations, again.observations(size, statistic_of(again)))
        one_way = _one_way(row)
        if row.pattern in STARS:
            hubs = np.unique(_partners(observations))
            return Flows(_star(observations, turned=row.payload == "dst"), row, one_way, hubs=hubs[hubs >= 0])
        forward = row.directions == "forward"
        if forward:
            observations = _known_to_both(observations)
        if row.payload == "dst":
            observations = replace(observations, sent=observations.received)
        return Flows(
            observations,
            row,
            one_way,
            forward,
            concurrent=self._concurrent(),
            rounds=_rounds_of(row),
            started=self._started(observations.sent.shape),
            later=self._later(size, observations),
            histograms=self._histograms(size),
        )

    def _concurrent(self) -> npt.NDArray[np.bool_]:
        """(m,) which columns of a list hold pairs that were measured at once."""
        if self.row.layout == "matrix":
            return np.empty(0, dtype=bool)
        rows = (self.row, *self.more)
        return np.concatenate(
            [np.full(row.arrays["dst"].shape[1], row.attributes.get("order") == "parallel") for row in rows]
        )

    def _started(self, shape: tuple[int, ...]) -> npt.NDArray[np.float64] | None:
        """(n, m) when each pair began; of repeats, when the first did. None where the run does not say."""
        rows = (self.row, *self.more)
        if not all("started" in row.arrays for row in rows) or self.row.payload == "dst":
            return None
        if self.row.layout == "list":
            found = np.concatenate([np.asarray(row.arrays["started"][:]) for row in rows], axis=1)
        elif shape[0] <= MOST_MATRIX_RANKS:
            found = np.asarray(self.row.arrays["started"][0])
        else:
            return None
        return found if found.shape == shape else None

    def _later(self, size: int, observations: Observations) -> npt.NDArray[np.bool_] | None:
        """(n, m) cells of rounds that were added, and those that were measured again; None where there are none."""
        first = self.row.arrays["dst"].shape[1] if self.row.layout == "list" else observations.sent.shape[1]
        again = [one.observations(size, statistic_of(one)) for one in self.retests if size in one.sizes]
        if first == observations.sent.shape[1] and not again:
            return None
        later = np.zeros(observations.sent.shape, dtype=bool)
        later[:, first:] = True
        for retest in again:
            partner = _partners(retest)
            for leader, column in zip(*np.nonzero((partner >= 0) & ~np.isnan(retest.sent)), strict=True):
                later[leader, _cells(observations, int(leader), int(partner[leader, column]))] = True
        return later

    def _histograms(self, size: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]] | None:
        """Counts per cell and bucket, and the buckets' lower edges in seconds; None where a row has none."""
        rows = (self.row, *self.more)
        if not all("histogram" in row.arrays for row in rows) or self.row.payload == "dst":
            return None
        index = self.row.sizes.index(size)
        if self.row.layout == "matrix":
            edges = np.asarray(self.row.arrays["bucket"][:], dtype=np.float64)
            return np.asarray(self.row.arrays["histogram"][:, :, :, index]).sum(axis=0, dtype=np.uint32), edges
        # Each row keeps the buckets that it needed.
        own = [np.asarray(row.arrays["bucket"][:], dtype=np.float64) for row in rows]
        edges = np.unique(np.concatenate(own))
        parts = []
        for row, kept in zip(rows, own, strict=True):
            counts = np.asarray(row.arrays["histogram"][:, :, index])
            wide = np.zeros((*counts.shape[:2], edges.size), dtype=np.uint32)
            wide[:, :, np.searchsorted(edges, kept)] = counts
            parts.append(wide)
        return np.concatenate(parts, axis=1), edges


def select_usable_rows(run: Run, placement: Placement, settings: Settings) -> tuple[list[UsableRow], list[str]]:
    """Rows to be judged, and notes on those that are not, nor their absence anybody's fault."""
    rows = [row for row in run.rows if _moved(run, row) and not row.of_the_whole]
    bases = {row.name for row in rows if "retest_of" not in row.attributes}
    usable: list[UsableRow] = []
    notes: list[str] = []
    for row in rows:
        base = row.attributes.get("retest_of")
        if base in bases:
            notes.append(f"row {row.name} measured pairs of {base} again: of both times the shorter counts")
        elif reason := _no_evidence(row, placement, settings):
            notes.append(f"row {row.name} is not judged: {reason}")
        else:
            if row.directions == "forward" and _one_way(row):
                notes.append(
                    f"row {row.name} measured one direction of each pair: who is slow in the other is not seen"
                )
            again = tuple(other for other in rows if other.attributes.get("retest_of") == row.name)
            alike = next((i for i, one in enumerate(usable) if _continues(row, one.row)), None)
            if alike is None:
                usable.append(UsableRow(row, again))
            else:
                usable[alike] = replace(usable[alike], more=(*usable[alike].more, row))
    return usable, notes


# What is the same in all rounds of one measurement.
SAME = ("kernel", "variant", "transport", "memory", "directions", "windows", "buffers", "win", "sync", "payload")


def _continues(row: Row, first: Row) -> bool:
    """Are these more rounds of the same measurement, as when what was undecided is measured again?"""
    lists = row.layout == first.layout == "list" and {row.pattern, first.pattern} <= MATCHINGS
    return (
        lists and row.sizes == first.sizes and all(row.attributes.get(key) == first.attributes.get(key) for key in SAME)
    )


def _joined(parts: Sequence[Observations]) -> Observations:
    """Lists of rounds side by side."""
    if len(parts) == 1:
        return parts[0]
    partner = np.concatenate([_partners(part) for part in parts], axis=1)
    return replace(parts[0], sent=np.concatenate([part.sent for part in parts], axis=1), partner=partner)


def _rounds_of(row: Row) -> Codes | None:
    """(n, n) round of each pair of a matrix whose pairs were measured at once, and once only."""
    measured_once = row.layout == "matrix" and int(row.attributes.get("repeats", 1)) == 1
    if not measured_once or row.attributes.get("order") != "parallel" or "round" not in row.arrays:
        return None
    return np.asarray(row.arrays["round"][0]) if row.arrays["round"].shape[1] <= MOST_MATRIX_RANKS else None


def statistic_of(row: Row) -> str:
    """The statistic by which a row is judged."""
    return next(name for name in STATISTICS if name in row.statistics)


def _one_way(row: Row) -> bool:
    return row.quantity == "bandwidth" and row.payload in ("src", "dst")


def _moved(run: Run, row: Row) -> bool:
    """Was anything measured, and over something? The null transport moves nothing."""
    moved = row.attributes.get("transport") != "null" or "simulated" in run.attributes
    return moved and row.attributes.get("state") != "skipped" and bool(set(row.statistics) & set(STATISTICS))


def _no_evidence(row: Row, placement: Placement, settings: Settings) -> str:
    """Why a row cannot tell which part is slow; empty when it can."""
    if "retest_of" in row.attributes:
        return f"the run has no row {row.attributes['retest_of']}, whose slowest pairs these were"
    if row.pattern == "world":
        return "in a collective all wait for all, so that its times belong to no pair"
    if row.pattern == "victim-aggressor":
        return "its pairs were slowed down on purpose, by the load of others"
    return _unlike_star(row, placement, settings) if row.pattern in STARS else ""


def _unlike_star(row: Row, placement: Placement, settings: Settings) -> str:
    """Why the hosts of a star cannot be compared with each other; empty when they can.

    Leaves are compared through several hubs, and only where all of them share their hosts' NICs with equally many.
    """
    partner = np.asarray(row.arrays["dst"][:])
    hubs, leaves = np.unique(partner[partner >= 0]), np.flatnonzero((partner >= 0).any(axis=1))
    hub_hosts, hubs_each = np.unique(placement.host[hubs], return_counts=True)
    leaf_hosts, leaves_each = np.unique(placement.host[leaves], return_counts=True)
    if hub_hosts.size < settings.min_partners:
        return (
            f"all others share {plural(hub_hosts.size, 'host')}: with fewer than {settings.min_partners},"
            " a slow one and a slow path to it look the same"
        )
    if np.intersect1d(hub_hosts, leaf_hosts).size or np.ptp(hubs_each) or np.ptp(leaves_each):
        return "its hosts have unlike numbers of clients and servers, which share their NICs"
    if placement.host.size > MOST_STAR_RANKS:
        return f"of more than {MOST_STAR_RANKS} ranks, it would not fit into memory"
    return ""


def _partners(observations: Observations) -> Codes:
    """(n, m) partners in a list of rounds, -1 where idle."""
    return np.asarray(observations.partner, dtype=np.int64)


def _known_to_both(observations: Observations) -> Observations:
    """In a list of rounds, pairs measured from one end only: the other end learns whose partner it was."""
    if observations.partner is None:
        return observations
    partner = _partners(observations)
    leader, column = np.nonzero(partner >= 0)
    led = partner[leader, column]
    silent = partner[led, column] < 0
    partner = partner.copy()
    partner[led[silent], column[silent]] = leader[silent]
    return replace(observations, partner=partner)


def _star(observations: Observations, *, turned: bool) -> Observations:
    """A star as a matrix: what each leaf sent to each hub (`turned`: the hub to the leaf), the hubs' load taken out.

    A hub that serves one leaf more than the others do is no slower for it: times of hubs with equally many leaves are
    set against their own median. Pairs that met repeatedly have the median of their times.
    """
    partner, times = _partners(observations), np.asarray(observations.sent)
    leaf, column = np.nonzero((partner >= 0) & ~np.isnan(times))
    hub, time = partner[leaf, column], times[leaf, column].astype(np.float64)
    time *= _median(time) / _median_of_alike(time, _leaves_of_hub(partner)[leaf, column])
    n = partner.shape[0]
    pair = hub * n + leaf if turned else leaf * n + hub
    pairs, of_pair = np.unique(pair, return_inverse=True)
    sent = np.full(n * n, np.nan, dtype=np.float32)
    sent[pairs] = GroupedValues.of(time, of_pair, pairs.size).lower_medians()
    return replace(observations, sent=sent.reshape(n, n), partner=None)


def _leaves_of_hub(partner: Codes) -> Codes:
    """(n, m) how many leaves share the hub of each cell in its round."""
    n, rounds = partner.shape
    key = np.maximum(partner, 0) + n * np.arange(rounds)[None, :]
    counts = np.bincount(key[partner >= 0], minlength=n * rounds)
    return np.where(partner >= 0, counts[key], 0)


def _median(values: npt.NDArray[np.float64]) -> float:
    return float(np.median(values)) if values.size else 1.0


def _median_of_alike(values: npt.NDArray[np.float64], kind: Codes) -> npt.NDArray[np.float64]:
    """For each value the median of all of its kind."""
    kinds, of_kind = np.unique(kind, return_inverse=True)
    return GroupedValues.of(values, of_kind, kinds.size).medians()[of_kind]


def _at_best(observations: Observations, again: Observations) -> Observations:
    """Pairs that were measured again have the shorter of both times.

    Those were the slowest of all, so that the second time alone would be too good to be fair, and the first too bad.
    """
    sent = np.array(observations.sent)
    partner = _partners(again)
    for leader, column in zip(*np.nonzero((partner >= 0) & ~np.isnan(again.sent)), strict=True):
        cells = _cells(observations, int(leader), int(partner[leader, column]))
        sent[leader, cells] = np.minimum(sent[leader, cells], again.sent[leader, column])  # what is missing stays so
    return replace(observations, sent=sent)


def _cells(observations: Observations, src: int, dst: int) -> Sequence[int] | Codes:
    """Columns in which `src` met `dst`."""
    return [dst] if observations.partner is None else np.flatnonzero(observations.partner[src] == dst)
