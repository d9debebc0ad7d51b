"""A host that did not tell all in time is not a healthy one."""

from __future__ import annotations

from preflight_help import host, nic, of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.host.collection import HOST_SNAPSHOT
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)


def test_what_a_host_was_doing_when_its_time_was_up_is_reported() -> None:
    ((name, target, outcome, message),) = wrong(
        of(HOST_SNAPSHOT, host("n1", nic()), host("n2", nic(), incomplete="reading /sys/x"))
    )
    assert (name, target, outcome) == ("n2", "", Outcome.ERROR)
    assert message == PINNED["the time limit was reached"]


def test_a_host_without_any_nic_has_shown_nothing() -> None:
    ((name, _, outcome, message),) = wrong(
        of(HOST_SNAPSHOT, host("n1", nic()), host("n2", {"/proc/uptime": "7.0 8.0"}))
    )
    assert (name, outcome, message) == ("n2", Outcome.ERROR, PINNED["no NIC was found: the host"])
