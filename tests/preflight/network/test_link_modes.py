"""NICs that run slower than both ends of their cable could, from outputs as ethtool's manual and sources have them."""

from __future__ import annotations

import pytest
from preflight_help import host, nic, of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.link_modes import LINK_MODES
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output
from fablint.snapshot.parsers.ethtool import link_speeds
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

SETTINGS = """Settings for ens1f0np0:
\tSupported ports: [ Backplane ]
\tSupported link modes:   {supported}
\tSupported pause frame use: Symmetric Receive-only
\tSupports auto-negotiation: Yes
\tSupported FEC modes: None\t RS\t BASER
\tAdvertised link modes:  {advertised}
\tAdvertised pause frame use: Symmetric
\tAdvertised auto-negotiation: Yes
\tAdvertised FEC modes: RS
\tLink partner advertised link modes:  {partner}
\tLink partner advertised pause frame use: No
\tLink partner advertised auto-negotiation: Yes
\tLink partner advertised FEC modes: Not reported
\tSpeed: {speed}Mb/s
\tDuplex: Full
\tAuto-negotiation: on
\tPort: Direct Attach Copper
\tPHYAD: 0
\tTransceiver: internal
\tLink detected: yes
"""
MODES = {
    1000: "1000baseKX/Full",
    10_000: "10000baseKR/Full",
    25_000: "25000baseCR/Full",
    50_000: "50000baseKR2/Full",
    100_000: "100000baseCR4/Full",
}
ALL = tuple(MODES)


def settings(speed: int, partner: tuple[int, ...], advertised: tuple[int, ...] = ALL) -> str:
    lists = {"supported": ALL, "advertised": advertised, "partner": partner}
    modes = {
        name: ("\n" + " " * 32).join(MODES[one] for one in speeds) or "Not reported" for name, speeds in lists.items()
    }
    return SETTINGS.format(speed=speed, **modes)


def connected(name: str, text: str, speed: int = 25_000, status: int = 0) -> Host:
    files = nic("ens1f0np0", speed=str(speed))
    return host(name, files, commands={"ethtool/ens1f0np0": Output(text, status=status)}, nics=("ens1f0np0",))


def test_modes_of_both_ends() -> None:
    ends = link_speeds(settings(25_000, (10_000, 25_000), (25_000,)))
    assert ends == (frozenset(ALL), frozenset({25_000}), frozenset({10_000, 25_000}), 25_000)


def test_a_whole_class_that_runs_slower_than_it_could_is_one_warning() -> None:
    hosts = [connected(f"n{number}", settings(25_000, ALL)) for number in range(8)]
    reported = wrong(of(LINK_MODES, *hosts))
    message = "25000 Mbit/s, both ends support 100000"
    assert reported == [(f"n{number}", "ens1f0np0", Outcome.WARN, message) for number in range(8)]


def test_a_host_that_offers_less_is_reported_so() -> None:
    ((*_, message),) = wrong(of(LINK_MODES, connected("n1", settings(10_000, ALL, (1000, 10_000)), 10_000)))
    assert message == PINNED["10000 Mbit/s, both ends support"]


@pytest.mark.parametrize(
    ("speed", "partner"),
    [
        (100_000, ALL),
        (25_000, (1000, 10_000, 25_000)),  # a switch of 25 Gbit/s, or a cable that splits a port
        (50_000, (50_000, 25_000)),
    ],
)
def test_the_best_that_both_ends_can_do_is_in_order(speed: int, partner: tuple[int, ...]) -> None:
    (result,) = of(LINK_MODES, connected("n1", settings(speed, partner), speed))
    assert (result.outcome, result.value) == (Outcome.PASS, speed)


def test_an_end_that_does_not_tell_is_not_judged() -> None:
    (result,) = of(LINK_MODES, connected("n1", settings(25_000, ())))
    assert result.outcome is Outcome.SKIP
    assert PINNED["25000 of 100000 Mbit/s"].begins(result.message)


def test_what_a_user_may_not_see_takes_nothing_from_the_rest() -> None:
    text = settings(25_000, ALL)
    (result,) = of(LINK_MODES, connected("n1", text, status=1))
    assert result.outcome is Outcome.WARN


@pytest.mark.parametrize(
    ("said", "outcome", "message"),
    [
        (Output(error="not installed"), Outcome.SKIP, "ethtool: not installed"),
        (Output(error="no answer in time"), Outcome.ERROR, "ethtool: no answer in time"),
        (Output("No data available\n", status=75), Outcome.SKIP, "ethtool: No data available"),
    ],
)
def test_why_there_is_nothing(said: Output, outcome: Outcome, message: str) -> None:
    one = host("n1", nic("ens1f0np0"), commands={"ethtool/ens1f0np0": said}, nics=("ens1f0np0",))
    (result,) = of(LINK_MODES, one)
    assert (result.outcome, result.message) == (outcome, message)
