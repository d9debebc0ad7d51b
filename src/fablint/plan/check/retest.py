"""Retest the faulty and suspect components of a run: the same kernels, beside healthy pairs, in a run of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fablint.model import (
    SCOPES,
    ComponentRef,
    Diagnosis,
    Finding,
    FollowUp,
    RowSpec,
    Run,
    Scope,
    Slots,
    State,
    Topology,
)
from fablint.model.arrays import RankPairs
from fablint.plan.check.follow_up import follow_up_rounds, with_controls
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import MOST_ROUTES, RETEST, Stage, repeated_routes, suspects_of, timed_stage
from fablint.plan.rows.host_lists import joined
from fablint.plan.rows.run_rows import spec_of
from fablint.plan.schedule.interleaving import interleaved
from fablint.text.sentences import finding_facts
from fablint.topology.routed_placement import RoutedPlacement

PAIRS = 12  # of each part: a link that fewer than 6 pairs cross is not judged
MOST_ROUNDS = 24
NEAR = 4  # of the pairs, where there are so many on the same switch
CONTROLS = 8  # healthy pairs in a round
FEWEST_TIMES = 3  # of its pairs, to say that a part is fine
REPORTED = (State.FAULT, State.SUSPECT, State.SUPPRESSED)
OPEN = (State.NOT_JUDGED, State.CONFOUNDED)  # of a slow route: its time may explain it, and a second time decides

# What a row is measured with; all other options say which pairs, when and for how long.
_KEPT = (
    "sizes",
    "window",
    "warmup",
    "buffers",
    "batch",
    "win",
    "sync",
    "transport",
    "device",
    "streams",
    "ofi_provider",
    "gid_index",
    "service_level",
    "mtu",
    "memory",
    "peer_memory",
    "validate",
    "histogram",
)


@dataclass(frozen=True)
class Retest:
    """What to measure again. Ranks are those of the hosts that take part, counted anew."""

    stage: Stage
    placement: RoutedPlacement
    follow_ups: Sequence[FollowUp]


@dataclass(frozen=True)
class Fate:
    """What became of a reported component; `effect` is the loss that its pairs have now."""

    was: Finding
    state: Literal["gone", "still there", "undecided"]
    now: Finding | None = None  # what the new run says about it
    effect: float | None = None

    def facts(self) -> dict[str, Any]:
        """Return the facts for programs."""
        return {
            "state": self.state,
            "effect": self.effect,
            "was": finding_facts(self.was),
            "now": finding_facts(self.now) if self.now else None,
        }


def reported_findings(diagnosis: Diagnosis) -> list[Finding]:
    """The findings that a retest is about: faults, suspects, and slow routes that one measurement does not decide."""
    return [one for one in diagnosis.verdict.findings if one.state in REPORTED or _is_open_route(one)]


def _is_open_route(finding: Finding) -> bool:
    """Return whether pairs of hosts were slow, and may have been slow at that time only."""
    return finding.component == "route" and finding.state in OPEN and finding.effect is not None


def plan_retest(
    run: Run, diagnosis: Diagnosis, topology: Topology | None = None, budget_s: float | None = None
) -> Retest | None:
    """Return rounds with pairs that test the reported components, and with pairs that show what is healthy now.

    Slow pairs that no component explains are measured several times, as in a check. Only hosts that take
    part are started, with all their ranks.

    Parameters
    ----------
    run
        The run whose findings are tested.
    diagnosis
        What it showed.
    topology
        Switches and links.
    budget_s
        Longest time in seconds; None: no limit.

    Returns
    -------
    Retest or None
        None where no pair would decide, or the time does not suffice.
    """
    names = run.rank_host
    nics = run.facts.rank_nic
    placement = RoutedPlacement.on_routes(names, topology, nics)
    proposed = (*diagnosis.retests, *diagnosis.follow_ups, *_ends_of_routes(diagnosis.routes, names, placement))
    follow_ups = [_near_first(one, placement) for one in proposed if one.open]
    rounds = follow_up_rounds(follow_ups, placement, least=PAIRS, most_rounds=MOST_ROUNDS)
    rounds += repeated_routes(diagnosis.routes, placement)
    if not rounds:
        return None
    follow_ups += diagnosis.routes
    rounds = with_controls(rounds, placement, suspects_of(follow_ups), CONTROLS)
    rounds = interleaved(rounds, placement, groups=[one.pairs for one in follow_ups])
    part = np.flatnonzero(np.isin(placement.host, placement.host[np.concatenate(rounds)]))
    hosts = [names[rank] for rank in part.tolist()]
    nics_of_part = [nics[rank] for rank in part.tolist()] if nics else []
    asked = PlanInput(
        len(hosts),
        joined([Slots(host, 1) for host in hosts]),
        topology,
        oversubscribed=run.facts.instrument.oversubscribed,
    )
    anew = [np.searchsorted(part, pairs).astype(np.int32) for pairs in rounds]
    rows = [replace(row, purpose="retest") for row in row_kinds(run)]
    stage = timed_stage(RETEST, anew, asked, budget_s or math.inf, rows)
    kept = [
        FollowUp(
            follow_up.component, np.searchsorted(part, follow_up.pairs[np.isin(follow_up.pairs, part).all(axis=1)])
        )
        for follow_up in follow_ups
    ]
    return None if stage is None else Retest(stage, RoutedPlacement.on_routes(hosts, topology, nics_of_part), kept)


def _ends_of_routes(
    routes: Sequence[FollowUp], names: Sequence[str], placement: RoutedPlacement, seed: int = 1
) -> list[FollowUp]:
    """Return pairs of each end of the slow routes with hosts of none: without them a route is its two hosts."""
    ends = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.pairs.ravel() for one in routes[:MOST_ROUTES])]))
    others = np.flatnonzero(~np.isin(placement.host, placement.host[ends]))
    partners = np.random.default_rng(seed).permutation(others)
    return [
        FollowUp(ComponentRef.of("host", names[end]), np.stack([np.full_like(partners, end), partners], axis=1))
        for end in ends.tolist()
    ]


def _near_first(follow_up: FollowUp, placement: RoutedPlacement) -> FollowUp:
    """A few partners on the same switch come first: without them a host is indistinguishable from its switch."""
    scope = placement.scopes(follow_up.pairs[:, 0], follow_up.pairs[:, 1])
    near = np.flatnonzero(scope == SCOPES.index(Scope.EDGE))[:NEAR]
    rest = np.setdiff1d(np.arange(len(follow_up.pairs)), near)
    return FollowUp(follow_up.component, follow_up.pairs[np.concatenate([near, rest])])


def row_kinds(run: Run) -> Sequence[RowSpec]:
    """Return a run's rows of pairs, each kernel with the same sizes and protocol once, without pairs and times."""
    specs = (spec for spec in map(spec_of, run.rows) if spec.is_of_pairs)
    return list(dict.fromkeys(RowSpec(spec.kernel, **{name: getattr(spec, name) for name in _KEPT}) for spec in specs))


def fates(before: Diagnosis, after: Diagnosis, run: Run, retest: Retest) -> list[Fate]:
    """Return what became of each reported component.

    Still there: the new run reports it, or a component of its ambiguity group, as FAULT; or as SUSPECT, and its pairs
    have at least half of their loss. Gone: the new run reports nothing about it, and its pairs have less than half of
    their loss, compared with other pairs of their distance. Undecided: neither.

    Parameters
    ----------
    before
        The diagnosis that was tested.
    after
        The diagnosis of the new run.
    run
        The new run.
    retest
        What it measured.
    """
    return [_fate(finding, after, run, retest) for finding in reported_findings(before)]


def _fate(was: Finding, after: Diagnosis, run: Run, retest: Retest) -> Fate:
    about = [finding for finding in after.verdict.findings if finding.state in REPORTED and _is_about(finding, was)]
    effect = _effect_now(was, run, retest)
    now = about[0] if about else None
    has_recovered = effect is not None and was.effect is not None and _loss(effect, was) < _loss(was.effect, was) / 2
    if now is not None and (now.state == State.FAULT or (effect is not None and not has_recovered)):
        return Fate(was, "still there", now, effect)
    return Fate(was, "gone" if has_recovered and now is None else "undecided", now, effect)


def _is_about(finding: Finding, was: Finding) -> bool:
    """Return whether the ambiguity groups of two findings, with the findings' own components, have one in common.

    Findings about routes may fold other pairs: one pair in common is enough.
    """
    if finding.component == was.component == "route":
        return bool(finding.directions & was.directions)
    before, now = (
        {*item.components, *(member for member in item.ambiguity_group if member.kind != "config")}
        for item in (was, finding)
    )
    return bool(before & now) or (finding.component == was.component == "host" and {*was.hosts} <= {*finding.hosts})


def _loss(effect: float, was: Finding) -> float:
    """Return how much longer a message takes, on a log scale."""
    return math.log1p(effect) if was.quantity == "latency" else -math.log1p(max(effect, -0.999))


def _effect_now(was: Finding, run: Run, retest: Retest) -> float | None:
    """Relative change of the quantity on the pairs of a part, against the others of the same distance in the new run.

    Of several rows and sizes the one with the largest loss; None where too few pairs were measured.
    """
    about = np.concatenate([np.zeros((0, 2), int), *(_pairs_about(was, one) for one in retest.follow_ups)])
    losses = []
    for row in run.rows:
        if row.quantity != was.quantity:
            continue
        for size in row.sizes:
            observations = row.observations(size)
            if observations.partner is not None:
                losses += _losses(observations.sent, observations.partner, about.astype(np.int32), retest.placement)
    if not losses:
        return None
    worst = max(losses)
    return math.expm1(worst) if was.quantity == "latency" else math.expm1(-worst)


def _pairs_about(was: Finding, follow_up: FollowUp) -> RankPairs:
    """Return the pairs of a follow-up whose messages cross the component of a finding; of a route its directions."""
    if was.component != "route":
        return follow_up.pairs if follow_up.component in was.components else follow_up.pairs[:0]
    is_one_of_them = follow_up.component.kind == "route" and follow_up.component.directions <= was.directions
    both = len(follow_up.component.directions) > 1
    return follow_up.pairs[: 2 if both else 1] if is_one_of_them else follow_up.pairs[:0]


def _losses(sent: np.ndarray, partner: np.ndarray, about: RankPairs, placement: RoutedPlacement) -> list[float]:
    """One figure, the median loss of the pairs `about`; none where too few of them, or of others, are known."""
    src, column = np.nonzero((partner >= 0) & ~np.isnan(sent))
    pairs = np.stack([src, partner[src, column]], axis=1).astype(np.int32)
    time = np.log(sent[src, column].astype(np.float64))
    scope = placement.scopes(pairs[:, 0], pairs[:, 1])
    keys, wanted = (one[:, 0].astype(np.int64) * placement.ranks + one[:, 1] for one in (pairs, about))
    is_about = np.isin(keys, wanted)
    others = ~is_about & ~np.isin(keys, wanted % placement.ranks * placement.ranks + wanted // placement.ranks)
    usual = {name: np.median(time[others & (scope == name)]) for name in set(scope[others].tolist())}
    excess = [
        value - usual[name]
        for value, name in zip(time[is_about], scope[is_about].tolist(), strict=True)
        if name in usual
    ]
    return [float(np.median(excess))] if len(excess) >= FEWEST_TIMES else []
