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

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fablint.analyse.candidates.components import Tally
from fablint.analyse.null_model.effects import Effects, degrees_of_freedom, leftover, sample_noise
from fablint.analyse.observations.balance import End, EndCells
from fablint.analyse.observations.message_paths import MessagePaths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.analyse.observations.robust_stats import MAD_EFFICIENCY, robust_sd
from fablint.analyse.settings import (
    CLUSTER,
    FEWEST_INDEPENDENT,
    FEWEST_POOL,
    FEWEST_VALUES,
    FINEST_NOISE,
    OWN_POOL,
    QUARTER,
    Settings,
)
from fablint.model import Placement
from fablint.model.arrays import Cells, Codes, Floats, Ints, Mask, Values
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
    noise: Values  # sorted sample of residuals
    grid: tuple[float, float]  # lower end and step of the levels
    table: Ints  # (LEVELS,) increment of each level in the noise of all classes
    total: Tally = field(init=False)  # sums of increments
    live: Tally = field(init=False)  # numbers of pairs that are not explained

    def chance_below(self, value: float) -> float:
        """Return the share of the noise below a value; it is above 0."""
        return (int(np.searchsorted(self.noise, value)) + 1.0) / (self.noise.size + 2.0)

    def increments(self, residuals: Floats) -> Floats:
        """Return the increment in nats of each residual beyond the tolerance."""
        return np.asarray(self.table[levels(residuals, self.grid)] / UNITS_PER_NAT)

    def remove(self, cells: Cells) -> None:
        """Remove these pairs, which are explained, from the evidence."""
        gain = self.gain[cells].astype(np.int64)
        for tally, gone in ((self.total, gain), (self.live, (gain != 0).astype(np.int64))):
            tally.subtract(self.tally(cells, gone))
        self.gain[cells] = 0

    def tally(self, cells: Cells, values: Ints) -> Tally:
        """Return the tally of the (k,) values of some cells."""
        to, placement = self.pairs.destination(cells), self.placement

        def add(codes: Codes, end: End, size: int = self.pairs.ranks) -> Ints:
            is_counted = (codes >= 0) & self.informative.counts(cells, end)
            return np.bincount(codes[is_counted], weights=values[is_counted], minlength=size).astype(np.int64)

        def add_inside(codes: Codes, names: Sequence[str]) -> Ints:
            start, end = codes[cells[0]], codes[to]
            return add(np.where(start == end, start, -1), "both", len(names))

        return Tally(
            sent=add(cells[0], "both"),
            received=add(to, "both"),
            own_sent=add(cells[0], "sender"),
            own_received=add(to, "receiver"),
            in_switch=add_inside(placement.switch, placement.switches),
            in_group=add_inside(placement.group, placement.groups),
            segment=self.on_segments(cells, values),
        )

    def on_segments(self, cells: Cells, values: Ints) -> Ints:
        """Return the (segments,) sum of values over the cells that cross each segment."""
        return self.message_paths.on_segments(self.pairs, cells, values, bidirectional=self.bidirectional)


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
        free = degrees_of_freedom(effects)[1]
        if free < FEWEST_INDEPENDENT or len(effects.classes.placement.hosts) == 1:
            return None  # within a host, few ranks or GPUs are connected differently by design
        scatter = _noise_of_few(scatter, free)
        classes = np.zeros(scatter.size, dtype=np.int64)
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
    evidence = Evidence(
        pairs,
        effects.classes.placement,
        effects.message_paths,
        effects.bidirectional,
        gain,
        effects.informative,
        np.sort(scatter),
        grid,
        pooled,
    )
    evidence.total, evidence.live = (_tally(effects, evidence, values) for values in (gain, gain != 0))
    return evidence


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


def _noise_of_few(scatter: Values, free: int) -> Values:
    """Return the noise that few values show: quantiles of Student's t with their robust standard deviation."""
    from scipy.special import stdtrit

    quantiles = stdtrit(MAD_EFFICIENCY * free, (np.arange(OWN_POOL) + 0.5) / OWN_POOL)
    return np.asarray(quantiles * max(robust_sd(scatter), FINEST_NOISE), dtype=np.float32)


def smallest_shift(effects: Effects, settings: Settings, tests: int) -> float:
    """Return the loss beyond the tolerance to which the evidence is tuned.

    It is the smallest loss that the pairs of a component can show. A pair with noise of standard deviation s adds about
    d^2 / (2 s^2) nats for a shift d. With m pairs per component, a shift of s sqrt(4 L / m) gathers twice the L nats of
    a detection; a smaller shift is hidden by the noise, and an increment tuned to it is useless.
    """
    needed = required_evidence(tests, settings.alpha)
    return max(settings.smallest_fault, effects.noise * float(np.sqrt(4 * needed / _pairs_of_components(effects))))


def _pairs_of_components(effects: Effects) -> float:
    """Return the number of pairs of a usual rank, or of a link with few if that is less."""
    pairs, paths = effects.residual, effects.message_paths
    of_ranks = np.count_nonzero(~np.isnan(pairs.value), axis=1)
    usual = float(np.median(of_ranks[of_ranks > 0])) if of_ranks.any() else 1.0
    if not paths.known_links or not of_ranks.any():
        return usual
    cells = pairs.sample_cells()
    crossed = paths.on_segments(pairs, cells, bidirectional=effects.bidirectional)
    of_links = crossed[: paths.known_links] * (of_ranks.sum() / cells[0].size)
    of_links = of_links[of_links >= FEWEST_VALUES]
    return min(usual, float(np.quantile(of_links, QUARTER))) if of_links.size else usual


def gain_table(pool: Values, grid: tuple[float, float], shift: float) -> Ints:
    """Return the (LEVELS,) increment of a value at each level of the grid.

    In 1/32 nat, rounded down. `pool` is the noise.
    """
    low, step = grid
    centre = low + step * (np.arange(LEVELS) + 0.5)
    count = np.bincount(levels(pool, grid), minlength=LEVELS)  # a value and its level are then in the same bin
    nearest = np.rint(np.linspace(0.02, 0.98, 49) * (pool.size - 1))
    edges = np.unique(centre[np.searchsorted(np.cumsum(count), nearest, side="right")])
    edges = edges[edges < centre[-1]]  # times in steps: the last level, of all that is slower, has a bin of its own
    bins = edges.size + 1
    f0, f1 = (np.bincount(np.searchsorted(edges, centre + s), weights=count, minlength=bins) + 0.5 for s in (0, shift))
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


def levels(values: Values | Floats, grid: tuple[float, float]) -> Ints:
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


def _tally(effects: Effects, evidence: Evidence, values: Ints | Mask) -> Tally:
    """Return the sums of (n, m) values: informative cells per end, all cells per segment."""
    pairs, placement, message_paths = effects.residual, effects.classes.placement, effects.message_paths
    if pairs.partner is not None:
        row, column = np.nonzero(values)
        cells = (row, column)
        return evidence.tally(cells, values[cells].astype(np.int64))
    both, sender, receiver = (
        values if mask is None else np.where(mask, values, 0)
        for mask in (effects.informative.both, effects.informative.sender, effects.informative.receiver)
    )
    in_switch, in_group = (np.zeros(len(names), np.int64) for names in (placement.switches, placement.groups))
    path_sums, ranks = np.zeros(len(message_paths.segments), np.int64), np.arange(pairs.ranks)
    for switch in range(len(placement.switches)):
        members = np.nonzero(placement.switch == switch)[0]
        at = message_paths.between(members[:1], ranks)
        sums = values[members].sum(axis=0, dtype=np.int64)
        end_sums = sums if both is values else both[members].sum(axis=0, dtype=np.int64)
        in_switch[switch] = end_sums[members].sum()
        group = placement.group[members[0]]
        in_group[group] += end_sums[placement.group == group].sum()
        np.add.at(path_sums, at, sums)
        if effects.bidirectional:  # measurements from the other end cross these paths as well
            np.add.at(path_sums, at, values[:, members].sum(axis=1, dtype=np.int64))
    ends = ((both, 1), (both, 0), (sender, 1), (receiver, 0))
    sent, received, own_sent, own_received = (part.sum(axis=axis, dtype=np.int64) for part, axis in ends)
    return Tally(sent, received, own_sent, own_received, in_switch, in_group, message_paths.totals(path_sums))
