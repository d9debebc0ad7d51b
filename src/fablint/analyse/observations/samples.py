"""Selection of the rows that can localise a faulty component, with senders and receivers put in order.

The cells of a row belong to the rank that led the pair or recorded the time. Components are judged by the sender of the
payload. A row of a `get` kernel is therefore reversed, a star becomes a matrix of senders and receivers, and repeated
measurements are merged into the row from which their pairs were chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fablint.analyse.observations.measurements import RepeatedCells, TimesTaken, allocations_of, repeats_of
from fablint.analyse.settings import SMALLEST_SHARED, Settings
from fablint.model import SCOPES, Note, Observations, Placement, Row, Run
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask
from fablint.model.figures.grouped_values import GroupedValues
from fablint.model.registry import moves_nothing
from fablint.text import notes as noted

MATCHINGS = frozenset({"pair", "pairs", "random", "rounds"})  # patterns whose rounds can be concatenated
GPU_COPIES = "gpu_loopback"  # kernel that copies within the host of each rank
CHOSEN_BY_RESULTS = frozenset({"follow_up", "retest"})  # purposes of rows whose pairs earlier results chose
STARS = frozenset({"fan-in", "fan-out", "clients-servers"})
MOST_MATRIX_RANKS = 4096  # of the largest matrix whose rounds are used
MOST_MEDIAN_CELLS = 4_000_000  # from which the median of a scope is taken
MOST_STAR_RANKS = 4096  # of the largest star: it is judged as a full matrix of 64 MiB


@dataclass(frozen=True)
class Flows:
    """One size of one row: `observations.sent[i, c]` is the time of the message from i to its partner in column c."""

    observations: Observations
    row: Row
    one_way: bool  # whether it shows the direction: only a stream does, a put or get of few bytes is a round trip
    forward: bool = False  # whether each pair was measured once, and not once per direction
    hubs: Codes = field(default_factory=lambda: np.empty(0, np.int64))  # ranks that all others share, in a star
    # (m,) columns of a list whose pairs were measured at once
    concurrent: Mask = field(default_factory=lambda: np.empty(0, bool))
    # (m,) columns of a list that were planned before anything was measured
    planned: Mask = field(default_factory=lambda: np.empty(0, bool))
    rounds: Codes | None = None  # (k, n, n) round of each pair of a matrix, in each repeat; None: not at once
    allocations: Codes | None = None  # (m,) allocation that measured each column of a list; None: all the same
    started: Floats | None = None  # (n, m) s since the start of the run; None: unknown
    later: Mask | None = None  # (n, m) cells of follow-up measurements
    histograms: tuple[Ints, Floats] | None = None  # (n, m, buckets), lower edges
    taken: TimesTaken | None = None  # all times; None: each cell has one, that of the observations

    @property
    def is_star(self) -> bool:
        """True if all pairs share a few hub ranks: evidence against leaves, but not for the health of a component."""
        return self.hubs.size > 0

    @property
    def takes_turns(self) -> bool:
        """True if the two directions of a pair run one after the other within a round."""
        return not self.row.is_duplex and self.row.directions != "one"

    @property
    def isolates(self) -> bool:
        """True if these are measurements that earlier results chose, one pair at a time."""
        return self.row.purpose in CHOSEN_BY_RESULTS and self.row.facts.schedule.order == "serial"

    @property
    def share_links(self) -> bool:
        """True if these are messages that fill a link, of several pairs at the same time."""
        at_once = self.concurrent.any() if self.concurrent.size else self.row.facts.schedule.order == "parallel"
        return self.observations.size >= SMALLEST_SHARED and bool(at_once)

    def alone(self, cells: Cells) -> Mask:
        """Return a (k,) mask of cells that no other pair of the row could delay."""
        if self.concurrent.size:
            return np.asarray(~self.concurrent[cells[1]])
        return np.full(cells[0].size, self.row.facts.schedule.order == "serial")


@dataclass(frozen=True)
class UsableRow:
    """A row that is judged, further rounds of the same measurement, and rows that measured some of its pairs again."""

    row: Row
    retests: tuple[Row, ...] = ()
    more: tuple[Row, ...] = ()

    def flows(self, size: int, placement: Placement) -> Flows:
        """Return one size of the row; `size` in bytes."""
        row = self.row
        first = observations = _joined([one.observations(size) for one in (row, *self.more)])
        for again in self.retests:
            if size in again.sizes:
                observations = _at_best(observations, again.observations(size), placement)
        one_way = _is_directed(row)
        if row.pattern in STARS:
            hubs = np.unique(_partners(observations))
            return Flows(_star(observations, turned=row.payload == "dst"), row, one_way, hubs=hubs[hubs >= 0])
        forward = row.directions == "single"
        if forward:
            observations = _known_to_both(observations)
        taken = self._taken(size, first)
        if row.payload == "dst":
            taken = taken and taken.turned(None if observations.partner is None else _partners(observations))
            observations = replace(observations, sent=observations.received)
        return Flows(
            observations,
            row,
            one_way,
            forward,
            concurrent=self._columns(lambda one: one.facts.schedule.order == "parallel"),
            planned=self._columns(lambda one: one.purpose not in CHOSEN_BY_RESULTS),
            rounds=_rounds_of(row),
            allocations=allocations_of((self.row, *self.more)),
            started=self._started(observations.sent.shape),
            later=self._later(size, observations),
            histograms=self._histograms(size),
            taken=taken,
        )

    def _taken(self, size: int, first: Observations) -> TimesTaken | None:
        """Return all times of the cells; None if each cell was measured once. `first`: without retests."""
        retests = [_retest(first, row, size) for row in self.retests if size in row.sizes]
        has_repeats = self.row.facts.schedule.repeats > 1 and self.row.layout == "matrix"
        if not retests and not has_repeats:
            return None
        if self.row.layout == "matrix":
            return TimesTaken(*repeats_of(self.row, size), retests)
        started = self._started(first.sent.shape)
        return TimesTaken(np.asarray(first.sent)[None], None if started is None else started[None], retests)

    def _columns(self, is_kind: Callable[[Row], bool]) -> Mask:
        """Return an (m,) mask of the columns of a list that rows of a kind measured; empty for a matrix."""
        if self.row.layout == "matrix":
            return np.empty(0, dtype=bool)
        return np.concatenate([np.full(one.arrays["dst"].shape[1], is_kind(one)) for one in (self.row, *self.more)])

    def _started(self, shape: tuple[int, ...]) -> Floats | None:
        """Return the (n, m) start of each pair (of repeats: of the first) in s; None if the run has no start times."""
        rows = (self.row, *self.more)
        if not all("started" in row.arrays for row in rows) or self.row.payload == "dst":
            return None
        if self.row.layout == "list":
            started = np.concatenate([np.asarray(row.arrays["started"][:]) for row in rows], axis=1)
        elif shape[0] <= MOST_MATRIX_RANKS:
            started = np.asarray(self.row.arrays["started"][0])
        else:
            return None
        return started if started.shape == shape else None

    def _later(self, size: int, observations: Observations) -> Mask | None:
        """Return an (n, m) mask of added rounds and of repeated measurements; None if there are none."""
        first = self.row.arrays["dst"].shape[1] if self.row.layout == "list" else observations.sent.shape[1]
        again = [each.observations(size) for each in self.retests if size in each.sizes]
        if first == observations.sent.shape[1] and not again:
            return None
        later = np.zeros(observations.sent.shape, dtype=bool)
        later[:, first:] = True
        for retest in again:
            partner = _partners(retest)
            for leader, column in zip(*np.nonzero((partner >= 0) & ~np.isnan(retest.sent)), strict=True):
                later[leader, _cells(observations, int(leader), int(partner[leader, column]))] = True
        return later

    def _histograms(self, size: int) -> tuple[Ints, Floats] | None:
        """Return counts per cell and bucket, and the lower edges of the buckets in s; None if a row has no
        histogram.
        """
        rows = (self.row, *self.more)
        if not all("histogram" in row.arrays for row in rows) or self.row.payload == "dst":
            return None
        index = self.row.sizes.index(size)
        if self.row.layout == "matrix":
            edges = np.asarray(self.row.arrays["bucket"][:], dtype=np.float64)
            return np.asarray(self.row.arrays["histogram"][:, :, :, index]).sum(axis=0, dtype=np.uint32), edges
        # A row stores only the buckets that it needed.
        buckets_of_rows = [np.asarray(row.arrays["bucket"][:], dtype=np.float64) for row in rows]
        edges = np.unique(np.concatenate(buckets_of_rows))
        counts_of_rows = []
        for row, buckets in zip(rows, buckets_of_rows, strict=True):
            counts = np.asarray(row.arrays["histogram"][:, :, index])
            widened = np.zeros((*counts.shape[:2], edges.size), dtype=np.uint32)
            widened[:, :, np.searchsorted(edges, buckets)] = counts
            counts_of_rows.append(widened)
        return np.concatenate(counts_of_rows, axis=1), edges


def select_usable_rows(run: Run, placement: Placement, settings: Settings) -> tuple[list[UsableRow], list[Note]]:
    """Return the rows that can localise a component, and a note for each row that cannot.

    Rows without messages (null transport) and rows that measure the whole network have no note.

    Parameters
    ----------
    run
        Run with all its rows.
    placement
        Hosts of the ranks.
    settings
        `min_partners` is the fewest hub hosts of a star.
    """
    rows = [row for row in run.rows if has_messages(run, row) and not row.is_of_network]
    bases = {row.name for row in rows if not row.facts.schedule.retest_of}
    usable: list[UsableRow] = []
    notes: list[Note] = []
    for row in rows:
        base = row.facts.schedule.retest_of
        if base in bases:
            notes.append(noted.row_measured_again(row.name, base))
        elif reason := _unusable_reason(row, placement, settings):
            notes.append(reason)
        else:
            if row.directions == "single" and _is_directed(row):
                notes.append(noted.row_of_one_direction(row.name))
            retests = tuple(other for other in rows if other.facts.schedule.retest_of == row.name)
            continued = next((i for i, first in enumerate(usable) if _continues(row, first.row)), None)
            if continued is None:
                usable.append(UsableRow(row, retests))
            else:
                usable[continued] = replace(usable[continued], more=(*usable[continued].more, row))
    return usable, notes


def _continues(row: Row, first: Row) -> bool:
    """Return whether `row` has further rounds of the measurement of `first`, such as follow-up measurements."""
    lists = row.layout == first.layout == "list" and {row.pattern, first.pattern} <= MATCHINGS
    return lists and row.workload == first.workload and row.medium == first.medium


def _joined(lists: Sequence[Observations]) -> Observations:
    """Return lists of rounds, concatenated."""
    if len(lists) == 1:
        return lists[0]
    partner = np.concatenate([_partners(rounds) for rounds in lists], axis=1)
    return replace(lists[0], sent=np.concatenate([rounds.sent for rounds in lists], axis=1), partner=partner)


def _rounds_of(row: Row) -> Codes | None:
    """Return the (k, n, n) round of each pair in each repeat, of a matrix whose rounds were measured at once."""
    if row.layout != "matrix" or row.facts.schedule.order != "parallel" or "round" not in row.arrays:
        return None
    return np.asarray(row.arrays["round"][:]) if row.arrays["round"].shape[1] <= MOST_MATRIX_RANKS else None


def _is_directed(row: Row) -> bool:
    """Return whether the messages of a row cross the network in one direction only."""
    return row.quantity == "bandwidth" and row.payload in ("src", "dst")


def has_messages(run: Run, row: Row) -> bool:
    """Return whether messages were measured. The null transport sends none, and neither do copies of GPUs."""
    moved = not moves_nothing(row.facts.carrier.transport) or run.facts.simulated is not None
    moved = moved and row.kernel != GPU_COPIES
    return moved and bool(row.statistic)


def _unusable_reason(row: Row, placement: Placement, settings: Settings) -> Note | None:
    """Return why a row cannot localise a component; None if it can."""
    if row.facts.schedule.retest_of:
        return noted.row_without_base(row.name, row.facts.schedule.retest_of)
    if row.pattern == "world":
        return noted.row_of_collective(row.name)
    if row.pattern == "victim-aggressor":
        return noted.row_of_victims(row.name)
    return _unusable_star_reason(row, placement, settings) if row.pattern in STARS else None


def _unusable_star_reason(row: Row, placement: Placement, settings: Settings) -> Note | None:
    """Return why the hosts of a star cannot be compared with each other; None if they can.

    Leaves are compared through several hubs. All leaves must share the NICs of their hosts with equally many ranks.
    """
    partner = np.asarray(row.arrays["dst"][:])
    hubs, leaves = np.unique(partner[partner >= 0]), np.flatnonzero((partner >= 0).any(axis=1))
    hub_hosts, hubs_each = np.unique(placement.host[hubs], return_counts=True)
    leaf_hosts, leaves_each = np.unique(placement.host[leaves], return_counts=True)
    if hub_hosts.size < settings.min_partners:
        return noted.row_of_few_hubs(row.name, hub_hosts.size, settings.min_partners)
    if np.intersect1d(hub_hosts, leaf_hosts).size or np.ptp(hubs_each) or np.ptp(leaves_each):
        return noted.row_of_unequal_shares(row.name)
    if placement.host.size > MOST_STAR_RANKS:
        return noted.row_too_large(row.name, MOST_STAR_RANKS)
    return None


def _partners(observations: Observations) -> Codes:
    """Return the (n, m) partners in a list of rounds, -1 where idle."""
    return np.asarray(observations.partner, dtype=np.int64)


def _known_to_both(observations: Observations) -> Observations:
    """Return a list of rounds in which each pair is entered at both ends, for pairs that were measured from one end."""
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
    """Return a star as a matrix of the messages from each leaf to each hub, without the load of the hubs.

    A hub that serves one leaf more than the other hubs is not slower for it: times of hubs with equally many leaves are
    scaled to the same median. Pairs that were measured repeatedly have the median of their times.

    Parameters
    ----------
    observations
        Lists of rounds in which leaves have hubs as partners.
    turned
        Whether the hubs send to the leaves.
    """
    partner, times = _partners(observations), np.asarray(observations.sent)
    leaf, column = np.nonzero((partner >= 0) & ~np.isnan(times))
    hub, time = partner[leaf, column], times[leaf, column].astype(np.float64)
    time *= _median(time) / _median_of_kind(time, _leaves_of_hub(partner)[leaf, column])
    n = partner.shape[0]
    pair = hub * n + leaf if turned else leaf * n + hub
    pairs, of_pair = np.unique(pair, return_inverse=True)
    sent = np.full(n * n, np.nan, dtype=np.float32)
    sent[pairs] = GroupedValues.of(time, of_pair, pairs.size).lower_medians()
    return replace(observations, sent=sent.reshape(n, n), partner=None)


def _leaves_of_hub(partner: Codes) -> Codes:
    """Return the (n, m) number of leaves that share the hub of each cell in its round."""
    n, rounds = partner.shape
    key = np.maximum(partner, 0) + n * np.arange(rounds)[None, :]
    counts = np.bincount(key[partner >= 0], minlength=n * rounds)
    return np.where(partner >= 0, counts[key], 0)


def _median(values: Floats) -> float:
    return float(np.median(values)) if values.size else 1.0


def _median_of_kind(values: Floats, kind: Codes) -> Floats:
    """Return for each value the median of all values of its kind."""
    kinds, of_kind = np.unique(kind, return_inverse=True)
    return GroupedValues.of(values, of_kind, kinds.size).medians()[of_kind]


def _at_best(observations: Observations, repeated: Observations, placement: Placement) -> Observations:
    """Return the observations with the shorter of both times for pairs that were measured again.

    These pairs were the slowest of all: their second time alone would be too short, and their first time alone too
    long. A pair that is measured again alone has the network for itself: at best it is as fast as the median of the
    pairs at its distance, and not faster, so that its hosts do not seem to be faster than others.
    """
    sent = np.array(observations.sent)
    partner = _partners(repeated)
    usual = _medians_by_scope(observations, placement)
    leaders, columns = np.nonzero((partner >= 0) & ~np.isnan(repeated.sent))
    others = partner[leaders, columns]
    best = np.maximum(np.asarray(repeated.sent)[leaders, columns], usual[placement.scopes(leaders, others)])
    for leader, other, time in zip(leaders.tolist(), others.tolist(), best.tolist(), strict=True):
        cells = _cells(observations, leader, other)
        sent[leader, cells] = np.minimum(sent[leader, cells], time)  # NaN stays NaN
    return replace(observations, sent=sent)


def _retest(observations: Observations, row: Row, size: int) -> RepeatedCells:
    """Return the cells that a row measured again, with their times."""
    repeated = row.observations(size)
    partner = _partners(repeated)
    leader, column = np.nonzero((partner >= 0) & ~np.isnan(repeated.sent))
    started = np.asarray(row.arrays["started"][:]) if "started" in row.arrays else np.full(partner.shape, np.nan)
    cells: list[tuple[int, int]] = []
    numbers: list[int] = []
    for number, (src, at) in enumerate(zip(leader.tolist(), column.tolist(), strict=True)):
        columns = np.asarray(_cells(observations, src, int(partner[src, at])))[:1]  # one measurement, of one cell
        cells += [(src, int(column)) for column in columns]
        numbers += [number] * columns.size
    rows, columns_of = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    chosen: Cells = (leader[numbers], column[numbers])
    return RepeatedCells((rows, columns_of), np.asarray(repeated.sent)[chosen].astype(np.float64), started[chosen])


def _medians_by_scope(observations: Observations, placement: Placement) -> Floats:
    """Return the (scopes,) median time of the pairs of each scope, 0 for a scope without pairs.

    Of a large matrix, senders at equal distances stand for all.
    """
    step = -(-observations.sent.size // MOST_MEDIAN_CELLS)
    line, column = np.nonzero(~np.isnan(observations.sent[::step]))
    src = line * step
    dst = column if observations.partner is None else _partners(observations)[src, column]
    times = np.asarray(observations.sent)[src, column].astype(np.float64)
    return np.nan_to_num(GroupedValues.of(times, placement.scopes(src, dst), len(SCOPES)).medians())


def _cells(observations: Observations, src: int, dst: int) -> Sequence[int] | Codes:
    """Return the columns in which `src` sent to `dst`."""
    return [dst] if observations.partner is None else np.flatnonzero(observations.partner[src] == dst)
