"""Slingshot NICs, from samples of a host with two of them (synthetic: public names, invented values)."""

from __future__ import annotations

import pytest
from preflight_help import NOW, host, of, outcomes, rows_of, sysroot, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.slingshot import cxi, cxi_counters
from fablint.preflight.host import Host
from fablint.snapshot import Output
from fablint.snapshot.parsers.slingshot_tools import LINE_RATES
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

DEVICE = "/sys/class/cxi/cxi0/device"
TELEMETRY = f"{DEVICE}/telemetry"
RUN = "/run/cxi/cxi0"
GOOD, BAD = sysroot("cxi-2rail-good"), sysroot("cxi-2rail-bad")
CHECKS = rows_of(cxi, cxi_counters)
ACTIVE = {f"cxi_rh/cxi{number}": "active\n" for number in (0, 1)}


def grown(seconds: float = 4.0, **growth: float) -> Host:
    """The good host whose first NIC has counted so much per second after some seconds, and as much as it should."""
    usual = {"hni_pcs_good_cw": LINE_RATES["BS_200G"] / 5440}
    later = {
        path: f"{int(text.partition('@')[0])}@{NOW + seconds:.9f}"
        for path, text in GOOD.items()
        if "/telemetry/" in path
    }
    for name, rate in {**usual, **growth}.items():
        for device in ("cxi0", "cxi1") if name in usual and name not in growth else ("cxi0",):
            path = f"/sys/class/cxi/{device}/device/telemetry/{name}"
            first = int(GOOD.get(path, "0@0").partition("@")[0])
            later[path] = f"{first + round(rate * seconds)}@{NOW + seconds:.9f}"
    files = {**dict.fromkeys(later, f"0@{NOW:.9f}"), **GOOD}
    if "hni_pcs_good_cw" in growth:
        path = "/sys/class/cxi/cxi1/device/telemetry/hni_pcs_good_cw"
        later[path] = f"{int(GOOD[path].partition('@')[0]) + round(usual['hni_pcs_good_cw'] * seconds)}@{NOW + seconds}"
    return host(files=files, later=later, commands=ACTIVE)


def cassini_2() -> dict[str, str]:
    """The good host with the files of the next generation, at 400 Gbit/s."""
    moved = {
        "port/link": "port/0/link/state",
        "port/speed": "port/0/link/speed",
        "port/link_layer_retry": "port/0/llr/state",
        "port/loopback": "port/0/link/config/loopback",
        "port/pause": "port/0/link/config/pause_map",
    }
    files = {}
    for path, text in GOOD.items():
        for old, new in moved.items():
            path = path.replace(f"device/{old}", f"device/{new}") if path.endswith(f"device/{old}") else path
        files[path] = text.replace("BS_200G", "CK_400G")
    return files


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.id)
def test_a_good_host_is_silent(check: Check) -> None:
    results = of(check, grown())
    assert not wrong(results) and results
    assert {result.target for result in results} <= {"cxi0", "cxi1", ""}
    assert Outcome.SKIP in outcomes(of(check, host(files={}))), "a host without such a NIC is not a pass"


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.id)
def test_it_passes_what_it_sees(check: Check) -> None:
    """But for what needs a fleet, or a program."""
    alone = check in (cxi.CXI_SPEED, cxi.CXI_FIRMWARE, cxi.CXI_SERVICE)
    assert (Outcome.PASS in outcomes(of(check, grown()))) is not alone


@pytest.mark.parametrize(
    ("check", "file", "value", "message"),
    [
        (cxi.CXI_LINK, "port/link", "down", "link down"),
        (cxi.CXI_RETRY, "port/link_layer_retry", "off", "link layer retry off"),
        (cxi.CXI_LOOPBACK, "port/loopback", "internal", "loopback internal"),
        (cxi.CXI_PAUSE, "port/pause", "off", "pause off"),
    ],
)
def test_a_property_of_the_port_that_is_not_as_it_should_be(check: Check, file: str, value: str, message: str) -> None:
    results = of(check, host(files={**GOOD, f"{DEVICE}/{file}": value}))
    assert wrong(results) == [("n1", "cxi0", Outcome.FAIL, message)]


@pytest.mark.parametrize("check", [cxi.CXI_LINK, cxi.CXI_RETRY, cxi.CXI_LOOPBACK, cxi.CXI_PAUSE])
def test_the_next_generation_has_its_files_elsewhere(check: Check) -> None:
    files = cassini_2()
    assert outcomes(of(check, host(files=files))) == [Outcome.PASS, Outcome.PASS]
    broken = {path: "off" if "/llr/" in path or "pause" in path else "down" for path in files if "/port/0/" in path}
    assert outcomes(of(check, host(files={**files, **broken})))[0] in (Outcome.FAIL, Outcome.SKIP)


def test_of_a_link_that_is_down_only_the_link_is_reported() -> None:
    files = {**GOOD, f"{DEVICE}/port/link": "down", f"{DEVICE}/port/link_layer_retry": "off"}
    assert outcomes(of(cxi.CXI_RETRY, host(files=files))) == [Outcome.SKIP, Outcome.PASS]
    assert outcomes(of(cxi_counters.CXI_GOOD, host(files=files))) == [Outcome.SKIP, Outcome.SKIP]


def test_a_speed_that_differs_is_named_with_the_others() -> None:
    hosts = [host(f"n{number}", GOOD) for number in range(5)]
    hosts[2] = host("n2", {**GOOD, f"{DEVICE}/port/speed": "CD_100G"})
    assert wrong(of(cxi.CXI_SPEED, *hosts)) == [("n2", "cxi0", Outcome.FAIL, "speed CD_100G, 4 others BS_200G")]


def test_firmware_that_differs() -> None:
    hosts = [host(f"n{number}", GOOD) for number in range(4)]
    hosts[2] = host("n2", {**GOOD, f"{DEVICE}/uc/version": "1.5.41"})
    assert wrong(of(cxi.CXI_FIRMWARE, *hosts)) == [("n2", "cxi0", Outcome.WARN, "firmware 1.5.41, 3 others 1.6.0.326")]


def test_the_bad_sample() -> None:
    one = host(files=BAD)
    assert wrong(of(cxi.CXI_RETRY, one)) == [("n1", "cxi0", Outcome.FAIL, "link layer retry off")]
    assert wrong(of(cxi.CXI_FLAPS, one)) == [("n1", "cxi0", Outcome.FAIL, "link restarted 5 times in 1 h")]
    assert of(cxi.CXI_NID, one)[1].outcome is Outcome.SKIP  # its address is none of the fabric's


@pytest.mark.parametrize(
    ("ages", "outcome", "message"),
    [
        ([60] * 4, Outcome.PASS, ""),
        ([60] * 5, Outcome.FAIL, "link restarted 5 times in 1 h"),
        ([3601] * 5, Outcome.PASS, ""),
        ([7200] * 10, Outcome.WARN, "link restarted at least 10 times in 10 h"),
        ([60] * 10, Outcome.FAIL, "link restarted at least 10 times in 1 h"),
        ([36001] * 10, Outcome.PASS, ""),
        ([-500] * 10, Outcome.PASS, ""),  # the clock was set back since
    ],
)
def test_restarts_of_the_link(ages: list[int], outcome: Outcome, message: str) -> None:
    times = {f"{DEVICE}/link_restarts/time_{index}": f"{NOW - age:.0f}" for index, age in enumerate(ages)}
    found = of(cxi.CXI_FLAPS, host(files={**GOOD, **times}))[0]
    assert (found.outcome, found.message) == (outcome, message)


def test_uncorrected_codewords() -> None:
    assert wrong(of(cxi_counters.CXI_UNCORRECTED, grown(hni_pcs_uncorrected_cw=0.5))) == [
        ("n1", "cxi0", Outcome.FAIL, "uncorrected codewords: 2 in 4.0 s")
    ]


def test_uncorrected_codewords_since_the_last_time_warn() -> None:
    one = grown()
    telemetry = {"hni_pcs_uncorrected_cw": "0@1767586800.0"}
    one.snapshot.later["sys"]["class"]["cxi"]["cxi0"]["device"]["telemetry"]["hni_pcs_uncorrected_cw"] = f"7@{NOW + 4}"
    one.snapshot.counters["sys"]["class"]["cxi"]["cxi0"]["device"]["telemetry"]["hni_pcs_uncorrected_cw"] = f"7@{NOW}"
    device = {"cxi0": {"device": {"telemetry": telemetry}}}
    one.before = {"time": NOW - 7200, "counters": {"sys": {"class": {"cxi": device}}}}
    assert wrong(of(cxi_counters.CXI_UNCORRECTED, one)) == [
        ("n1", "cxi0", Outcome.WARN, "uncorrected codewords: 7 in 2 h")
    ]


@pytest.mark.parametrize(
    ("rate", "outcome"),
    [(0.9e-7, Outcome.PASS), (1.1e-7, Outcome.WARN), (0.9e-6, Outcome.WARN), (2.5e-6, Outcome.FAIL)],
)
def test_bit_errors_before_correction(rate: float, outcome: Outcome) -> None:
    found = of(cxi_counters.CXI_CORRECTED, grown(hni_pcs_corrected_cw=rate * 212.5e9))[0]
    assert found.outcome is outcome
    assert found.value == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(
    ("speed", "rate", "outcome"),
    [
        ("BS_200G", 39.0625e6, Outcome.PASS),
        ("CK_400G", 78.125e6, Outcome.PASS),
        ("CK_400G", 39.0625e6, Outcome.FAIL),  # the figure of 200G, as it was copied in places
        ("BS_200G", 39.0625e6 * 0.985, Outcome.FAIL),
        ("BS_200G", 39.0625e6 * 0.995, Outcome.PASS),
        ("XX_900G", 39.0625e6, Outcome.SKIP),
    ],
)
def test_good_codewords_are_those_of_the_speed(speed: str, rate: float, outcome: Outcome) -> None:
    one = grown(hni_pcs_good_cw=rate)
    one.snapshot.files["sys"]["class"]["cxi"]["cxi0"]["device"]["port"]["speed"] = speed
    assert of(cxi_counters.CXI_GOOD, one)[0].outcome is outcome


def test_good_codewords_that_were_not_read_anew_are_not_judged() -> None:
    assert outcomes(of(cxi_counters.CXI_GOOD, host(files=GOOD))) == [Outcome.SKIP, Outcome.SKIP]


@pytest.mark.parametrize(
    ("check", "name", "rate", "message"),
    [
        (cxi_counters.CXI_REPLAY, "hni_llr_tx_replay_event", 12.0, "12 tx replays/s"),
        (cxi_counters.CXI_PAUSED, "hni_rx_paused_3", 0.25e9, "rx class 3 paused 25 % of the time"),
        (cxi_counters.CXI_ERRORS, "hni_rx_bad_opt", 2.0, "rx_bad_opt 8 in 4.0 s"),
        (cxi_counters.CXI_ERRORS, "hni_pfc_fifo_oflw_cntr_2", 1.0, "pfc_fifo_oflw_cntr_2 4 in 4.0 s"),
    ],
)
def test_counters_that_grow(check: Check, name: str, rate: float, message: str) -> None:
    assert wrong(of(check, grown(**{name: rate}))) == [("n1", "cxi0", Outcome.WARN, message)]


def test_few_replays_and_pauses_are_usual() -> None:
    one = grown(hni_llr_rx_replay_event=0.5, hni_tx_paused_0=0.005e9)
    assert not wrong(of(cxi_counters.CXI_REPLAY, one)) and not wrong(of(cxi_counters.CXI_PAUSED, one))


def test_a_retry_handler_that_is_not_active() -> None:
    failed = {**ACTIVE, "cxi_rh/cxi0": Output("failed\n", "exit status 3", 3)}
    assert wrong(of(cxi.CXI_RETRY_HANDLER, host(files=GOOD, commands=failed))) == [
        ("n1", "cxi0", Outcome.FAIL, "retry handler failed")
    ]
    absent = {"cxi_rh/cxi0": Output(error="not installed")}
    files = {path: text for path, text in GOOD.items() if not path.startswith("/run/")}
    assert outcomes(of(cxi.CXI_RETRY_HANDLER, host(files=files, commands=absent))) == [Outcome.SKIP, Outcome.SKIP]


def test_what_the_retry_handler_gave_up() -> None:
    later = {f"{RUN}/pkts_cancelled_o": "3", f"{RUN}/sct_timeouts": "9"}
    results = of(cxi.CXI_RETRY_HANDLER, host(files=GOOD, later=later, commands=ACTIVE))
    assert wrong(results) == [("n1", "cxi0", Outcome.WARN, "pkts cancelled o: 3 in 4.0 s")]


SERVICES = """cxi0
----
 ID: 1 (DEFAULT)
   LNIs/RGID            : 1
   Enabled              : {}
 ID: 2
   Enabled              : No
cxi1
----
 ID: 1 (DEFAULT)
   Enabled              : Yes
"""


def test_a_service_has_to_be_enabled() -> None:
    said = {state: host(files=GOOD, commands={"cxi_service": SERVICES.format(state)}) for state in ("Yes", "No")}
    assert outcomes(of(cxi.CXI_SERVICE, said["Yes"])) == [Outcome.PASS, Outcome.PASS]
    assert wrong(of(cxi.CXI_SERVICE, said["No"])) == [("n1", "cxi0", Outcome.WARN, "no service is enabled")]
    assert outcomes(of(cxi.CXI_SERVICE, host(files=GOOD, commands={"cxi_service": "gibberish"}))) == [Outcome.ERROR]


def test_a_nid_that_is_not_that_of_the_address() -> None:
    files = {**GOOD, f"{DEVICE}/properties/nid": "0x8b4"}
    assert wrong(of(cxi.CXI_NID, host(files=files))) == [
        ("n1", "cxi0", Outcome.FAIL, PINNED["NID 0x008b4, but 0x008b3"])
    ]
    assert outcomes(of(cxi.CXI_NID, host(files={**GOOD, f"{DEVICE}/properties/nid": "2227"})))[0] is Outcome.PASS
