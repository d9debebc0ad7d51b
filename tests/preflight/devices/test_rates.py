"""Counters are judged by what they grow in an hour, however often hosts are looked at; at first by those of peers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pytest
from preflight_help import NOW, host, of, sysroot, wrong

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight import Fleet, Host
from fablint.preflight.check import Check
from fablint.preflight.checks.fabric.infiniband_fabric import FABRIC_ERRORS
from fablint.preflight.checks.host.pcie import PCIE_ERRORS
from fablint.preflight.checks.infiniband.port_counters import IB_ERRORS
from fablint.preflight.checks.infiniband.rdma_loss import IB_LOSS
from fablint.preflight.checks.slingshot.cxi_counters import CXI_ERRORS
from fablint.snapshot.host_snapshot import Output, Snapshot
from fablint.workflows.counter_history import CounterHistory
from pinned import pinned_by
from snapshot_trees import nested

PINNED = pinned_by("preflight.toml", __file__)

MLX5, CXI = sysroot("mlx5-2rail-good"), sysroot("cxi-2rail-good")
PORT = "/sys/class/infiniband/mlx5_0/ports/1"
TELEMETRY = "/sys/class/cxi/cxi0/device/telemetry"
HOUR, MINUTE = 3600.0, 60.0
KINDS = [  # a check, the file of a counter, and its text for a figure at a time
    (IB_ERRORS, MLX5, f"{PORT}/counters/symbol_error", "{0}"),
    (IB_LOSS, MLX5, f"{PORT}/hw_counters/packet_seq_err", "{0}"),
    (PCIE_ERRORS, MLX5, "/sys/class/infiniband/mlx5_0/device/aer_dev_correctable", "RxErr {0}\nTOTAL_ERR_COR {0}"),
    (CXI_ERRORS, CXI, f"{TELEMETRY}/hni_rx_bad_opt", "{0}@{1:.3f}"),
]


def snapshot(files: dict[str, str], path: str, text: str, figure: int, moment: float, name: str = "n1") -> Snapshot:
    """A host whose counter stands still at a figure during the snapshot."""
    first = nested({**files, path: text.format(figure, moment)})
    later = nested({**files, path: text.format(figure, moment + 4)})
    return Snapshot(name, time=moment, window_s=4.0, files=first, counters=first, later=later)


def looked(readings: CounterHistory, check: Check, taken: Snapshot) -> list[Result]:
    """One run of preflight: what the check says, and the reading that is kept."""
    results = list(check.results(Fleet([Host(taken, readings.before(taken), partial(readings.older, taken))])))
    readings.keep([taken])
    return results


@pytest.mark.parametrize(("check", "files", "path", "text"), KINDS)
def test_nine_in_every_run_are_seen_after_an_hour(check, files, path, text, tmp_path):
    outcomes = []
    for run in range(13):
        taken = snapshot(files, path, text, 1000 + 9 * run, NOW + 10 * MINUTE * run)
        outcomes.append(bool(wrong(looked(CounterHistory(tmp_path), check, taken))))
    assert not any(outcomes[:2])  # 9 in 10 minutes may be a single event
    assert all(outcomes[7:])


@pytest.mark.parametrize(("check", "files", "path", "text"), KINDS)
@pytest.mark.parametrize("case", [(9, 1, False), (11, 1, True), (60, 24, False), (260, 24, True)])
def test_it_is_the_rate_that_counts(check, files, path, text, case, tmp_path):
    growth, hours, bad = case
    looked(CounterHistory(tmp_path), check, snapshot(files, path, text, 50, NOW))
    results = looked(CounterHistory(tmp_path), check, snapshot(files, path, text, 50 + growth, NOW + hours * HOUR))
    assert bool(wrong(results)) is bad


def test_a_fatal_error_is_reported_for_days_and_corrected_ones_are_not(tmp_path):
    at = "/sys/class/infiniband/mlx5_0/device/aer_dev_fatal"
    for count, days in ((0, 0), (1, 3)):
        taken = snapshot(MLX5, at, "Undefined {0}\nTOTAL_ERR_FATAL {0}", count, NOW + days * 24 * HOUR)
        results = looked(CounterHistory(tmp_path), PCIE_ERRORS, taken)
    assert [(one[2], one[3]) for one in wrong(results)] == [(Outcome.FAIL, "fatal PCI Express errors: 1 in 3 d")]


def test_few_readings_are_kept_and_old_ones_go(tmp_path):
    path = f"{PORT}/counters/symbol_error"
    for run in range(4 * 24 * 3):
        CounterHistory(tmp_path).keep([snapshot(MLX5, path, "{0}", run, NOW + 15 * MINUTE * run)])
    names = sorted(one.name.partition("-")[0] for one in tmp_path.iterdir())
    assert names == ["n1.day", "n1.day", "n1.gz", "n1.hour", "n1.hour"]
    last = snapshot(MLX5, path, "{0}", 288, NOW + 72 * HOUR)
    ages = [(last.time - one["time"]) / HOUR for one in CounterHistory(tmp_path).older(last)]
    assert all(age > 0 for age in ages)
    assert any(age <= 2 for age in ages) and any(24 - 1 < age <= 48 for age in ages)


def test_the_first_reading_of_the_present_hour_counts(tmp_path):
    """Six in each of three runs within one hour: no run has ten, and no reading is of an earlier hour."""
    path = f"{PORT}/counters/symbol_error"
    begin = NOW // HOUR * HOUR + 5 * MINUTE
    outcomes = []
    for run in range(4):
        taken = snapshot(MLX5, path, "{0}", 1000 + 6 * run, begin + 10 * MINUTE * run)
        outcomes.append(bool(wrong(looked(CounterHistory(tmp_path), IB_ERRORS, taken))))
    assert outcomes == [False, False, True, True]


def test_readings_of_another_boot_or_machine_are_not_compared_with(tmp_path):
    path, boot = f"{PORT}/counters/symbol_error", "/proc/sys/kernel/random/boot_id"
    readings = CounterHistory(tmp_path)
    readings.keep([snapshot({**MLX5, boot: "one"}, path, "{0}", 0, NOW)])
    now = snapshot({**MLX5, boot: "two"}, path, "{0}", 5000, NOW + 3 * HOUR)
    assert (readings.before(now), CounterHistory(tmp_path).older(now)) == (None, [])


@pytest.mark.parametrize("octets", [b"", b"no gzip", b"\x1f\x8b\x08\x00"])
def test_a_reading_that_is_spoilt_is_left_alone(octets, tmp_path):
    taken = snapshot(MLX5, f"{PORT}/counters/symbol_error", "{0}", 5, NOW)
    CounterHistory(tmp_path).keep([taken])
    for path in tmp_path.iterdir():
        path.write_bytes(octets)
    (tmp_path / "n1.hour-x.gz").write_bytes(b"odd")
    later = snapshot(MLX5, f"{PORT}/counters/symbol_error", "{0}", 5, NOW + 2 * HOUR)
    assert CounterHistory(tmp_path).older(later) == []
    looked(CounterHistory(tmp_path), IB_ERRORS, later)


# ------------------------------------------------------------------------------------------------ the first reading


def fleet(figures: Iterable[int], days: float = 1.0, **more: str) -> list[Host]:
    """Hosts that are looked at for the first time, with so many symbol errors each."""
    path, up = f"{PORT}/counters/symbol_error", {"/proc/uptime": f"{days * 86400:.2f} 9.0"}
    return [host(f"n{index}", {**MLX5, **more, **up, path: str(figure)}) for index, figure in enumerate(figures)]


def test_the_first_look_compares_totals_with_those_of_peers():
    found = wrong(of(IB_ERRORS, *fleet([0, 3, 0, 5000, 1, 0, 2, 0])))
    assert found == [
        ("n3", "mlx5_0/1", Outcome.WARN, PINNED["symbol_error 5000 so far"]),
    ]


@pytest.mark.parametrize(
    ("figures", "days"),
    [
        ([5000] * 8, 1),  # all have it: it says nothing of one
        ([0, 0, 0, 99, 0, 0, 0, 0], 1),  # few
        ([0, 0, 0, 5000, 0, 0, 0, 0], 1000),  # in years: a cable was moved once
        ([0, 5000], 30),  # hardly any peers, and fewer per hour than the limit
        ([99], 0.1),  # alone, and few
    ],
)
def test_totals_that_say_nothing(figures, days):
    assert wrong(of(IB_ERRORS, *fleet(figures, days))) == []


@pytest.mark.parametrize("others", [0, 1])
def test_totals_of_a_host_without_peers_are_judged_by_the_time_since_the_boot(others):
    ((name, target, outcome, message),) = wrong(of(IB_ERRORS, *fleet([5000, *[0] * others])))
    assert (name, target, outcome) == ("n0", "mlx5_0/1", Outcome.WARN)
    assert "5000 since boot, 208 per hour" in message


@pytest.mark.parametrize(("check", "files", "path", "text"), KINDS)
def test_all_counters_of_a_host_without_peers_have_a_first_look(check, files, path, text):
    taken = snapshot({**files, "/proc/uptime": "36000.00 9.0"}, path, text, 7000, NOW)
    ((_, _, outcome, message),) = wrong(of(check, Host(taken)))
    assert outcome is Outcome.WARN
    assert "7000 since boot, 700 per hour" in message


def test_a_host_that_was_looked_at_before_is_judged_by_its_rate():
    hosts = fleet([0, 3, 0, 5000, 1, 0, 2, 0])
    hosts[3].before = {"time": NOW - HOUR, "counters": hosts[3].snapshot.counters}
    assert wrong(of(IB_ERRORS, *hosts)) == []


@pytest.mark.parametrize(("check", "files", "path", "text"), KINDS)
def test_all_counters_have_a_first_look(check, files, path, text):
    hosts = [
        Host(snapshot(files, path, text, 7000 if number == 2 else number, NOW, f"n{number}")) for number in range(6)
    ]
    ((name, _, outcome, message),) = wrong(of(check, *hosts))
    assert (name, outcome) == ("n2", Outcome.WARN)
    assert "7000 so far" in message


# ------------------------------------------------------------------------------------------------ the fabric's ports


def asked(count: int, moment: float) -> Snapshot:
    text = (
        'Errors for 0x000200 "leaf1"\n   GUID 0x200 port 3: [SymbolErrorCounter == '
        f"{count}]\n\n## Summary: 4 nodes checked, 1 bad nodes found\n"
    )
    return Snapshot("admin", time=moment, level="fabric", commands={"ibqueryerrors": Output(text, status=0)})


@pytest.mark.parametrize(
    ("counts", "minutes", "bad"),
    [([100, 109], 10, False), ([100, 154], 60, True), ([100, 130], 24 * 60, False), ([100, 400], 24 * 60, True)],
)
def test_ports_of_switches_are_judged_by_the_hour_too(counts, minutes, bad):
    now = asked(counts[1], NOW)
    results = list(
        FABRIC_ERRORS.results(Fleet([], fabric=now, fabric_before=[asked(counts[0], NOW - minutes * MINUTE)]))
    )
    assert bool(wrong(results)) is bad
