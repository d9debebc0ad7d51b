"""Gateways of default routes, as seen from the hosts."""

from __future__ import annotations

import json

import pytest
from net_help import wired
from preflight_help import of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.management import MANAGEMENT_NETWORK
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output
from fablint.snapshot.parsers.ping_output import is_answered

GATEWAY = "10.9.0.1"
ROUTE = {"dst": "default", "gateway": GATEWAY, "dev": "eth0", "flags": []}
SUMMARY = (
    "PING 10.9.0.1 (10.9.0.1) 56(84) bytes of data.\n\n2 packets transmitted, {} received, 0% packet loss, time 201ms"
)
ANSWERED, LOST = SUMMARY.format(2), SUMMARY.format(0)
NOT_INSTALLED = Output(error="not installed")


def behind(index: int, said: str | Output = ANSWERED, *, state: str = "", has_route: bool = True) -> Host:
    """A host with a NIC of the fabric, and a default route over eth0."""
    entries = [{"dst": GATEWAY, "dev": "eth0", "state": [state]}] if state else []
    commands = {f"ping-gateway/{GATEWAY}": said, "ip-neigh": json.dumps(entries)}
    return wired(index, routes=[ROUTE] if has_route else [], commands=commands)


def fleet(*odd: Host, count: int = 8) -> list[Host]:
    by_name = {host.name: host for host in odd}
    return [by_name.get(f"n{index}", behind(index)) for index in range(count)]


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (behind(3, LOST), "gateway 10.9.0.1 does not answer, 7 others reach theirs"),
        (behind(3, NOT_INSTALLED, state="FAILED"), "gateway 10.9.0.1 does not answer, 7 others reach theirs"),
        (behind(3, LOST, state="INCOMPLETE"), "gateway 10.9.0.1 does not answer, 7 others reach theirs"),
        (behind(3, has_route=False), "no default route, 7 others reach theirs"),
    ],
)
def test_one_host_without_its_gateway(odd: Host, message: str) -> None:
    target = "" if "no default" in message else "eth0"
    assert wrong(of(MANAGEMENT_NETWORK, *fleet(odd))) == [("n3", target, Outcome.WARN, message)]


@pytest.mark.parametrize("odd", [behind(3, LOST, state="REACHABLE"), behind(3, NOT_INSTALLED), behind(3, "ping: bad")])
def test_what_is_not_visible_is_no_finding(odd: Host) -> None:
    assert wrong(of(MANAGEMENT_NETWORK, *fleet(odd))) == []


@pytest.mark.parametrize("host", [{"said": LOST}, {"has_route": False}])
def test_sites_whose_gateways_answer_no_ping_or_that_have_none_are_quiet(host: dict[str, object]) -> None:
    for count in (1, 2, 8):
        results = of(MANAGEMENT_NETWORK, *(behind(index, **host) for index in range(count)))  # type: ignore[arg-type]
        assert {result.outcome for result in results} == {Outcome.SKIP}


def test_summaries_of_ping() -> None:
    assert is_answered(ANSWERED) is True
    assert is_answered(LOST) is False
    assert is_answered("2 packets transmitted, 1 packets received, 50.0% packet loss") is True  # BusyBox
    assert is_answered("ping: connect: Network is unreachable") is None
