"""What is slow within hosts, where no message crosses the fabric: hosts and GPUs are compared with their peers.

Hosts are judged by the messages between their own ranks, GPUs by the copies of `gpu_loopback`. The spread of the
healthy ones decides: what is slow is beyond the tolerance of the robust spread of all; it is at FAULT if it is also
beyond the standard deviation of all that are not slow, which is not robust, so that hosts or GPUs that differ among
each other in any direction make no FAULT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.findings.detection_text import relative
from fablint.analyse.null_model.host_spread import widened_spread
from fablint.analyse.observations.robust_stats import robust_sd
from fablint.analyse.observations.samples import GPU_COPIES, UsableRow
from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import FEWEST_PEERS, Settings
from fablint.model import ComponentRef, Finding, Placement, Row, State
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.figures.grouped_values import GroupedValues
from fablint.text import actions as advise, evidence as seen


def slow_inside(rows: Sequence[UsableRow], placement: Placement, settings: Settings) -> list[Finding]:
    """The gravest finding about each host that is slow within itself; containers share those of one machine."""
    findings: dict[str, Finding] = {}
    for row in (one for usable in rows for one in (usable.row, *usable.more)):
        if row.layout == "list" and not placement.shared_machines:
            for size in row.sizes:
                for finding in _of_row(row, size, placement, settings):
                    findings[finding.name] = min(findings.get(finding.name, finding), finding, key=lambda one: one.rank)
    return list(findings.values())


def _of_row(row: Row, size: int, placement: Placement, settings: Settings) -> list[Finding]:
    partner = np.asarray(row.arrays["dst"][:])
    sent = np.asarray(row.observations(size).sent, dtype=np.float64)
    src, column = np.nonzero((partner >= 0) & (sent > 0))
    inside = placement.host[src] == placement.host[partner[src, column]]
    src, column = src[inside], column[inside]
    if not src.size:
        return []
    value = np.log(sent[src, column])
    return [
        _finding(row, size, case)
        for case in _slow(
            value, placement.host[src], [ComponentRef.of("host", name) for name in placement.hosts], settings
        )
    ]


def slow_gpus(rows: Sequence[Row], placement: Placement, settings: Settings) -> list[Finding]:
    """The gravest finding about each GPU whose copies from, to or within its memory are slow."""
    findings: dict[str, Finding] = {}
    gpus = [ComponentRef.device("gpu", gpu) for gpu in placement.gpus]
    comparable = have_comparable_gpus(placement)[:, None]
    for row in rows:
        if row.kernel != GPU_COPIES or not gpus:
            continue
        for position, size in enumerate(row.sizes):
            times = np.asarray(row.times[:], dtype=np.float64)[..., position]
            rank, turn = np.nonzero((times > 0) & comparable)
            for case in _slow(np.log(times[rank, turn]), placement.gpu[rank], gpus, settings):
                finding = _gpu_finding(row, size, case, placement)
                findings[finding.name] = min(findings.get(finding.name, finding), finding, key=lambda one: one.rank)
    return list(findings.values())


def have_comparable_gpus(placement: Placement) -> Mask:
    """Return the mask of the ranks whose GPU has as many ranks as most GPUs of the run.

    Ranks that share a GPU have a part of its bandwidth each.
    """
    if not (placement.gpu >= 0).any():
        return np.zeros(placement.gpu.shape, dtype=bool)
    sharing = np.bincount(placement.gpu[placement.gpu >= 0], minlength=len(placement.gpus))
    usual = np.bincount(sharing[sharing > 0]).argmax()
    comparable: Mask = (placement.gpu >= 0) & (sharing[placement.gpu] == usual)
    return comparable


@dataclass(frozen=True)
class _Slow:
    """A component that is slower than its peers."""

    component: ComponentRef
    loss: float  # log
    measured: int
    others: int
    is_fault: bool  # beyond the spread of the healthy ones, at every measurement


def _slow(value: Floats, code: Codes, components: Sequence[ComponentRef], settings: Settings) -> list[_Slow]:
    """Compare (k,) log-times of the components `code`, indices into `components`."""
    codes, of_component = np.unique(code, return_inverse=True)
    if codes.size <= settings.min_partners:
        return []
    medians = GroupedValues.of(value, of_component, codes.size).medians()
    usual = float(np.median(medians))
    loss = medians - usual
    slow = loss > _tolerance(robust_sd(loss), codes.size, settings) + settings.tolerance
    if slow.all():
        return []
    healthy: Floats = loss[~slow]
    tolerance = _tolerance(float(np.sqrt(np.mean(healthy**2))), healthy.size, settings)
    cases = []
    for item, middle in zip(codes[slow].tolist(), loss[slow].tolist(), strict=True):
        losses = value[code == item] - usual
        steady = losses.size >= FEWEST_PEERS and bool((losses > tolerance).all())
        is_fault = steady and middle > tolerance + settings.tolerance
        cases.append(_Slow(components[item], middle, int(losses.size), int(codes.size) - 1, is_fault))
    return cases


def _tolerance(spread: float, peers: int, settings: Settings) -> float:
    """Return how much slower than the median a healthy component may be, log; the spread of few peers is widened."""
    return max(settings.tolerance, settings.spread_factor * widened_spread(spread, peers))


def _finding(row: Row, size: int, case: _Slow) -> Finding:
    host = case.component.ends
    evidence = seen.intra_node(case.measured, case.others).measured_in(row.name, size)
    return Finding(
        state=State.FAULT if case.is_fault else State.SUSPECT,
        components=(case.component,),
        quantity=row.quantity,
        effect=relative(case.loss, row.quantity),
        evidence=(evidence,),
        ambiguity_group=(
            ComponentRef.of("host", *host, title="memory"),
            ComponentRef.of("host", *host, title="CPUs (clock, binding, other processes)"),
        ),
        next_step=advise.inspect_memory(case.component),
    )


def _gpu_finding(row: Row, size: int, case: _Slow, placement: Placement) -> Finding:
    """CONFOUNDED on a host with more ranks than CPUs: a copy is launched and awaited by its rank."""
    (host,) = case.component.hosts
    is_oversubscribed = bool(placement.oversubscribed[placement.hosts.index(host)])
    state = State.CONFOUNDED if is_oversubscribed else State.FAULT if case.is_fault else State.SUSPECT
    copies = row.facts.sampling.copy
    evidence = seen.gpu_copies(measured=case.measured, others=case.others, copies=copies).measured_in(row.name, size)
    return Finding(
        state=state,
        components=(case.component,),
        quantity=row.quantity,
        effect=relative(case.loss, row.quantity),
        evidence=(evidence,),
        ambiguity_group=(ComponentRef.of("gpu", *case.component.ends, title="PCIe slot"),),
        next_step=advise.measure_own_cpus() if is_oversubscribed else next_step(case.component),
    )
