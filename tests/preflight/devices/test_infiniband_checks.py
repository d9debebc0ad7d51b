"""Ports of RDMA devices and what is behind PCI Express, from samples of a host with two ConnectX (synthetic)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from preflight_help import NOW, host, nested, of, outcomes, rows_of, sample, sysroot, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.host import pcie
from fablint.preflight.checks.infiniband import omnipath, port_counters, ports, rdma_loss
from fablint.preflight.host import Host
from fablint.snapshot import Output
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

GOOD, BAD = sysroot("mlx5-2rail-good"), sysroot("mlx5-2rail-bad")
SLINGSHOT = sysroot("cxi-2rail-bad")
PORT = "/sys/class/infiniband/{}/ports/1/{}"
LINKS = {
    "/sys/class/infiniband/mlx5_0/device": "../../../0000:3b:00.0",
    "/sys/class/infiniband/mlx5_1/device": "../../../0000:b1:00.0",
}
PCI = "/sys/class/infiniband/mlx5_0/device"
CHECKS = rows_of(ports, port_counters, rdma_loss, pcie)


def good(name: str = "n1", **changed: str) -> Host:
    """The good host with other values of files of its first port, `ib_` of its device, `pci_` of what it is behind."""
    files = dict(GOOD)
    for key, text in changed.items():
        folder, _, file = key.partition("_")
        at = {"pci": f"{PCI}/{file}", "ib": f"/sys/class/infiniband/mlx5_0/{file}"}
        files[at.get(folder, PORT.format("mlx5_0", key))] = text
    return host(name, files, links=LINKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.id)
def test_good_hosts_are_silent_and_pass(check: Check) -> None:
    results = of(check, *(good(f"n{number}") for number in range(3)))
    assert set(outcomes(results)) == {Outcome.PASS}
    assert {result.host for result in results} == {"n0", "n1", "n2"}


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.id)
def test_a_host_without_such_a_device_is_skipped(check: Check) -> None:
    files = {"/sys/class/net/eth0/address": "52:54:00:12:34:56", "/sys/class/net/eth0/operstate": "up"}
    (one,) = of(check, host(files=files))
    assert one.outcome is Outcome.SKIP and one.message


def test_a_port_without_a_subnet_manager() -> None:
    assert wrong(of(ports.IB_PORT_STATE, host(files=BAD, links=LINKS))) == [
        ("n1", "mlx5_1/1", Outcome.FAIL, PINNED["INIT although the link"])
    ]


def test_a_port_that_is_up_on_the_others() -> None:
    hosts = [good(f"n{number}") for number in range(4)]
    hosts.append(good("n4", state="1: DOWN", phys_state="2: Polling"))
    assert wrong(of(ports.IB_PORT_STATE, *hosts)) == [
        ("n4", "mlx5_0/1", Outcome.FAIL, "DOWN, Polling, 4 others ACTIVE")
    ]


def test_a_port_that_no_host_uses_is_no_fault() -> None:
    hosts = [good(f"n{number}", state="1: DOWN", phys_state="3: Disabled") for number in range(3)]
    results = of(ports.IB_PORT_STATE, *hosts)
    assert not wrong(results)
    assert results[0].outcome is Outcome.SKIP and "as 2 others" in results[0].message


@pytest.mark.parametrize(
    ("layer", "physical", "outcome"),
    [
        ("InfiniBand", "2: Polling", Outcome.WARN),  # the port looks for its partner
        ("InfiniBand", "6: LinkErrorRecovery", Outcome.WARN),
        ("InfiniBand", "4: PortConfigurationTraining", Outcome.WARN),
        ("InfiniBand", "3: Disabled", Outcome.SKIP),
        ("Ethernet", "2: Polling", Outcome.SKIP),
    ],
)
def test_one_of_two_equal_ports_that_is_not_active_on_a_single_host(
    layer: str, physical: str, outcome: Outcome
) -> None:
    one = good(state="1: DOWN", phys_state=physical, link_layer=layer)
    twin = "mlx5_1/1 of the same model is ACTIVE"
    ((_, target, found, message),) = wrong(of(ports.IB_PORT_STATE, one))
    assert (target, found, message) == ("mlx5_0/1", Outcome.WARN, f"DOWN, {physical[3:]}; {twin}")
    card = dict(zip(LINKS, ["../../../0000:3b:00.0", "../../../0000:3b:00.1"], strict=True))
    of_card = of(ports.IB_PORT_STATE, Host(replace(one.snapshot, links=card)))
    assert {result.outcome for result in of_card if result.target == "mlx5_0/1"} == {outcome}


def test_the_second_port_of_the_cards_of_all_hosts_may_be_without_a_cable() -> None:
    hosts = [good(f"n{number}", state="1: DOWN", phys_state="2: Polling") for number in range(2)]
    assert not wrong(of(ports.IB_PORT_STATE, *hosts))


def test_a_rate_below_the_others() -> None:
    hosts = [good(f"n{number}") for number in range(4)] + [good("n4", rate="200 Gb/sec (4X HDR)")]
    assert wrong(of(ports.IB_PORT_RATE, *hosts)) == [
        ("n4", "mlx5_0/1", Outcome.FAIL, "rate 200 Gb/s, 4 others rate 400 Gb/s")
    ]


def test_lost_lanes_are_seen_on_a_host_alone() -> None:
    one = good(rate="100 Gb/sec (1X NDR)")
    assert wrong(of(ports.IB_PORT_RATE, one)) == [
        ("n1", "mlx5_0/1", Outcome.WARN, "rate 100 Gb/s, supported rate 400 Gb/s")
    ]
    other_make = good(rate="100 Gb/sec (1X NDR)", ib_board_id="MT_0000000001")
    assert not wrong(of(ports.IB_PORT_RATE, other_make))


def test_a_port_without_addresses() -> None:
    for lid in ("0x0", "0xffff"):  # unassigned, and the permissive one
        assert wrong(of(ports.IB_PORT_LID, good(lid=lid))) == [("n1", "mlx5_0/1", Outcome.FAIL, "no LID")]
    assert wrong(of(ports.IB_PORT_LID, good(sm_lid="0x0"))) == [("n1", "mlx5_0/1", Outcome.FAIL, "no SM LID")]
    assert outcomes(of(ports.IB_PORT_LID, good(lid="0x0", link_layer="Ethernet"))) == [Outcome.PASS]


def test_firmware_and_make_that_differ() -> None:
    hosts = [*(good(f"n{number}") for number in range(3)), good("n3", ib_fw_ver="28.39.1002")]
    assert wrong(of(ports.IB_FIRMWARE, *hosts)) == [
        ("n3", "mlx5_0", Outcome.WARN, "firmware 28.39.1002, 3 others 28.41.1000")
    ]
    odd = good("n3", ib_fw_ver="28.39.1002", ib_board_id="MT_0000000001")  # another card has other firmware
    hosts = [*(good(f"n{number}") for number in range(3)), odd]
    assert not wrong(of(ports.IB_FIRMWARE, *hosts))
    assert wrong(of(ports.IB_BOARD, *hosts)) == [
        ("n3", "mlx5_0", Outcome.WARN, PINNED["board MT_0000000001, 3 others"])
    ]


# ------------------------------------------------------------------------------------------------ counters


def counting(**later: str) -> Host:
    """The good host whose first port has counted so much in the end."""
    paths = {path.rpartition("/")[2]: path for path in GOOD if "mlx5_0/ports/1/" in path and "class" in path}
    return host(files=GOOD, later={paths[name]: text for name, text in later.items()})


def test_link_errors_that_are_counted_now_fail() -> None:
    assert not wrong(of(port_counters.IB_ERRORS, counting(symbol_error="9", port_xmit_discards="99")))
    assert wrong(of(port_counters.IB_ERRORS, counting(symbol_error="10"))) == [
        ("n1", "mlx5_0/1", Outcome.FAIL, "symbol_error 10 in 4.0 s")
    ]
    assert wrong(of(port_counters.IB_ERRORS, counting(port_xmit_discards="812"))) == [
        ("n1", "mlx5_0/1", Outcome.WARN, "port_xmit_discards 812 in 4.0 s")
    ]


def test_old_errors_say_nothing_but_a_full_counter_has_to_be_cleared() -> None:
    """link_downed 7, link_error_recovery 12 and port_xmit_discards 812 were there before anybody looked."""
    assert wrong(of(port_counters.IB_ERRORS, host(files=BAD))) == [
        ("n1", "mlx5_0/1", Outcome.WARN, PINNED["symbol_error is saturated"])
    ]


def test_errors_since_the_last_time_warn() -> None:
    one = host(files=BAD)
    before = {PORT.format("mlx5_0", f"counters/{name}"): "0" for name in ("link_error_recovery", "symbol_error")}
    one.before = {"time": NOW - 3600, "counters": nested(before)}
    message = "symbol_error at least 65535 in 60 min; link_error_recovery 12 in 60 min"
    assert wrong(of(port_counters.IB_ERRORS, one)) == [("n1", "mlx5_0/1", Outcome.WARN, message)]
    one.before = {"time": NOW - 3 * 86400, "counters": nested(before)}  # 12 in 3 days are few
    message = "symbol_error at least 65535 in 3 d"
    assert wrong(of(port_counters.IB_ERRORS, one)) == [("n1", "mlx5_0/1", Outcome.WARN, message)]


def test_waiting_is_reported_and_not_judged() -> None:
    (first, _) = of(port_counters.IB_CONGESTION, counting(port_xmit_wait="4000000"))
    assert (first.outcome, first.message) == (Outcome.PASS, "waited 1e+06 ticks/s")


def test_packets_that_were_lost() -> None:
    assert wrong(of(rdma_loss.IB_LOSS, counting(out_of_sequence="2", packet_seq_err="1"))) == [
        ("n1", "mlx5_0/1", Outcome.WARN, PINNED["packet_seq_err 1 in 4.0 s"])
    ]
    assert not wrong(of(rdma_loss.IB_LOSS, host(files=BAD))), "they are of yesterday"


# ------------------------------------------------------------------------------------------------ PCI Express


def test_fewer_lanes_than_the_others() -> None:
    hosts = [good(f"n{number}") for number in range(4)] + [good("n4", pci_current_link_width="8")]
    assert wrong(of(pcie.PCIE_WIDTH, *hosts)) == [("n4", "mlx5_0", Outcome.FAIL, "x8, 4 others x16")]


def test_alone_fewer_lanes_than_there_could_be_are_a_warning() -> None:
    assert wrong(of(pcie.PCIE_WIDTH, host(files=BAD))) == [("n1", "mlx5_1", Outcome.WARN, "x8, supported x16")]
    assert wrong(of(pcie.PCIE_WIDTH, host(files=SLINGSHOT))) == [("n1", "cxi1", Outcome.WARN, "x8, supported x16")]
    slow = good(pci_current_link_speed="16.0 GT/s PCIe")
    assert wrong(of(pcie.PCIE_SPEED, slow)) == [("n1", "mlx5_0", Outcome.WARN, "16 GT/s, supported 32 GT/s")]


def test_hosts_that_are_all_slower_than_their_cards_share_a_warning() -> None:
    """A card that could do more than its slot, or a setting of the BIOS, on all of them."""
    hosts = [good(f"n{number}", pci_current_link_speed="16.0 GT/s PCIe") for number in range(3)]
    message = "16 GT/s on all similar hosts, supported 32 GT/s: check settings and slot"
    assert wrong(of(pcie.PCIE_SPEED, *hosts)) == [(f"n{n}", "mlx5_0", Outcome.WARN, message) for n in range(3)]


@pytest.mark.parametrize("text", ["0", "255", "Unknown", "Unknown speed", "", "-1"])
def test_a_driver_that_does_not_know_is_skipped(text: str) -> None:
    results = of(pcie.PCIE_WIDTH, good(pci_current_link_width=text))
    assert outcomes(results) == [Outcome.SKIP, Outcome.PASS]


def test_virtual_slots_of_a_virtual_machine_are_no_fault() -> None:
    vendor = {"/sys/devices/virtual/dmi/id/sys_vendor": "QEMU"}
    assert not wrong(of(pcie.PCIE_WIDTH, host(files={**BAD, **vendor})))


def test_older_drivers_have_no_such_files() -> None:
    files = {path: text for path, text in GOOD.items() if "_link_" not in path}
    assert set(outcomes(of(pcie.PCIE_WIDTH, host(files=files)))) == {Outcome.SKIP}


def test_a_gpu_with_fewer_lanes_than_the_other_gpus() -> None:
    def gpu(bus: int, width: str) -> dict[str, str]:
        values = {"class": "0x030200", "current_link_width": width, "max_link_width": "16"}
        return {f"/sys/bus/pci/devices/0000:{bus}:00.0/{key}": text for key, text in values.items()}

    five = {**gpu(11, "16"), **gpu(12, "16"), **gpu(13, "8"), **gpu(14, "16"), **gpu(15, "16")}
    results = wrong(of(pcie.PCIE_WIDTH, host(files=five)))
    assert results == [("n1", "GPU 0000:13:00.0", Outcome.FAIL, "x8, 4 similar parts of this host x16")]
    two = {**gpu(11, "16"), **gpu(12, "8")}
    assert not wrong(of(pcie.PCIE_WIDTH, host(files=two))), "a workstation's second slot"


def test_one_device_by_several_names_is_reported_once() -> None:
    interface = {"type": "1", "speed": "400000", "address": "b8:59:9f:00:00:01", "device/vendor": "0x15b3"}
    files = {**GOOD, **{f"/sys/class/net/ens1/{key}": text for key, text in interface.items()}}
    links = {**LINKS, "/sys/class/net/ens1/device": "../../../0000:3b:00.0"}
    assert list(host(files=files, links=links).fabric_devices) == ["mlx5_0", "mlx5_1"]
    assert list(host(files=files, links=LINKS).fabric_devices) == ["mlx5_0", "mlx5_1"], "no rail"


@pytest.mark.parametrize(
    ("kind", "count", "outcome"),
    [
        ("correctable", 9, Outcome.PASS),
        ("correctable", 10, Outcome.WARN),
        ("nonfatal", 4, Outcome.PASS),
        ("nonfatal", 5, Outcome.FAIL),
        ("fatal", 1, Outcome.FAIL),
    ],
)
def test_errors_of_pci_express(kind: str, count: int, outcome: Outcome) -> None:
    word = {"correctable": "COR", "nonfatal": "NONFATAL", "fatal": "FATAL"}[kind]
    later = {f"{PCI}/aer_dev_{kind}": f"RxErr {count}\nTOTAL_ERR_{word} {count}"}
    found = of(pcie.PCIE_ERRORS, host(files=GOOD, later=later))[0]
    assert (found.target, found.outcome) == ("mlx5_0", outcome)
    assert not found.message or found.message == f"{kind} PCI Express errors: {count} in 4.0 s"


@pytest.mark.parametrize(
    ("kind", "count", "days", "outcome"),
    [
        ("fatal", 1, 3, Outcome.WARN),
        ("fatal", 1, 8, Outcome.PASS),
        ("nonfatal", 5, 3, Outcome.WARN),
        ("nonfatal", 4, 3, Outcome.PASS),
        ("correctable", 99, 3, Outcome.PASS),
    ],
)
@pytest.mark.parametrize("others", [0, 5])
def test_totals_of_pci_express_errors_since_a_boot_of_this_week(
    kind: str, count: int, days: int, outcome: Outcome, others: int
) -> None:
    word = {"correctable": "COR", "nonfatal": "NONFATAL", "fatal": "FATAL"}[kind]
    up = {"/proc/uptime": f"{days * 86400.0} 1.0"}
    peers = [host(f"p{n}", {**GOOD, **up, f"{PCI}/aer_dev_{kind}": f"TOTAL_ERR_{word} 0"}) for n in range(others)]
    odd = host("odd", {**GOOD, **up, f"{PCI}/aer_dev_{kind}": f"DLP {count}\nTOTAL_ERR_{word} {count}"})
    results = {one.host: one.outcome for one in of(pcie.PCIE_ERRORS, *peers, odd) if one.target == "mlx5_0"}
    assert results == {**{one.name: Outcome.PASS for one in peers}, "odd": outcome}


def test_errors_of_last_year_are_not_reported() -> None:
    assert not wrong(of(pcie.PCIE_ERRORS, host(files=SLINGSHOT)))  # 514 corrected ones, since the driver was loaded


def test_numa_nodes() -> None:
    online = {"/sys/devices/system/node/online": "0-1"}
    hosts = [host(f"n{number}", {**GOOD, **online}) for number in range(4)]
    hosts[1] = host("n1", {**GOOD, **online, f"{PCI}/numa_node": "-1"})
    assert wrong(of(pcie.PCIE_NUMA, *hosts)) == [("n1", "mlx5_0", Outcome.WARN, "NUMA node unknown, 3 others 0")]
    single = [host(f"n{number}", {**GOOD, f"{PCI}/numa_node": "-1" if number else "0"}) for number in range(4)]
    assert not wrong(of(pcie.PCIE_NUMA, *single)), "with one node some drivers say -1"


# ------------------------------------------------------------------------------------------------ Omni-Path

HFI = {f"/sys/class/infiniband/hfi1_{number}/ports/1/state": "4: ACTIVE" for number in (0, 1)}


def omni(text: str | Output) -> Host:
    return host(files=HFI, commands={"opainfo": text})


def test_omni_path_from_a_sample() -> None:
    assert wrong(of(omnipath.OMNI_PATH_PORT, omni(sample("misc/opainfo.txt")))) == [
        ("n1", "hfi1_1/1", Outcome.FAIL, "tx lanes 3 of 4, link quality 2 (Poor)")
    ]


@pytest.mark.parametrize(
    ("old", "new", "outcome", "words"),
    [
        ("PortState:     Active", "PortState:     Init", Outcome.FAIL, "state Init"),
        ("Act: 25Gb ", "Act: 12Gb ", Outcome.FAIL, "12 Gb/s of 25"),
        ("Link Quality: 5 (Excellent)", "Link Quality: 4 (Very Good)", Outcome.PASS, ""),
        ("Link Quality: 5 (Excellent)", "", Outcome.ERROR, "incomplete"),
    ],
)
def test_omni_path_ports(old: str, new: str, outcome: Outcome, words: str) -> None:
    text = sample("misc/opainfo.txt")
    assert old in text
    found = of(omnipath.OMNI_PATH_PORT, omni(text.replace(old, new, 1)))[0]
    assert found.outcome is outcome and words in found.message


def test_without_opainfo_or_its_ports_nothing_passes() -> None:
    assert outcomes(of(omnipath.OMNI_PATH_PORT, omni(Output(error="not installed")))) == [Outcome.SKIP]
    assert outcomes(of(omnipath.OMNI_PATH_PORT, omni("no such thing"))) == [Outcome.ERROR]
    assert outcomes(of(omnipath.OMNI_PATH_PORT, omni(Output(error="no answer in time")))) == [Outcome.ERROR]
    assert outcomes(of(omnipath.OMNI_PATH_PORT, host(files=GOOD))) == [Outcome.SKIP]


@pytest.mark.parametrize(
    ("counter", "quiet", "loud"),
    [
        ("packet_seq_err", 0, 1),
        ("to_retransmits", 0, 1),  # bnxt_re
        ("max_retry_exceeded", 0, 2),
        ("oos_drop_count", 0, 1),
        ("rx_roce_errors", 0, 1),
        ("tx_roce_error_pkts", 0, 1),
        ("res_rx_pci_err", 0, 1),
        ("RetransSegs", 0, 1),  # irdma
        ("tcpRetransSegs", 0, 1),
        ("retrans_timeout_events", 9, 10),  # efa
        ("no_completion_cmds", 0, 1),
        ("retrans_pkts", 9_000, 10_000),
        ("rdma_read_wr_err", 9, 10),
        ("rx_drops", 99, 100),
        ("RTO", 0, 1),  # irdma
        ("InProtoErrors", 0, 1),
        ("ip4InDiscards", 9, 10),
        ("rnr_nak_retry_err", 99, 100),  # mlx5
        ("local_ack_timeout_err", 0, 1),
        ("rx_icrc_encapsulated", 0, 1),
        ("rnr_naks_rcvd", 99, 100),  # bnxt_re
        ("sq_num_to", 0, 1),  # mlx4
        ("requester_timeout", 0, 1),  # mana_ib
    ],
)
def test_losses_by_driver(counter: str, quiet: int, loud: int) -> None:
    path = f"/sys/class/infiniband/rdma0/ports/1/hw_counters/{counter}"
    files = {"/sys/class/infiniband/rdma0/ports/1/state": "4: ACTIVE", path: "5"}
    for grown, count in ((quiet, 0), (loud, 1)):
        results = of(rdma_loss.IB_LOSS, host("n1", files, later={path: str(5 + grown)}))
        assert [counter in message for *_, message in wrong(results)] == [True] * count
        assert {result.target for result in results} == {"rdma0/1"}


def test_counters_of_a_whole_device_are_judged() -> None:
    """efa counts the commands of a device there since Linux 5.14."""
    path = "/sys/class/infiniband/rdmap0s6/hw_counters/no_completion_cmds"
    ports_of = {"/sys/class/infiniband/rdmap0s6/ports/1/hw_counters/retrans_pkts": "5"}
    results = of(rdma_loss.IB_LOSS, host("n1", {path: "0", **ports_of}, later={path: "1"}))
    assert wrong(results) == [("n1", "rdmap0s6", Outcome.WARN, "no_completion_cmds 1 in 4.0 s")]
    assert {result.target for result in results} == {"rdmap0s6", "rdmap0s6/1"}


def test_a_receiver_that_is_never_ready_is_one_that_others_do_not_have() -> None:
    path = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/rnr_nak_retry_err"
    up = {"/proc/uptime": "86400.00 9.0"}
    hosts = [host(f"n{number}", {path: "4000" if number else "600000", **up}) for number in range(8)]
    assert [name for name, *_ in wrong(of(rdma_loss.IB_LOSS, *hosts))] == ["n0"]
    assert not wrong(of(rdma_loss.IB_LOSS, *hosts[1:]))
