"""Evidence of each measured pair for a slow component: a bounded e-value increment against the fabric's own noise.

The noise is the pool of the residuals, per scope. f0 is the share of the pool in each of 50 bins, f1 the share after
shifting the pool by the smallest fault that is reported. The e-value increment of a pair is log(f1 / f0), made monotone
(slower is never better), clipped, and normalised to E0[exp(increment)] = 1, so that the product over pairs of a
component is an e-value: for a healthy component it exceeds c with probability at most 1 / c (Ville; Wang and Ramdas
2022). No distribution is assumed, and no single pair is enough for a detection.

The pool is that of the first stage of a run: follow-up measurements change no increment, so that the product of a
component is a test martingale over the stages, and the bound holds for the largest of all diagnoses.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fablint.analyse.candidates.components import Tally
from fablint.analyse.null_model.effects import Effects, leftover, sample_noise
from fablint.analyse.observations.balance import EndCells
from fablint.analyse.observations.message_paths import MessagePaths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.settings import CLUSTER, FEWEST_POOL, FINEST_NOISE, OWN_POOL, Settings
from fablint.model import Placement
from fablint.model.arrays import Cells, Floats, Ints, Mask, Values
from fablint.model.limits.detection_limits import required_evidence

UNITS_PER_NAT = 32  # increments are whole numbers of 1/32 nat: they fit a byte and their sums are exact
LEVELS = 256


@dataclass
class Evidence:
    """Increments of all pairs in 1/32 nat, and their sums. 0: not measured, or explained by a detection."""

    pairs: Pairs
    placement: Placement
    message_paths: MessagePaths
    bidirectional: bool
    gain: Ints  # (n, m)
    informative: EndCells  # cells that count for senders, receivers and switches
    total: Tally  # sums of increments
    live: Tally  # numbers of pairs that are not explained
    noise: Values = field(default_factory=lambda: np.zeros(0, np.float32))  # sorted sample of residuals

    def chance_below(self, value: float) -> float:
        """Return the share of the noise below a value; it is above 0."""
        return (int(np.searchsorted(self.noise, value)) + 1.0) / (self.noise.size + 2.0)

    def remove(self, cells: Cells) -> None:
        """Remove these pairs, which are explained, from the evidence."""
        gain = self.gain[cells].astype(np.int64)
        for tally, gone in ((self.total, gain), (self.live, (gain != 0).astype(np.int64))):
            self._subtract(tally, cells, gone)
        self.gain[cells] = 0

    def _subtract(self, tally: Tally, cells: Cells, gone: Ints) -> None:
        """Subtract values of cells from a tally."""
        tally.segment[:] -= self.on_segments(cells, gone)
        to = self.pairs.destination(cells)
        np.subtract.at(tally.own_sent, cells[0], np.where(self.informative.counts(cells, "sender"), gone, 0))
        np.subtract.at(tally.own_received, to, np.where(self.informative.counts(cells, "receiver"), gone, 0))
        gone = np.where(self.informative.counts(cells, "both"), gone, 0)
        np.subtract.at(tally.sent, cells[0], gone)
        np.subtract.at(tally.received, to, gone)
        if self.placement.switches:
            a, b = self.placement.switch[cells[0]], self.placement.switch[to]
            known = (a >= 0) & (b >= 0)
            np.subtract.at(tally.between, (a[known], b[known]), gone[known])

    def on_segments(self, cells: Cells, values: Ints) -> Ints:
        """Return the (segments,) sum of values over the cells that cross each segment."""
        totals = np.zeros(self.message_paths.count, dtype=np.int64)
        if not self.message_paths.count:
            return totals
        to = self.pairs.destination(cells)
        paths_of_cells = [self.message_paths.between(cells[0], to)] + (
            [self.message_paths.between(to, cells[0])] if self.bidirectional else []
        )
        for path in paths_of_cells:
            for segment in self.message_paths.segments[path].T:
                is_crossed = segment >= 0
                totals += np.bincount(
                    segment[is_crossed], weights=values[is_crossed], minlength=self.message_paths.count
                ).astype(np.int64)
        return totals


def gather_evidence(effects: Effects, settings: Settings, *, tests: int, later: Mask | None = None) -> Evidence | None:
    """Return the increments of all pairs; None if too little was measured to know the noise.

    Parameters
    ----------
    effects
        Fitted model of the view.
    settings
        Tolerance and error probability.
    tests
        Number of components that may be detected: the evidence for a detection grows with it.
    later
        (n, m) cells of follow-up measurements; None if there are none.
    """
    scatter, classes = _pool(effects, later)
    if scatter.size < FEWEST_POOL:
        return None
    grid = _grid(scatter)
    shift = smallest_shift(effects, settings, tests)
    pooled = gain_table(scatter, grid, shift)
    tables = np.tile(pooled, (effects.classes.count, 1))
    for code in np.unique(classes):
        values_of_class = scatter[classes == code]
        if values_of_class.size >= OWN_POOL:
            tables[code] = gain_table(values_of_class, grid, shift)

    pairs = effects.residual
    gain = np.zeros(pairs.value.shape, dtype=np.int8)
    for rows in pairs.blocks():
        residuals = leftover(effects, rows, cap=True)
        increments = tables[effects.classes.of_rows(pairs, rows), levels(residuals, grid)]
        increments[np.isnan(residuals)] = 0
        gain[rows] = increments
    placement, message_paths = effects.classes.placement, effects.message_paths
    total, live = (_tally(effects, values) for values in (gain, gain != 0))
    return Evidence(
        pairs, placement, message_paths, effects.bidirectional, gain, effects.informative, total, live, np.sort(scatter)
    )


def _pool(effects: Effects, later: Mask | None) -> tuple[Values, Ints]:
    """Return the noise of the first stage and the class of each value.

    A class that only later stages measured has the values of all stages.
    """
    scatter, classes, cells = sample_noise(effects)
    if later is None:
        return scatter, classes
    first = ~later[cells]
    measured = np.bincount(classes[first], minlength=effects.classes.count)
    kept = first | (measured[classes] < FEWEST_POOL)
    return scatter[kept], classes[kept]


def smallest_shift(effects: Effects, settings: Settings, tests: int) -> float:
    """Return the loss beyond the tolerance to which the evidence is tuned.

    It is the smallest loss that the pairs of a host can show. A pair with noise of standard deviation s adds about d^2
    / (2 s^2) nats for a shift d. With m pairs per host, a shift of s sqrt(4 L / m) gathers twice the L nats of a
    detection; a smaller shift is hidden by the noise, and an increment tuned to it is useless.
    """
    pairs_of_ranks = np.count_nonzero(~np.isnan(effects.residual.value), axis=1)
    pairs = float(np.median(pairs_of_ranks[pairs_of_ranks > 0])) if pairs_of_ranks.any() else 1.0
    needed = required_evidence(tests, settings.alpha)
    return max(settings.smallest_fault, effects.noise * float(np.sqrt(4 * needed / pairs)))


def gain_table(pool: Values, grid: tuple[float, float], shift: float) -> Ints:
    """Return the (LEVELS,) increment of a value at each level of the grid.

    In 1/32 nat, rounded down. `pool` is the noise.
    """
    low, step = grid
    centre = low + step * (np.arange(LEVELS) + 0.5)
    level = levels(pool, grid)
    pool = centre[level]  # a value and its level are then in the same bin
    edges = np.unique(np.quantile(pool, np.linspace(0.02, 0.98, 49), method="nearest"))
    edges = edges[edges < centre[-1]]  # times in steps: the last level, of all that is slower, has a bin of its own
    bins = edges.size + 1
    f0 = np.bincount(np.searchsorted(edges, pool), minlength=bins) + 0.5
    f1 = np.bincount(np.searchsorted(edges, pool + shift), minlength=bins) + 0.5
    table = e_value_increments(f0, f1, CLUSTER, pool=f0 - 0.5)[np.searchsorted(edges, centre)]
    units = np.minimum(np.floor(table * UNITS_PER_NAT), np.iinfo(np.int8).max)
    return np.where(units == 0, -1, units).astype(np.int8)  # 0 is reserved for "not measured or explained"


def e_value_increments(
    null: Floats | Values,
    other: Floats | Values,
    largest: float,
    *,
    rising: bool = True,
    pool: Floats | Values | None = None,
) -> Floats:
    """(bins,) log-likelihood ratio of `other` against `null`, in nats.

    Parameters
    ----------
    null, other
        (bins,) frequency of each bin under the two hypotheses, none of them 0.
    largest
        Ratios are clipped at plus and minus so many nats, before normalisation.
    rising
        Whether the ratio may only rise from bin to bin; otherwise it may only fall.
    pool
        (bins,) frequencies under which the exponential of the ratio has mean 1; None: `null`.
    """
    from scipy.optimize import isotonic_regression

    raw = np.clip(np.log(other / null), -largest, largest)
    monotone = isotonic_regression(raw, weights=null, increasing=rising).x
    return np.asarray(monotone - np.log(np.average(np.exp(monotone), weights=null if pool is None else pool)))


def levels(values: Values, grid: tuple[float, float]) -> Ints:
    """Return the position of each value on the grid; arbitrary for NaN."""
    low, step = np.float32(grid[0]), np.float32(grid[1])
    with np.errstate(invalid="ignore"):
        level: Ints = np.clip(np.nan_to_num((values - low) / step), 0, LEVELS - 1).astype(np.uint8)
    return level


def _grid(pool: Values) -> tuple[float, float]:
    """Return lower end and step of the levels: they span the pool without its outermost hundredths."""
    low, high = np.quantile(pool, (0.01, 0.99))
    step = max(float(high - low), FINEST_NOISE) / (LEVELS - 2)
    return float(low) - step, step


def _tally(effects: Effects, values: Ints | Mask) -> Tally:
    """Return the sums of (n, m) values: informative cells per end, all cells per segment."""
    pairs, placement, message_paths = effects.residual, effects.classes.placement, effects.message_paths
    end_values = _counted(values, effects.informative.both)
    size = max(1, len(placement.switches))
    sent, received = _per_sender(pairs, end_values), _per_receiver(pairs, end_values)
    own_sent, own_received = sent, received
    if effects.informative.both is not None:
        own_sent = _per_sender(pairs, _counted(values, effects.informative.sender))
        own_received = _per_receiver(pairs, _counted(values, effects.informative.receiver))
    of_ends = (sent, received, own_sent.copy(), own_received.copy())
    between = np.zeros((size, size), np.int64)
    if not placement.switches:
        return Tally(*of_ends, between, np.zeros(0, np.int64))
    path_sums = np.zeros(message_paths.segments.shape[0], np.int64)
    if pairs.partner is None:
        _add_matrix(effects, values, end_values, between, path_sums)
    else:
        _add_list(effects, values, end_values, between, path_sums)
    return Tally(*of_ends, between, message_paths.totals(path_sums))


def _counted(values: Ints | Mask, mask: Mask | None) -> Ints | Mask:
    """Return the (n, m) values of cells in the mask, 0 elsewhere; None: all."""
    return values if mask is None else np.where(mask, values, 0)


def _per_sender(pairs: Pairs, values: Ints | Mask) -> Ints:
    """Return the (n,) sums of (n, m) values over the cells of each sender."""
    return np.asarray(values.sum(axis=1, dtype=np.int64))


def _per_receiver(pairs: Pairs, values: Ints | Mask) -> Ints:
    """Return the (n,) sums of (n, m) values over the cells of each receiver."""
    if pairs.partner is None:
        return np.asarray(values.sum(axis=0, dtype=np.int64))
    received = np.zeros(pairs.ranks, np.int64)
    for rows in pairs.blocks():
        partners = pairs.partners(rows).ravel()
        received += np.bincount(partners, weights=values[rows].ravel(), minlength=pairs.ranks).astype(np.int64)
    return received


def _add_matrix(effects: Effects, values: Ints | Mask, end_values: Ints | Mask, between: Ints, path_sums: Ints) -> None:
    """Add a matrix per pair of switches and per path, switch by switch."""
    placement, all_ranks = effects.classes.placement, np.arange(effects.residual.ranks)
    known = placement.switch >= 0
    for switch in range(len(placement.switches)):
        members = np.nonzero(placement.switch == switch)[0]
        at = effects.message_paths.between(members[:1], all_ranks)
        sums = values[members].sum(axis=0, dtype=np.int64)
        end_sums = sums if end_values is values else end_values[members].sum(axis=0, dtype=np.int64)
        between[switch] = np.bincount(placement.switch[known], weights=end_sums[known], minlength=between.shape[0])
        np.add.at(path_sums, at, sums)
        if effects.bidirectional:  # measurements from the other end cross these paths as well
            np.add.at(path_sums, at, values[:, members].sum(axis=1, dtype=np.int64))


def _add_list(effects: Effects, values: Ints | Mask, end_values: Ints | Mask, between: Ints, path_sums: Ints) -> None:
    """Add a list of rounds per pair of switches and per path."""
    placement, pairs, message_paths = effects.classes.placement, effects.residual, effects.message_paths
    row, column = np.nonzero(values)
    to = pairs.destination((row, column))
    a, b = placement.switch[row].astype(np.int64), placement.switch[to]
    known, size = (a >= 0) & (b >= 0), between.shape[0]
    weight = end_values[row, column].astype(np.float64)
    totals = np.bincount(a[known] * size + b[known], weights=weight[known], minlength=size * size)
    between += totals.reshape(size, size).astype(np.int64)
    weight = values[row, column].astype(np.float64)
    paths_of_cells = [message_paths.of_cells(pairs, (row, column))] + (
        [message_paths.between(to, row)] if effects.bidirectional else []
    )
    for at in paths_of_cells:
        path_sums += np.bincount(at, weights=weight, minlength=path_sums.size).astype(np.int64)
