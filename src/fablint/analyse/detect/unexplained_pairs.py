"""Slow pairs that no component explains: clustered at a host, between two switches, or as a second mode.

A run passes only if the model fits. Pairs of hosts may be slower than other pairs without a slow component: more of
them at one host or between two switches than by chance (a host that is slow at times, a cable that some of the pairs
cross), or more of them in total than the tail of the noise holds (a second mode).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from fablint.analyse.data.binomial import upper_tail
from fablint.analyse.data.pair_matrix import Cells, Codes, unordered
from fablint.analyse.data.robust_stats import robust_sd
from fablint.analyse.data.time_correlation import SameTime, TimedMeasurements
from fablint.analyse.detect.evidence import Evidence
from fablint.analyse.fit.effects import Effects, leftover_of
from fablint.analyse.fit.modes import DISTANCE, MEMBER
from fablint.analyse.settings import Settings
from fablint.model import Placement

HALF = 0.5  # share of slow measurements of a slow pair
RATE = 0.01  # false strata of a run, over all views
LEAST_SHARE = 0.1  # share of slow pairs of a host or of two switches, from which they are reported
FEWEST = 4  # slow pairs of a host or of two switches
FEWEST_OF_MODE = 10  # pairs of hosts in a second mode: the tail of any noise has a few that agree
EMPTY = 0.5  # share of the density of a second mode, below which the values between it and the noise are a gap
# Largest probability of so few values in the gap if a tail of the noise reached as far, over all views of a run.
BY_CHANCE = 0.01
FAR = 5.0  # robust standard deviations of the noise beyond which a pair is slow

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Stratum:
    """Pairs of hosts with something in common, more of which are slow than by chance."""

    host: int  # code of the host, -1: two switches, or all pairs
    switches: tuple[int, int] | None  # codes of two switches, None: a host, or all pairs
    pairs: int  # pairs of hosts measured
    slow: int  # slow pairs of hosts
    loss: float  # median log-effect of the slow cells
    cells: Cells  # the slow measurements
    # slow pairs at the same times if these make so many slow ones likely; None: not, or times unknown
    explained_by: SameTime | None = None


@dataclass(frozen=True)
class _Strata:
    """Strata of one kind, hosts or pairs of switches, with their pairs of hosts.

    A pair of hosts is the unit of evidence: its measurements share placement, connection and memory. Hosts with NICs on
    several switches are a pair of hosts in several pairs of switches.
    """

    code: Codes  # (s,)
    pairs: Codes  # (s,) pairs of hosts
    slow: Codes  # (s,) those with at least half of their measurements slow
    elsewhere: Floats  # (s,) share of slow pairs of hosts in all other strata

    @classmethod
    def of(cls, code: Codes, pair: Codes, slow: Mask, *, ends: int) -> Self:
        """Return the strata of measurements.

        Parameters
        ----------
        code
            (k,) stratum of each measurement, below 0: none.
        pair
            (k,) its pair of hosts.
        slow
            (k,) whether it is slow.
        ends
            Strata that a pair of hosts is in.
        """
        width = int(pair.max()) + 1
        strata, stratum = np.unique(code, return_inverse=True)
        unit, inverse = np.unique(stratum.astype(np.int64) * width + pair, return_inverse=True)
        is_slow = np.bincount(inverse, weights=slow) / np.bincount(inverse) >= HALF
        of_stratum = unit // width
        pairs, late = (np.bincount(units, minlength=strata.size) for units in (of_stratum, of_stratum[is_slow]))
        elsewhere = (late.sum() // ends - late + 1.0) / (pairs.sum() // ends - pairs + 2.0)
        named = strata >= 0
        return cls(strata[named], pairs[named], late[named], np.minimum(elsewhere, 1.0)[named])


def unexplained(
    evidence: Evidence,
    effects: Effects,
    settings: Settings,
    known: Sequence[tuple[int, int]] = (),
    *,
    views: int,
    started: Floats | None = None,
) -> list[Stratum]:
    """Return strata with too many slow pairs, the least probable first.

    The last stratum is the second mode of all pairs, if there is one.

    Parameters
    ----------
    evidence
        Evidence of the view after the search; explained pairs are excluded.
    effects
        Fitted model of the view.
    settings
        Tolerance.
    known
        Pairs of ranks that are reported individually. Those that were slow in one moment only are not among them:
        several of one host, at several times, are evidence about the host.
    views
        Number of views of the run, which share the error probability.
    started
        (n, m) s, begin of each measurement; None: unknown.
    """
    cells = effects.residual.sample_cells()
    live = evidence.gain[cells] != 0
    if known:
        ranks, to = evidence.pairs.ranks, evidence.pairs.destination(cells)
        pair = unordered(cells[0], to, ranks)
        live &= ~np.isin(pair, [min(ranks_of_pair) * ranks + max(ranks_of_pair) for ranks_of_pair in known])
    cells = (cells[0][live], cells[1][live])
    residuals = leftover_of(effects, cells)
    if residuals.size < FEWEST:
        return []
    limit = max(settings.tolerance, effects.host_tolerance, FAR * robust_sd(residuals))
    slow = residuals > limit
    strata: list[Stratum] = []
    open_cells = np.ones(slow.size, dtype=bool)
    while (worst := _worst(evidence, cells, slow, open_cells, residuals, RATE / views, started)) is not None:
        stratum, is_own = worst
        strata.append(stratum)
        open_cells &= ~is_own
    if evidence.placement.switches and (evidence.placement.switch < 0).any():
        return strata  # links shared with hosts without a switch are unknown
    of_slow_pairs = open_cells & slow & _in_slow_pairs(evidence, cells, slow)
    repeats = np.count_nonzero(of_slow_pairs) / max(_pairs_of(evidence, cells, of_slow_pairs), 1)
    mode = _second_mode(residuals[open_cells], residuals[of_slow_pairs], limit, repeats, BY_CHANCE / views)
    if mode is not None:
        stratum_of_all = _stratum(-1, None, cells, of_slow_pairs & (residuals > mode), open_cells, evidence, residuals)
        if stratum_of_all.slow >= FEWEST_OF_MODE:
            strata.append(stratum_of_all)
    return strata


def _in_slow_pairs(evidence: Evidence, cells: Cells, slow: Mask) -> Mask:
    """Return a (k,) mask of measurements of pairs of hosts with at least half of their measurements slow."""
    a, b = (
        evidence.placement.host[cells[0]].astype(np.int64),
        evidence.placement.host[evidence.pairs.destination(cells)],
    )
    pair = unordered(a, b, len(evidence.placement.hosts))
    inverse = np.unique(pair, return_inverse=True)[1]
    share = np.bincount(inverse, weights=slow) / np.bincount(inverse)
    return np.asarray(share[inverse] >= HALF)


def _worst(
    evidence: Evidence,
    cells: Cells,
    slow: Mask,
    open_cells: Mask,
    left: npt.NDArray[np.float32],
    rate: float,
    started: Floats | None,
) -> tuple[Stratum, Mask] | None:
    """Return the host or pair of switches whose slow pairs are least likely by chance, and a mask of its cells."""
    placement, ranks = evidence.placement, (cells[0], evidence.pairs.destination(cells))
    a, b = (placement.host[rank].astype(np.int64) for rank in ranks)
    considered = open_cells & (a != b)
    if not (considered & slow).any():
        return None
    path, pair = _switch_pairs(placement, ranks), unordered(a, b, len(placement.hosts))[considered]
    of_hosts = _Strata.of(
        np.concatenate([a[considered], b[considered]]), np.tile(pair, 2), np.tile(slow[considered], 2), ends=2
    )
    of_switches = _Strata.of(path[considered], pair, slow[considered], ends=1)
    measured, late, elsewhere = (
        np.concatenate([getattr(of_hosts, name), getattr(of_switches, name)]) for name in ("pairs", "slow", "elsewhere")
    )
    p = upper_tail(late, measured, elsewhere)
    p[(late < FEWEST) | (late < LEAST_SHARE * measured)] = 1.0
    worst = int(np.argmin(p))
    if p[worst] > rate / p.size:
        return None
    if worst < of_hosts.code.size:
        host, switches = int(of_hosts.code[worst]), None
        is_own = (a == host) | (b == host)
    else:
        code = int(of_switches.code[worst - of_hosts.code.size])
        host, switches, is_own = -1, divmod(code, len(placement.switches)), path == code
    stratum = _stratum(host, switches, cells, slow & is_own & open_cells, is_own & open_cells, evidence, left)
    if started is None:
        return stratum, is_own
    same_time = SameTime.of(_measurements(evidence, started, cells, slow), is_own)
    is_explained = same_time.explains(stratum.slow, stratum.pairs, float(elsewhere[worst]), rate / p.size)
    return replace(stratum, explained_by=same_time if is_explained else None), is_own


def _switch_pairs(placement: Placement, ranks: tuple[Codes, Codes]) -> Codes:
    """Return the (k,) pairs of switches of senders and receivers; -1 on one switch.

    With ranks without a switch, the links that the pairs of two switches share with them are unknown: -1 for all.
    """
    a, b = (placement.switch[rank].astype(np.int64) for rank in ranks)
    is_across = (a != b) & bool((placement.switch >= 0).all())
    return np.where(is_across, unordered(a, b, len(placement.switches)), -1)


def _measurements(evidence: Evidence, started: Floats, cells: Cells, slow: Mask) -> TimedMeasurements:
    """Return the measurements of cells with their times."""
    placement, to = evidence.placement, evidence.pairs.destination(cells)
    return TimedMeasurements(
        started=started[cells].astype(np.float64),
        slow=slow,
        hosts=np.stack([placement.host[cells[0]], placement.host[to]]).astype(np.int64),
        path=unordered(placement.switch[cells[0]], placement.switch[to], len(placement.switches) + 1),
    )


def _pairs_of(evidence: Evidence, cells: Cells, mask: Mask) -> int:
    """Return the number of pairs of hosts that these cells measured."""
    placement, own = evidence.placement, (cells[0][mask], cells[1][mask])
    a, b = placement.host[own[0]], placement.host[evidence.pairs.destination(own)]
    return int(np.unique(unordered(a, b, len(placement.hosts))).size)


def _stratum(
    host: int,
    switches: tuple[int, int] | None,
    cells: Cells,
    slow: Mask,
    every: Mask,
    evidence: Evidence,
    left: npt.NDArray[np.float32],
) -> Stratum:
    """Return the stratum of these cells."""
    return Stratum(
        host,
        switches,
        _pairs_of(evidence, cells, every),
        _pairs_of(evidence, cells, slow),
        float(np.median(left[slow])),
        (cells[0][slow], cells[1][slow]),
    )


def _second_mode(
    left: npt.NDArray[np.float32], candidates: npt.NDArray[np.float32], limit: float, repeats: float, chance: float
) -> float | None:
    """Return the value from which a second mode of slow pairs begins; None if there is none.

    The slow values agree with each other (half of them are within three standard deviations of the noise around their
    median), and values between them and the noise are rarer than in a tail, whose density falls: there are fewer than
    the density of the slow values lets expect, and not by chance.

    Parameters
    ----------
    left
        (k,) residuals of all measurements, log-effects.
    candidates
        Those of slow pairs of hosts.
    limit
        From which a measurement is slow.
    repeats
        Measurements of a slow pair: they depend on each other, and count as one.
    chance
        Largest probability of a gap in a tail of the noise.
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
    between = np.count_nonzero((left > limit) & (left < begin))
    expected = np.count_nonzero(core) / (2 * MEMBER * spread) * (begin - limit)
    is_gap = between < EMPTY * expected and pdtr(between // repeats, expected / repeats) < chance
    return begin if is_gap else None
