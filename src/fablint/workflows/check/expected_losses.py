"""The losses that a check would name, before it measures: its levels are simulated on a healthy fabric and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fablint.errors import UsageError
from fablint.model import Run
from fablint.model.verdict import NamedLoss

if TYPE_CHECKING:
    from fablint.plan.check.levels import Level
    from fablint.plan.check.plan_input import PlanInput
    from fablint.plan.check.stages import Stage
    from fablint.plan.check.suites import Suite
    from fablint.simulate import SimulatedFabric
    from fablint.topology.routed_placement import RoutedPlacement

MOST_RANKS = 256  # of which the levels are simulated: the answer takes about a second


def expected_losses(suite: Suite, asked: PlanInput) -> Sequence[NamedLoss]:
    """Return the losses that the levels between hosts would name in 9 of 10 cases, with the usual noise.

    The noise is that of real small-message runs (`fablint.simulate.Noise`); the run of the check states its own.
    Follow-ups are not simulated.

    Parameters
    ----------
    suite
        Levels of the check.
    asked
        Ranks, fabric, budget.

    Returns
    -------
    sequence of NamedLoss
        Empty where the topology is not known or lacks a host, hosts have different numbers of ranks, there are more
        than 256 ranks, or no component would be judged.
    """
    from fablint.analyse import diagnose

    simulated = healthy_fabric(asked)
    if simulated is None:
        return ()
    run = run_of_levels(suite, asked, simulated)
    limits = diagnose(run, simulated.fabric.topology).verdict.limits if run is not None else None
    return limits.named if limits is not None else ()


def in_words(losses: Sequence[NamedLoss]) -> str:
    """Return the losses as a line of text; `not known` where there are none."""
    from fablint.report.finding_order import named_losses

    return f"losses named in 9 of 10 cases with the usual noise: {named_losses(losses) or 'not known'}"


def healthy_fabric(asked: PlanInput) -> SimulatedFabric | None:
    """Return the fabric of the ranks; None where it cannot be simulated."""
    from fablint.simulate import Fabric, SimulatedFabric

    hosts = list(dict.fromkeys(asked.rank_hosts))
    each = asked.ranks // len(hosts)
    is_uniform = asked.rank_hosts == [host for host in hosts for _ in range(each)]
    topology = asked.topology
    if topology is None or not is_uniform or asked.ranks > MOST_RANKS or not topology.host_switch.keys() >= set(hosts):
        return None
    topology = replace(topology, host_switch={host: topology.host_switch[host] for host in hosts}, nic_switch={})
    return SimulatedFabric(Fabric(topology), ranks_per_host=each, contention=True)


def run_of_levels(suite: Suite, asked: PlanInput, simulated: SimulatedFabric) -> Run | None:
    """Return a run of the levels between hosts; None where none of them has a pair."""
    from fablint.simulate import SimulatedRow
    from fablint.simulate.messages.times import KERNELS

    run, placement = None, asked.placement()
    for level in suite.levels:
        is_judged = not level.within_hosts and level.pairs != "near and far"
        stage = _stage(suite, level, asked, placement) if is_judged else None
        if stage is None:
            continue
        rows = [
            SimulatedRow(kernel, row.spec.sizes, "serial" if row.spec.order == "serial" else "parallel")
            for row in stage.plan.rows
            for kernel in KERNELS
            if kernel == row.spec.kernel
        ]
        (rounds,) = stage.rounds.values()
        run = simulated.measure(rounds, rows) if run is None else simulated.extended(run, rounds, rows)
    return run


def _stage(suite: Suite, level: Level, asked: PlanInput, placement: RoutedPlacement) -> Stage | None:
    from fablint.plan.check.levels import level_stage
    from fablint.plan.check.suites import level_budget

    try:
        return level_stage(level, asked, placement, budget_s=level_budget(suite, asked))
    except UsageError:
        return None
