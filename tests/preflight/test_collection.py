"""A host that did not tell all in time is no healthy one."""

from __future__ import annotations

from preflight_help import host, of, wrong

from fablint.fitness import Outcome
from fablint.preflight.checks.collection import HostSnapshot


def test_what_a_host_was_doing_when_its_time_was_up_is_told() -> None:
    ((name, target, outcome, message),) = wrong(of(HostSnapshot, host("n1"), host("n2", incomplete="reading /sys/x")))
    assert (name, target, outcome) == ("n2", "", Outcome.ERROR)
    assert message == "time was up while reading /sys/x; what came after was not seen"
