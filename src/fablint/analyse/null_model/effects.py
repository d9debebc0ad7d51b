"""The fitted model: effects of classes, senders, receivers and segments, and the residuals.

The model is fitted by `median_polish`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fablint.analyse.null_model.comparison_groups import Classes
from fablint.analyse.null_model.host_populations import Populations
from fablint.analyse.observations.balance import EndCells, HostPairNumbers
from fablint.analyse.observations.message_paths import MessagePaths
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.model.arrays import Cells, Codes, Floats, Ints, Values


@dataclass(frozen=True)
class Effects:
    """The fitted model. Arrays named `*_bounds` hold lower 95 % bound, median and upper bound in their first axis."""

    class_log_time: dict[int, float]  # by class code
    residual: Pairs  # log times less their class; NaN where missing or not judged
    classes: Classes
    message_paths: MessagePaths
    bidirectional: bool  # whether the messages of a cell cross the path back as well
    host_pairs: HostPairNumbers | None
    informative: EndCells  # cells that show how fast their ends are
    sent_bounds: Floats  # (3, n)
    received_bounds: Floats  # (3, n)
    # (segments + 1,) log-effect; 0 where too few pairs cross it, and in the last, which index -1 selects
    segment: Values
    segment_upper: Values  # (segments,) upper 95 % bound of the log-effect, NaN where too few pairs cross it
    noise: float  # robust standard deviation of the residuals
    host_tolerance: float  # log-effect that a healthy host may have
    link_tolerance: float
    populations: tuple[Populations | None, Populations | None] = (None, None)  # of senders, of receivers
    # (n, m) log-effect of the time of measurement, subtracted from the residuals; None: no effect
    drift: Values | None = None
    step: float = 0.0  # resolution of the log times: smaller effects are not visible

    @property
    def sent(self) -> Values:
        """(n,) log-effect of each rank as sender, 0 where unknown."""
        return _known(self.sent_bounds[1])

    @property
    def received(self) -> Values:
        """(n,) log-effect of each rank as receiver, 0 where unknown."""
        return _known(self.received_bounds[1])

    def usual(self, cells: Cells) -> Floats:
        """Return the (k,) log time of healthy pairs like these cells: their class and the kinds of their NICs."""
        log_time = np.full(self.classes.count, np.nan)
        log_time[list(self.class_log_time)] = list(self.class_log_time.values())
        usual: Floats = log_time[self.classes.of_cells(self.residual, cells)]
        nics = self.classes.nic_offsets
        return usual if nics is None else usual + nics.of_cells(self.residual, cells)

    def pairs_of_ends(self) -> Ints:
        """Return the (2, n) number of measured pairs that show each rank as sender, and as receiver."""
        pairs, shows_ends = self.residual, self.informative.both
        measured = ~np.isnan(pairs.value)
        if shows_ends is not None:
            measured &= shows_ends
        if pairs.partner is None:
            received = np.count_nonzero(measured, axis=0)
        else:
            received = np.bincount(pairs.partner[measured], minlength=pairs.ranks)
        return np.stack([np.count_nonzero(measured, axis=1), received])

    def path_effect(self, most: float = np.inf) -> Values:
        """Return the (W,) log-effect of each path: that of its slowest segment, limited to `most`."""
        of_segment = np.append(np.clip(self.segment[:-1], -most, most), np.float32(-np.inf))
        effect = np.full(self.message_paths.segments.shape[0], -np.inf, dtype=np.float32)
        for hop in self.message_paths.segments.T:  # several times as fast as max() over a short axis
            np.maximum(effect, of_segment[hop], out=effect)
        return np.where(np.isfinite(effect), effect, np.float32(0))


def _known(effect: Floats) -> Values:
    """Return the effects with 0 instead of NaN."""
    return np.where(np.isnan(effect), 0.0, effect).astype(np.float32)


def leftover(effects: Effects, rows: slice | Codes, *, cap: bool = False) -> Values:
    """Return the (rows, m) residuals of the model.

    With `cap`, effects of components are limited to the tolerance: the residual of a healthy pair is noise, that of a
    faulty pair its loss beyond the tolerance.
    """
    pairs = effects.residual
    host, link = (effects.host_tolerance, effects.link_tolerance) if cap else (np.inf, np.inf)
    left = pairs.value[rows] - np.clip(effects.sent, -host, host)[np.arange(pairs.ranks)[rows], None]
    left -= np.clip(effects.received, -host, host)[pairs.partners(rows)]
    if effects.message_paths.count:
        left -= effects.path_effect(link)[effects.message_paths.of_rows(pairs, rows)]
    return left


def leftover_of(effects: Effects, cells: Cells) -> Values:
    """Return the (k,) residuals of these cells from the model."""
    left = effects.residual.value[cells] - effects_of_cells(effects, cells).sum(axis=0)
    return np.asarray(left, dtype=np.float32)


def effects_of_cells(effects: Effects, cells: Cells, *, cap: bool = False) -> Values:
    """Return the (3, k) effects of sender, receiver and path of these cells; `cap` as for `leftover`."""
    pairs, paths = effects.residual, effects.message_paths
    host, link = (effects.host_tolerance, effects.link_tolerance) if cap else (np.inf, np.inf)
    of_ends = zip((effects.sent, effects.received), (cells[0], pairs.destination(cells)), strict=True)
    of_path = effects.path_effect(link)[paths.of_cells(pairs, cells)] if paths.count else np.zeros(cells[0].size)
    return np.stack([*(np.clip(effect, -host, host)[end] for effect, end in of_ends), of_path.astype(np.float32)])


def sample_noise(effects: Effects) -> tuple[Values, Ints, Cells]:
    """Return a sample of residuals, the class of each value, and the cells.

    The fit of k parameters to n values makes residuals too small by sqrt(1 - k / n); this is corrected.
    """
    pairs = effects.residual
    cells = pairs.sample_cells()
    residuals = leftover_of(effects, cells)
    measured, free = degrees_of_freedom(effects)
    correction = np.sqrt(measured / max(free, measured / 16, 1))
    return residuals * np.float32(correction), effects.classes.of_cells(pairs, cells), cells


def degrees_of_freedom(effects: Effects) -> tuple[int, int]:
    """Return the number of measured pairs, and that number less the fitted effects of ends and segments."""
    measured = int(np.count_nonzero(~np.isnan(effects.residual.value)))
    ends = (effects.sent_bounds, effects.received_bounds)
    parameters = sum(int(np.count_nonzero(~np.isnan(bounds[1]))) for bounds in ends)
    return measured, measured - parameters - int(np.count_nonzero(effects.segment))
