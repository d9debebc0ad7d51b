"""What the transports of a run say together about a slow component: the wire and the host, or one library.

A transport that is slower than another is not a finding: only components that are slow within a transport are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fablint.analyse.explain.view import ViewResult
from fablint.analyse.settings import HALF
from fablint.model import ComponentRef, EvidenceRecord, Finding, Medium, Placement, State
from fablint.model.arrays import Codes
from fablint.text import evidence as seen

OF_HOSTS = ("host", "nic")


@dataclass(frozen=True)
class _Excluded:
    """The loss of a component over a transport: at most `bound`, where the wire or the host would add `expected`."""

    bound: float
    expected: float


def over_transports(
    finding: Finding, judged: Sequence[ViewResult], media: Mapping[str, Medium], placement: Placement
) -> tuple[EvidenceRecord, ...]:
    """Return over which transports a slow component is slow, and over which it is not; empty if that is not known.

    Parameters
    ----------
    finding
        A finding.
    judged
        The views of the run.
    media
        Transport and memory of each row, by the name of the row.
    placement
        Hosts of the ranks.

    Returns
    -------
    tuple of EvidenceRecord
        One record about a component in the state FAULT or SUSPECT where the run has several transports and their
        measurements agree, or differ by more than the noise allows.
    """
    record = _evidence(finding, judged, media, placement) if len({media[view.row] for view in judged}) > 1 else None
    return () if record is None else (record,)


def _evidence(
    finding: Finding, judged: Sequence[ViewResult], media: Mapping[str, Medium], placement: Placement
) -> EvidenceRecord | None:
    """Return the record of a finding; None if the transports do not say more than one of them."""
    if finding.state not in (State.FAULT, State.SUSPECT) or finding.quantity is None:
        return None
    views = [view for view in judged if view.quantity == finding.quantity]
    ranks = _ranks(finding, placement)
    losses = [(view, _loss(view, finding.components, ranks)) for view in views]
    slow_views = [(view, loss) for view, loss in losses if loss is not None]
    slow = list(dict.fromkeys(media[view.row] for view, _ in slow_views))
    by_medium: dict[Medium, list[ViewResult]] = {}
    for view in views:
        by_medium.setdefault(media[view.row], []).append(view)
    if len(by_medium) < 2 or not slow:
        return None
    if len(slow) == len(by_medium):
        return seen.slow_over_all(tuple(medium.label for medium in slow))
    excluded = {
        medium: evidence
        for medium, views_of_medium in by_medium.items()
        if medium not in slow and (evidence := _excluded(views_of_medium, slow_views, ranks)) is not None
    }
    if not excluded:
        return None
    return seen.slow_over_some(
        slow=tuple(medium.label for medium in slow),
        healthy=tuple(medium.label for medium in excluded),
        bound=max(exclusion.bound for exclusion in excluded.values()),
        expected=min(exclusion.expected for exclusion in excluded.values()),
        cause=_cause(slow, list(excluded)),
    )


def _ranks(finding: Finding, placement: Placement) -> Codes:
    """Return the ranks of the hosts of a finding; none if it is about other components."""
    if finding.component not in OF_HOSTS:
        return np.zeros(0, dtype=np.int64)
    hosts = [code for code, name in enumerate(placement.hosts) if name in finding.hosts]
    return np.flatnonzero(np.isin(placement.host, hosts))


def _loss(view: ViewResult, components: Sequence[ComponentRef], ranks: Codes) -> float | None:
    """Return the log-loss of a component that is slow in a view, of a host also that of a rank or NIC; else None."""
    losses = [
        case.loss[1]
        for case in (*view.detections, *view.candidates)
        if case.whole in components
        or case.component() in components
        or (case.kind in (*OF_HOSTS, "rank") and ranks.size and np.isin(case.ranks, ranks).all())
    ]
    if losses:
        return max(losses)
    lower, middle = (float(np.fmax.reduce(bound, initial=-math.inf)) for bound in view.bounds[:2, ranks])
    return middle if lower > view.host_tolerance else None


def _excluded(
    views_of_medium: Sequence[ViewResult], slow_views: Sequence[tuple[ViewResult, float]], ranks: Codes
) -> _Excluded | None:
    """Return what the views of a transport exclude; None if they would not show the loss that another one shows."""
    if not ranks.size:
        return None
    excluded = []
    for slow, loss in slow_views:
        for view in views_of_medium:
            is_same = (view.fit.kernel, view.size) == (slow.fit.kernel, slow.size)
            if not (is_same and view.fit.class_time and slow.fit.class_time):
                continue
            upper = view.bounds[2, ranks]
            expected = _expected_loss(view, slow, loss)
            if np.isnan(upper).any() or upper.max() > HALF * expected or upper.max() > view.host_tolerance:
                return None
            excluded.append(_Excluded(float(upper.max()), expected))
    return min(excluded, key=lambda one: one.expected, default=None)


def _expected_loss(view: ViewResult, slow: ViewResult, loss: float) -> float:
    """Return the log-loss in `view` if the cause of the `loss` in `slow` lay outside the transport.

    The wire or the host adds the same time to a small message over any transport. A stream is as fast as the slowest
    stage of its path, so that a transport that is slow by itself hides a slow wire.
    """
    typical, of_slow = _typical_seconds(view), _typical_seconds(slow)
    if slow.quantity == "bandwidth":
        return max(0.0, math.log(of_slow) + loss - math.log(typical))
    return math.log1p(of_slow * math.expm1(loss) / typical)


def _typical_seconds(view: ViewResult) -> float:
    """Return the time of a message between healthy components, s."""
    return float(np.median(list(view.fit.class_time.values())))


def _cause(slow: Sequence[Medium], healthy: Sequence[Medium]) -> Literal["sockets", "above_sockets", "library"]:
    """Return where the cause is."""
    if any(medium.transport == "tcp" for medium in healthy):
        return "above_sockets"
    return "sockets" if all(medium.transport == "tcp" for medium in slow) else "library"
