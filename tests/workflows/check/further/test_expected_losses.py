"""The losses that a check would name, before it measures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from fabrics import dragonfly

from fablint.analyse import diagnose
from fablint.model import ComponentRef, Diagnosis, Run, Slots, State
from fablint.plan.check.check_loop import CheckLoop
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.check.stages import Stage
from fablint.plan.check.suites import find_suite
from fablint.simulate import CHECK_ROWS, Fault, SimulatedFabric
from fablint.workflows.check import expected_losses
from fablint.workflows.check.expected_losses import MOST_RANKS, healthy_fabric, run_of_levels

FABRIC = dragonfly(4, 4, 4)
HOSTS = len(FABRIC.host_switch)
SUITE = find_suite("quick")


def asked(hosts: int = HOSTS, each: int = 1, **more: object) -> PlanInput:
    slots = tuple(Slots(host, each) for host in list(FABRIC.host_switch)[:hosts])
    return PlanInput(each * len(slots), slots, FABRIC, **more)  # type: ignore[arg-type]


def loss_of(request: PlanInput, component: str = "host", quantity: str = "bandwidth") -> float:
    losses = expected_losses.expected_losses(SUITE, request)
    return next(item.loss for item in losses if (item.component, item.quantity) == (component, quantity))


def checked(request: PlanInput, simulated: SimulatedFabric) -> Diagnosis:
    """Return the diagnosis of the levels and of the follow-ups of a simulated check."""
    topology = simulated.fabric.topology

    def follow_up(stage: Stage, run: Run) -> tuple[Run, bool]:
        (rounds,) = stage.rounds.values()
        return simulated.extended(run, rounds, CHECK_ROWS), True

    run = run_of_levels(SUITE, request, simulated)
    assert run is not None
    loop = CheckLoop((), lambda _: request, follow_up, partial(diagnose, topology=topology), lambda: 0.0)
    return loop.follow_up(run).diagnosis


@pytest.mark.long
def test_a_host_with_the_stated_loss_is_named_in_nine_of_ten_checks() -> None:
    request, named = asked(), 0
    healthy = healthy_fabric(request)
    assert healthy is not None
    loss = loss_of(request)
    for seed in range(40):
        host = healthy.fabric.hosts[(7 * seed) % HOSTS]
        fault = Fault(ComponentRef.of("host", host), "both", bandwidth_factor=1 - loss)
        diagnosis = checked(request, replace(healthy, faults=(fault,), seed=100 + seed))
        faults = {finding.name for finding in diagnosis.verdict.findings if finding.state is State.FAULT}
        assert faults <= {host}
        named += faults == {host}
    assert named >= 32  # of 40; fewer by chance alone in one of twenty such tests


def test_more_time_names_smaller_losses() -> None:
    much, little = (loss_of(asked(budget_s=budget_s), quantity="latency") for budget_s in (400.0, 20.0))
    assert much < little


def test_what_cannot_be_simulated_has_no_figures() -> None:
    several = asked()
    unequal = replace(several, slots=(Slots(several.slots[0].host, 2), *several.slots[1:]), ranks=HOSTS + 1)
    requests = [replace(several, topology=None), unequal, asked(each=MOST_RANKS // HOSTS + 1)]
    assert [expected_losses.expected_losses(SUITE, request) for request in requests] == [(), (), ()]
