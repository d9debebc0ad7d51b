"""What network interfaces count: flaps, errors, drops."""

from __future__ import annotations

import pytest
from preflight_help import NOW, host, nic, of, outcomes, sample, wrong

from fablint.model.preflight_results import Fitness, Outcome, Result
from fablint.preflight.check import Check
from fablint.preflight.checks.network.link_counters import LINK_DROPS, LINK_ERRORS, LINK_FLAPS
from fablint.preflight.checks.network.loss import PING_LOSS
from fablint.preflight.host import Host
from fablint.report.preflight.preflight_text import fitness_table
from fablint.text.actions import advice
from fablint.text.fitness_findings import findings
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

AT = "/sys/class/net/hsn0"
STATISTICS = f"{AT}/statistics"
COUNTED = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_frame_errors", "rx_missed_errors", "rx_fifo_errors")
COUNTED += ("rx_over_errors", "rx_dropped", "tx_dropped", "rx_packets", "tx_packets")


def flapping(name: str, before: int, after: int, **more: object) -> Host:
    first = {**nic(), f"{AT}/carrier_down_count": str(before)}
    return host(name, first, later={f"{AT}/carrier_down_count": str(after)}, **more)  # type: ignore[arg-type]


def counting(name: str = "n1", window_s: float = 4.0, flaps: int = 0, **grown: int) -> Host:
    """A NIC whose counters grow by so much."""
    first = {f"{STATISTICS}/{counter}": "1000" for counter in COUNTED}
    later = {f"{STATISTICS}/{counter}": str(1000 + more) for counter, more in grown.items()}
    downs = f"{AT}/carrier_down_count"
    return host(name, {**nic(), **first, downs: "1"}, later={**later, downs: str(1 + flaps)}, window_s=window_s)


def after_three_flaps(name: str = "n1") -> Host:
    """As a veth pair showed it after its peer was taken down three times."""
    lines = (line.split(": ") for line in sample("host/sysfs-net-hsn0-after-3-flaps.txt").splitlines())
    return host(name, {f"{AT}/{key}": value for key, value in lines})


def test_a_flap_within_the_window() -> None:
    assert wrong(of(LINK_FLAPS, flapping("n1", 1, 2))) == [("n1", "hsn0", Outcome.WARN, "link went down: 1 in 4.0 s")]
    assert wrong(of(LINK_FLAPS, flapping("n1", 1, 6))) == [("n1", "hsn0", Outcome.FAIL, "link went down: 5 in 4.0 s")]
    assert outcomes(of(LINK_FLAPS, flapping("n1", 7, 7))) == [Outcome.PASS]


def test_flaps_since_the_reading_that_was_kept() -> None:
    """Five within an hour are too many, five within two days are not; ten within ten hours are."""
    for flaps, hours, outcome in ((5, 0.9, Outcome.FAIL), (5, 48, Outcome.WARN), (10, 9.9, Outcome.FAIL)):
        kept = {"sys": {"class": {"net": {"hsn0": {"carrier_down_count": "3"}}}}}
        one = flapping("n1", 3 + flaps, 3 + flaps)
        one.before = {"time": NOW + 4 - hours * 3600, "counters": kept}
        assert outcomes(of(LINK_FLAPS, one)) == [outcome], (flaps, hours)


def test_drivers_that_count_changes_count_two_for_a_flap() -> None:
    one = host("n1", nic(carrier_changes="2"), later={f"{AT}/carrier_changes": "8"})
    assert wrong(of(LINK_FLAPS, one)) == [("n1", "hsn0", Outcome.WARN, "link went down: 3 in 4.0 s")]
    bare = {path: text for path, text in nic().items() if "carrier" not in path}
    assert outcomes(of(LINK_FLAPS, host("n1", bare), host("n2"))) == [Outcome.SKIP] * 2


def test_a_switch_that_was_restarted_flaps_for_all() -> None:
    assert outcomes(of(LINK_FLAPS, *(flapping(f"n{index}", 1, 2) for index in range(8)))) == [Outcome.PASS] * 8


def test_a_link_that_flapped_before_anybody_looked_is_reported_by_the_others() -> None:
    others = [flapping(f"n{index}", 1, 1) for index in range(2, 9)]
    assert wrong(of(LINK_FLAPS, after_three_flaps(), *others)) == [
        ("n1", "hsn0", Outcome.WARN, PINNED["link went down 4 times since"])
    ]
    assert not wrong(of(LINK_FLAPS, *(after_three_flaps(f"n{index}") for index in range(8))))
    assert not wrong(of(LINK_FLAPS, after_three_flaps()))


def test_a_host_that_is_up_for_a_year_may_have_seen_more_flaps() -> None:
    def up(name: str, seconds: str, flaps: int) -> Host:
        return host(name, {**nic(), f"{AT}/carrier_down_count": str(flaps), "/proc/uptime": f"{seconds} 12.1"})

    old, fresh = up("old", "31536000.5", 9), [up(f"n{index}", "86400.0", 1) for index in range(8)]
    assert not wrong(of(LINK_FLAPS, old, *fresh))
    assert len(wrong(of(LINK_FLAPS, up("n9", "86400.0", 9), *fresh))) == 1


@pytest.mark.parametrize("counter", ["rx_errors", "tx_errors", "rx_crc_errors", "rx_frame_errors"])
def test_errors(counter: str) -> None:
    results = of(LINK_ERRORS, counting(rx_packets=1000, **{counter: 3}), counting("n2", rx_packets=1000))
    assert wrong(results) == [("n1", "hsn0", Outcome.WARN, f"{counter} 3 in 4.0 s")]


def test_as_many_errors_as_ethernet_permits_are_none() -> None:
    assert not wrong(of(LINK_ERRORS, counting(rx_packets=10**9, rx_crc_errors=90)))
    assert wrong(of(LINK_ERRORS, counting(rx_packets=10**9, rx_crc_errors=110)))
    assert outcomes(of(LINK_ERRORS, host("n1", nic()))) == [Outcome.SKIP]


@pytest.mark.parametrize(
    ("errors", "packets", "hosts", "count"),
    [
        ([9000, 0, 0, 3], 10**6, 4, 1),
        ([9000], 10**6, 1, 1),  # alone: far above the rate of Ethernet
        ([9000, 0], 10**6, 2, 1),
        ([900], 10**6, 1, 0),  # alone: the cable may have been replaced since
        ([9000, 8000, 9000, 7000], 10**6, 4, 0),
        ([90, 0, 0, 0], 10**6, 4, 0),
        ([9000, 0, 0, 0], 10**12, 4, 0),
        ([900_000, 0, 0, 0], 10**12, 4, 1),
    ],
)
def test_totals_at_the_first_reading(errors: list[int], packets: int, hosts: int, count: int) -> None:
    path = "/sys/class/net/hsn0/statistics/"
    fleet = [
        host(f"n{index}", {**nic(), f"{path}rx_crc_errors": str(total), f"{path}rx_packets": str(packets)})
        for index, total in enumerate(errors)
    ]
    assert len(fleet) == hosts
    assert [name for name, *_ in wrong(of(LINK_ERRORS, *fleet))] == ["n0"] * count


@pytest.mark.parametrize(("errors", "packets", "bad"), [(5_000, 10**6, True), (5_000, 10**12, False), (900, 9, False)])
def test_errors_since_boot_of_a_host_without_peers(errors: int, packets: int, bad: bool) -> None:
    at = "/sys/class/net/hsn0/statistics"
    files = {f"{at}/rx_crc_errors": str(errors), f"{at}/rx_packets": str(packets)}
    messages = [message for *_, message in wrong(of(LINK_ERRORS, host("n1", {**nic("hsn0"), **files}, nics=("hsn0",))))]
    assert messages == ["rx_crc_errors 5,000 since boot, 0.005 of the packets"] * bad


@pytest.mark.parametrize(("lost", "hours", "bad"), [(57, 48, True), (57, 2000, False), (9, 2, False), (9, 0.1, False)])
def test_flaps_since_boot_of_a_host_without_peers(lost: int, hours: float, bad: bool) -> None:
    files = {**nic("hsn0", carrier_down_count=str(lost)), "/proc/uptime": f"{hours * 3600:.2f} 9.0"}
    messages = [message for *_, message in wrong(of(LINK_FLAPS, host("n1", files, nics=("hsn0",))))]
    assert messages == ["link went down 57 times since boot, 1.2 times per hour"] * bad


def test_packets_that_are_dropped_for_want_of_room() -> None:
    results = of(LINK_DROPS, counting(rx_packets=100_000, rx_missed_errors=50, rx_dropped=50))
    assert wrong(results) == [("n1", "hsn0", Outcome.WARN, "rx_missed_errors 50 in 4.0 s")]
    assert not wrong(of(LINK_DROPS, counting(rx_packets=10**9, rx_missed_errors=50)))


def fitness_of(hosts: list[Host], *lost: Result) -> Fitness:
    """Flaps, errors and drops of the hosts, beside lost pings."""
    checks: list[Check] = [LINK_FLAPS, LINK_ERRORS, LINK_DROPS]
    results = [result for check in checks for result in of(check, *hosts)]
    rules = {check.id: check for check in (*checks, PING_LOSS)}
    return Fitness([host.name for host in hosts], [*results, *lost], rules)


@pytest.mark.parametrize("cause", ["flap", "damaged frames", "lost pings"])
def test_rings_are_no_advice_beside_a_cause_of_the_drops(cause: str) -> None:
    """The rings of another host are: its drops have no other cause."""
    damaged, flaps = 50 * (cause == "damaged frames"), 1 * (cause == "flap")
    first = counting("n1", rx_packets=100_000, rx_missed_errors=50, rx_crc_errors=damaged, flaps=flaps)
    lost = [PING_LOSS.failure("n1", "hsn0", "3 of 10 pings lost")] * (cause == "lost pings")
    fitness = fitness_of([first, counting("n2", rx_packets=100_000, rx_missed_errors=50)], *lost)
    drops = {result.host: fitness.remedy(result) for result in fitness.results if result.check == LINK_DROPS.id}
    assert "cable" in drops["n1"] and "rings" not in drops["n1"]
    assert "rings" in drops["n2"]
    steps = {finding.hosts: advice(finding.next_step) for finding in findings(fitness) if finding.component == "config"}
    assert steps == {("n1",): drops["n1"], ("n2",): drops["n2"]}
    assert "rings" in fitness_table(fitness, 300)
    assert "rings" not in fitness_table(fitness_of([first], *lost), 300)


def test_unwanted_frames_are_dropped_on_every_idle_host() -> None:
    idle = [counting(f"n{index}", rx_packets=1000, rx_dropped=50 + index % 3) for index in range(8)]
    assert not wrong(of(LINK_DROPS, *idle))
    assert not wrong(of(LINK_DROPS, counting(rx_packets=100, rx_dropped=90)))
    quiet = [counting(f"n{index}", rx_packets=10_000, rx_dropped=1) for index in range(2, 9)]
    assert wrong(of(LINK_DROPS, counting(rx_packets=10_000, rx_dropped=400), *quiet)) == [
        ("n1", "hsn0", Outcome.WARN, PINNED["rx_dropped 400 in 4.0 s"])
    ]
