"""What is left when the culprits are known: single pairs and single hosts that deserve a retest. Never a FAULT."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.pairs import Pairs
from fablint.analyse.data.places import Codes, Places
from fablint.analyse.detect.evidence import Evidence
from fablint.analyse.fit.effects import Effects, leftover
from fablint.analyse.settings import Settings

SAMPLE_CELLS = 1 << 19  # looked at to know where the tail begins
TAIL_SHARE = 0.01  # the slowest of all pairs, which are looked at one by one,
TAIL_CELLS = 1000  # and at least so many


@dataclass(frozen=True)
class SlowPair:
    """Two ranks whose pair was slow in both of its measurements, and nothing else explains it."""

    ranks: tuple[int, int]
    loss: float  # log-effect of the better of the two measurements


def slow_pairs(evidence: Evidence, effects: Effects, settings: Settings, *, views: int) -> list[SlowPair]:
    """Pairs for a retest, by the Benjamini-Hochberg procedure on p-values at `settings.route_rate`.

    A pair is measured in each direction, and a sick route slows both; where it was measured in several rounds, most of
    them must have been slow, since a slow moment slows both directions of a round. How often one direction alone is
    as slow as the better of the two is seen from the pairs that were slow one way only, and two independent ones
    multiply: with k such cells of n, two given cells are both among the slowest k + 2 by chance with probability
    (k + 1) (k + 2) / n^2. So many slow pairs do not hide each other, and being slow once is noise.
    """
    ranks, loss, tail, cells = _tail_pairs(evidence, effects, settings)
    order = np.argsort(-loss, kind="stable")
    slower = tail.size - np.searchsorted(tail, loss[order], side="left")
    once = slower - 2 * np.arange(1, order.size + 1)
    p = np.minimum(1.0, views * (once + 1.0) * (once + 2.0) / (cells + 1.0) ** 2)
    passes = np.flatnonzero(np.sort(p) <= settings.route_rate * np.arange(1, p.size + 1) / (cells / 2))
    chosen = order[np.argsort(p, kind="stable")[: passes[-1] + 1]] if passes.size else order[:0]
    return [SlowPair((int(a), int(b)), float(x)) for (a, b), x in zip(ranks[chosen], loss[chosen], strict=True)]


def _tail_pairs(
    evidence: Evidence, effects: Effects, settings: Settings
) -> tuple[Codes, npt.NDArray[np.float32], npt.NDArray[np.float32], int]:
    """Pairs slow in both measurements (k, 2), their smaller loss (k,), all losses in the tail, sorted, cells in all.

    Only losses above the tolerance and among the slowest hundredth or thousand of all are in the tail.
    """
    pairs = evidence.pairs
    looked = np.arange(0, pairs.ranks, max(1, pairs.value.size // SAMPLE_CELLS))
    sample = leftover(effects, looked, cap=True)[evidence.gain[looked] != 0]
    if not sample.size:
        return np.empty((0, 2), np.int64), np.empty(0, np.float32), np.empty(0, np.float32), 0
    share = min(1.0, max(TAIL_SHARE, TAIL_CELLS / sample.size))
    floor = max(settings.tolerance, float(np.quantile(sample, 1 - share)))
    keys, losses, all_keys, cells = [], [], [], 0
    for rows in pairs.blocks():
        live = evidence.gain[rows] != 0
        cells += int(np.count_nonzero(live))
        left = leftover(effects, rows, cap=True)
        with np.errstate(invalid="ignore"):
            row, column = np.nonzero((left > floor) & live)
        losses.append(left[row, column])
        keys.append(_keys(pairs, rows, row, column))
        if pairs.partner is not None:
            all_keys.append(_keys(pairs, rows, *np.nonzero(live)))
    key, loss = np.concatenate(keys), np.concatenate(losses).astype(np.float32)
    order = np.lexsort((loss, key))
    key, loss = key[order], loss[order]
    if pairs.partner is not None:
        every, rounds = np.unique(np.concatenate(all_keys), return_counts=True)
        cells = every.size
        key, loss = _in_most_rounds(key, loss, every, rounds)
    a, b = key // pairs.ranks, key % pairs.ranks
    back = np.minimum(np.searchsorted(key, b * pairs.ranks + a), max(0, key.size - 1))
    both = (a < b) & (key[back] == b * pairs.ranks + a) if key.size else np.zeros(0, dtype=bool)
    smaller = np.minimum(loss, loss[back])[both] if key.size else loss
    return np.stack([a[both], b[both]], axis=1), smaller, np.sort(loss), cells


def _keys(pairs: Pairs, rows: slice, row: Codes, column: Codes) -> Codes:
    """(k,) one number for each directed pair of ranks."""
    return np.asarray((row + rows.start) * pairs.ranks + pairs.destination((row + rows.start, column)))


def _in_most_rounds(
    key: Codes, loss: npt.NDArray[np.float32], every: Codes, rounds: Codes
) -> tuple[Codes, npt.NDArray[np.float32]]:
    """The pairs that were slow in most of their rounds, each with the (lower) median of its losses.

    Args:
        key: pairs of slow measurements, ascending, and within a pair by loss.
        loss: of each.
        every: all pairs, ascending, and in how many `rounds` each was measured.
    """
    found, first, slow = np.unique(key, return_index=True, return_counts=True)
    measured = rounds[np.searchsorted(every, found)]
    most = 2 * slow > measured
    middle = first + (measured - 1) // 2 - (measured - slow)
    return found[most], loss[middle[most]]


def slow_hosts(effects: Effects, places: Places, evidence: Evidence | None) -> list[tuple[int, float]]:
    """Hosts whose median loss is surely beyond the tolerance although the evidence did not convict them.

    Their number and log-effect. Hosts that a culprit explains have no evidence left and are not among them;
    without `evidence` too little was measured to convict anybody.
    """
    found = []
    hosts = places.host
    lower = np.fmax(effects.sent_bounds[0], effects.received_bounds[0])
    median = np.fmax(effects.sent_bounds[1], effects.received_bounds[1])
    with np.errstate(invalid="ignore"):
        slow = lower > effects.host_tolerance
    if evidence:
        slow &= evidence.total.sent + evidence.total.received > 0
    for host in np.unique(hosts[slow]):
        members = hosts == host
        if slow[members].all():
            found.append((int(host), float(np.min(median[members]))))
    return found
