"""Counters of drivers: names as in the kernel's documentation of mlx5 (counters.rst) and in bnxt_ethtool.c."""

from __future__ import annotations

import pytest
from preflight_help import host, nic, of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.ethtool_settings import PAUSE_FRAMES
from fablint.preflight.checks.network.nic_counters import NIC_COUNTERS
from fablint.preflight.checks.network.pause_totals import PAUSE_TOTALS
from fablint.preflight.host import Host
from fablint.snapshot.agent.tuning import kept_of
from fablint.snapshot.host_snapshot import Output
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

NIC = "ens3f0np0"
MLX5 = (
    "NIC statistics:\n     rx_packets: 9000\n     rx_out_of_buffer: {room}\n     rx7_packets: 5\n"
    "     rx_crc_errors_phy: 0\n     rx_symbol_err_phy: {symbols}\n     rx_discards_phy: {discards}\n"
    "     rx_prio3_pause: 7\n"
)


def counted(name: str, first: dict[str, int], last: dict[str, int] | None = None) -> Host:
    """A host that is up for ten days; what it prints is reduced as on a host."""
    usual = {"room": 0, "symbols": 0, "discards": 3}
    texts = {"ethtool-S": {**usual, **first}, "ethtool-S-later": {**usual, **first, **(last or {})}}
    commands = {
        f"{key}/{NIC}": str(kept_of(f"{key}/{NIC}", {"output": MLX5.format(**values), "status": 0})["output"])
        for key, values in texts.items()
    }
    return host(name, {**nic(NIC), "/proc/uptime": "864000.0 1.0"}, commands=commands, nics=(NIC,))


def fleet(odd: Host) -> list[Host]:
    return [*(counted(f"n{number}", {}) for number in range(2, 8)), odd]


def test_healthy_nics_are_quiet_and_were_looked_at() -> None:
    results = of(NIC_COUNTERS, *fleet(counted("n1", {"discards": 40})))
    assert {result.outcome for result in results} == {Outcome.PASS}


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        ({}, {"symbols": 12}, "rx_symbol_err_phy 12 in some seconds"),
        ({"room": 5}, {"room": 2005}, "rx_out_of_buffer 2000 in some seconds; rx_out_of_buffer 2,005 so far"),
        ({"symbols": 70_000}, {}, "rx_symbol_err_phy 70,000 so far, at most 0 on most of 7 hosts"),
        ({"discards": 5000}, {}, "rx_discards_phy 5,000 so far, at most 3 on most of 7 hosts"),
    ],
)
def test_a_nic_that_finds_symbols_damaged_is_named(first: dict[str, int], last: dict[str, int], message: str) -> None:
    ((name, target, outcome, reported),) = wrong(of(NIC_COUNTERS, *fleet(counted("n1", first, last))))
    assert (name, target, outcome) == ("n1", NIC, Outcome.WARN)
    assert reported.startswith(message)


@pytest.mark.parametrize(
    ("first", "messages"),
    [
        ({"symbols": 70_000}, ["rx_symbol_err_phy 70,000 since boot, 7,000 per day"]),
        ({"symbols": 900}, []),  # 90 per day
        ({"discards": 70_000, "room": 70_000}, []),  # of congestion
    ],
)
def test_damaged_symbols_since_boot_are_judged_without_peers(first: dict[str, int], messages: list[str]) -> None:
    assert [message for *_, message in wrong(of(NIC_COUNTERS, counted("n1", first)))] == messages


def test_totals_that_all_like_nics_have_are_no_fault_of_one() -> None:
    hosts = [counted(f"n{number}", {"discards": 5000 + number}) for number in range(8)]
    assert wrong(of(NIC_COUNTERS, *hosts)) == []


def test_frames_that_nics_of_all_like_hosts_discard_are_no_fault_of_one() -> None:
    hosts = [counted(f"n{number}", {}, {"discards": 500 + number}) for number in range(8)]
    assert wrong(of(NIC_COUNTERS, *hosts)) == []


def paused(name: str, received: int, storms: int = 0) -> Host:
    text = f"     rx_prio3_pause: {received}\n     tx_prio3_pause: 5\n     tx_pause_storm_error_events: {storms}\n"
    return host(
        name, {**nic(NIC), "/proc/uptime": "864000.0 1.0"}, commands={f"ethtool-S-later/{NIC}": text}, nics=(NIC,)
    )


def test_pause_frames_since_the_boot_far_above_those_of_others() -> None:
    hosts = [paused(f"n{number}", 900 + number) for number in range(6)]
    assert wrong(of(PAUSE_TOTALS, *hosts)) == []
    ((name, target, outcome, said),) = wrong(of(PAUSE_TOTALS, *hosts, paused("odd", 5_000_000)))
    assert (name, target, outcome) == ("odd", NIC, Outcome.WARN)
    assert PINNED["received 5,000,000 pause"].begins(said)
    ((_, _, _, said),) = wrong(of(PAUSE_TOTALS, *hosts, paused("odd", 900, storms=3)))
    assert said == PINNED["3 pause storms since boot"]
    assert wrong(of(PAUSE_TOTALS, *(paused(f"n{number}", 5_000_000 + number, 4) for number in range(6)))) == []
    assert wrong(of(PAUSE_TOTALS, paused("n1", 5_000_000))) == []


def test_counters_of_damage_are_no_pauses() -> None:
    hosts = [counted(f"n{number}", {}, {"discards": 900_000 if number else 3}) for number in range(8)]
    assert wrong(of(PAUSE_FRAMES, *hosts)) == []


DRIVERS = {  # names in the sources of Linux 6.18; those of a queue are no counters of the NIC
    "bnxt_en": ("rx_fcs_err_frames", "rx_align_err_frames", "rx_pcs_symbol_err", "rx_fec_uncorrectable_blocks"),
    "ice": ("rx_crc_errors.nic", "illegal_bytes.nic"),
    "mlx5": ("rx_symbol_err_phy", "rx_crc_errors_phy"),
}
TIMEOUTS = ("tx_timeout", "wd_expired", "reset_fail", "ena_admin_q_no_completion", "tx_timeouts", "adminq_timeouts")
QUIET = (
    "tx_hwtstamp_timeouts",
    "tx_hwtstamp_discarded",
    "rx_bits",
    "rx_corrected_bits",
    "rx7_discards",
    "[0]: rx_discards",
)


def printed(name: str, first: int, last: int) -> Host:
    texts = {key: f"NIC statistics:\n     {name}: {count}\n" for key, count in (("-S", first), ("-S-later", last))}
    commands = {
        f"ethtool{key}/{NIC}": str(kept_of(f"ethtool{key}/{NIC}", {"output": text, "status": 0})["output"])
        for key, text in texts.items()
    }
    return host("n1", {**nic(NIC), "/proc/uptime": "864000.0 1.0"}, commands=commands, nics=(NIC,))


@pytest.mark.parametrize("name", [name for names in DRIVERS.values() for name in names])
def test_damage_by_driver(name: str) -> None:
    assert [said for *_, said in wrong(of(NIC_COUNTERS, printed(name, 3, 14)))] == [f"{name} 11 in some seconds"]
    assert wrong(of(NIC_COUNTERS, printed(name, 3, 5))) == []


@pytest.mark.parametrize("name", [*TIMEOUTS, "tx_timeout.nic"])
def test_a_single_timeout_is_seen(name: str) -> None:
    assert [said for *_, said in wrong(of(NIC_COUNTERS, printed(name, 3, 4)))] == [f"{name} 1 in some seconds"]
    assert wrong(of(NIC_COUNTERS, printed(name, 3, 3))) == []


@pytest.mark.parametrize("name", QUIET)
def test_counters_of_other_things(name: str) -> None:
    assert wrong(of(NIC_COUNTERS, printed(name, 0, 100_000))) == []


def test_why_there_is_nothing() -> None:
    late = Output(error="no answer in time")
    one = host("n1", nic(NIC), commands={f"ethtool-S/{NIC}": late, f"ethtool-S-later/{NIC}": late}, nics=(NIC,))
    assert [(result.outcome, result.message) for result in of(NIC_COUNTERS, one)] == [
        (Outcome.ERROR, "ethtool: no answer in time")
    ]
    none = host("n1", nic(NIC), nics=(NIC,))
    assert [result.outcome for result in of(NIC_COUNTERS, none)] == [Outcome.SKIP]
