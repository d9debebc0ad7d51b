"""What no component explains: slow pairs that gather at a host or between two switches, or that form a second mode.

A run passes only where the model fits. Pairs of hosts that are slower than the others although nothing that they
cross is: more of them at one host, or between two switches, than chance puts there (a host that is slow now and then,
a cable that some of the pairs cross), or more of them in all than the tail of the noise holds (a second mode).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.binomial import upper_tail
from fablint.analyse.data.pair_matrix import Cells, Codes, unordered
from fablint.analyse.data.robust_stats import robust_sd
from fablint.analyse.detect.evidence import Evidence
from fablint.analyse.fit.effects import Effects, leftover_of
from fablint.analyse.fit.modes import DISTANCE, MEMBER
from fablint.analyse.settings import Settings

HALF = 0.5  # of the measurements of a slow pair are slow
RATE = 0.01  # false strata per run, by the procedure of Benjamini and Hochberg
LEAST_SHARE = 0.1  # of the pairs of a host or of two switches that are slow, from which that is reported
FEWEST = 4  # pairs of a host or of two switches
FEWEST_OF_MODE = 10  # pairs of hosts that are a second mode: the tail of any noise holds a few that agree
EMPTY = 0.5  # of the density of a second mode, up to which the values between it and the noise are a gap
FAR = 5.0  # robust standard deviations of the noise beyond which a pair is slow

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Stratum:
    """Pairs of hosts that something has in common, more of which are slow than by chance."""

    host: int  # code of the host, -1: of two switches or of all
    switches: tuple[int, int] | None  # codes of two switches, None: of a host or of all
    pairs: int  # pairs of hosts measured
    slow: int  # of these
    loss: float  # median log-effect of the slow ones
    cells: Cells  # the slow measurements


@dataclass(frozen=True)
class _Units:
    """Pairs of hosts: the unit of evidence, since the measurements of one pair share what its start drew."""

    a: Codes  # (u,) codes of the hosts
    b: Codes
    slow: Mask  # are at least half of its measurements slow?


def unexplained(
    evidence: Evidence, effects: Effects, settings: Settings, known: Sequence[tuple[int, int]] = ()
) -> list[Stratum]:
    """Strata with too many slow pairs, the most unlikely first; last the second mode of all pairs, if there is one.

    `known`: pairs of ranks that are reported by themselves.
    """
    cells = effects.residual.sample_cells()
    live = evidence.gain[cells] != 0
    if known:
        ranks, to = evidence.pairs.ranks, evidence.pairs.destination(cells)
        pair = unordered(cells[0], to, ranks)
        live &= ~np.isin(pair, [min(one) * ranks + max(one) for one in known])
    cells = (cells[0][live], cells[1][live])
    left = leftover_of(effects, cells)
    if left.size < FEWEST:
        return []
    limit = max(settings.tolerance, effects.host_tolerance, FAR * robust_sd(left))
    slow = left > limit
    found: list[Stratum] = []
    open_cells = np.ones(slow.size, dtype=bool)
    while (stratum := _worst(evidence, cells, slow, open_cells, left)) is not None:
        found.append(stratum[0])
        open_cells &= ~stratum[1]
    if evidence.placement.switches and (evidence.placement.switch < 0).any():
        return found  # what hosts without a switch share with others is not known
    of_slow_pairs = open_cells & slow & _in_slow_pairs(evidence, cells, slow)
    mode = _second_mode(left[open_cells], left[of_slow_pairs], limit)
    if mode is not None:
        stratum_of_all = _stratum(-1, None, cells, of_slow_pairs & (left > mode), open_cells, evidence, left)
        if stratum_of_all.slow >= FEWEST_OF_MODE:
            found.append(stratum_of_all)
    return found


def _in_slow_pairs(evidence: Evidence, cells: Cells, slow: Mask) -> Mask:
    """(k,) measurements of pairs of hosts of which at least half were slow: being slow once is noise."""
    a, b = (
        evidence.placement.host[cells[0]].astype(np.int64),
        evidence.placement.host[evidence.pairs.destination(cells)],
    )
    pair = unordered(a, b, len(evidence.placement.hosts))
    inverse = np.unique(pair, return_inverse=True)[1]
    share = np.bincount(inverse, weights=slow) / np.bincount(inverse)
    return np.asarray(share[inverse] >= HALF)


def _worst(
    evidence: Evidence, cells: Cells, slow: Mask, open_cells: Mask, left: npt.NDArray[np.float32]
) -> tuple[Stratum, Mask] | None:
    """The host or pair of switches whose slow pairs are least likely by chance, and which cells are its own."""
    placement, to = evidence.placement, evidence.pairs.destination(cells)
    units = _units(placement.host[cells[0]][open_cells], placement.host[to][open_cells], slow[open_cells])
    if units is None or not units.slow.any():
        return None
    hosts = len(placement.hosts)
    strata = [np.concatenate([units.a, units.b])]
    flags = np.tile(units.slow, 2)
    measured = np.bincount(strata[0], minlength=hosts)
    late = np.bincount(strata[0][flags], minlength=hosts)
    host_switch = np.full(hosts, -1, dtype=np.int64)
    host_switch[placement.host] = placement.switch
    x, y = host_switch[units.a], host_switch[units.b]
    size = max(1, len(placement.switches))
    # Where hosts without a switch take part, what the pairs of two switches shared with them is not known.
    across = (x >= 0) & (y >= 0) & (x != y) & bool((host_switch >= 0).all())
    key = unordered(x, y, size)
    between, place = np.unique(key[across], return_inverse=True)
    measured = np.concatenate([measured, np.bincount(place, minlength=between.size)])
    late = np.concatenate([late, np.bincount(place[units.slow[across]], minlength=between.size)])
    every, all_late = units.slow.size, int(units.slow.sum())
    elsewhere = (all_late - late + 1.0) / (every - measured + 2.0)
    p = upper_tail(late, measured, np.minimum(elsewhere, 1.0))
    p[(late < FEWEST) | (late < LEAST_SHARE * measured)] = 1.0
    worst = int(np.argmin(p))
    if p[worst] > RATE / p.size:
        return None
    own_host = worst if worst < hosts else -1
    switches = None if worst < hosts else (int(between[worst - hosts] // size), int(between[worst - hosts] % size))
    a, b = placement.host[cells[0]], placement.host[to]
    if switches is None:
        mine = (a == own_host) | (b == own_host)
    else:
        ends = np.sort(np.stack([placement.switch[cells[0]], placement.switch[to]]), axis=0)
        mine = (ends[0] == switches[0]) & (ends[1] == switches[1])
    return _stratum(own_host, switches, cells, slow & mine & open_cells, mine & open_cells, evidence, left), mine


def _units(a: Codes, b: Codes, slow: Mask) -> _Units | None:
    across = a != b
    if not across.any():
        return None
    low, high = np.minimum(a, b)[across].astype(np.int64), np.maximum(a, b)[across]
    width = int(high.max()) + 1
    unit, inverse, count = np.unique(low * width + high, return_inverse=True, return_counts=True)
    share = np.bincount(inverse, weights=slow[across]) / count
    return _Units(unit // width, unit % width, share >= HALF)


def _stratum(
    host: int,
    switches: tuple[int, int] | None,
    cells: Cells,
    slow: Mask,
    every: Mask,
    evidence: Evidence,
    left: npt.NDArray[np.float32],
) -> Stratum:
    a, b = evidence.placement.host[cells[0]], evidence.placement.host[evidence.pairs.destination(cells)]
    width = len(evidence.placement.hosts)
    pair = unordered(a, b, width)
    return Stratum(
        host,
        switches,
        int(np.unique(pair[every]).size),
        int(np.unique(pair[slow]).size),
        float(np.median(left[slow])),
        (cells[0][slow], cells[1][slow]),
    )


def _second_mode(left: npt.NDArray[np.float32], candidates: npt.NDArray[np.float32], limit: float) -> float | None:
    """From which value on a second mode of slow pairs begins; None where the tail of the noise has none.

    The slow values agree with each other (half of them are within three standard deviations of the noise around their
    median), and the values between them and the noise are rarer than a tail would have them.
    """
    slow = candidates.astype(np.float64)
    spread = max(robust_sd(left), limit / (2 * DISTANCE))
    if slow.size < FEWEST:
        return None
    middle = float(np.median(slow))
    core = np.abs(slow - middle) <= MEMBER * spread
    begin = middle - MEMBER * spread
    if 2 * np.count_nonzero(core) <= slow.size or begin < limit:
        return None
    gap = np.count_nonzero((left > limit) & (left < begin)) / (begin - limit) if begin > limit else 0.0
    density = np.count_nonzero(core) / (2 * MEMBER * spread)
    return begin if gap < EMPTY * density else None
