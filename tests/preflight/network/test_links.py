"""Network interfaces of the fabric."""

from __future__ import annotations

import pytest
from preflight_help import host, nic, of, outcomes, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.links import LINK_DUPLEX, LINK_MTU, LINK_SPEED, LINK_UP, RAILS_COUNT
from fablint.preflight.host import Host


def test_an_odd_mtu_is_named_with_what_the_others_have() -> None:
    hosts = [host(f"n{index}", nic(mtu="1500" if index == 3 else "9000")) for index in range(16)]
    assert wrong(of(LINK_MTU, *hosts)) == [("n3", "hsn0", Outcome.FAIL, "MTU 1500, 15 others 9000")]


def test_two_hosts_that_differ_have_one_warning_that_names_both() -> None:
    results = of(LINK_MTU, host("n1", nic(mtu="1500")), host("n2", nic(mtu="9000")))
    message = "two kinds: 1 x MTU 1500 on n1, 1 x 9000 on n2"
    assert wrong(results) == [("n1", "hsn0", Outcome.WARN, message), ("n2", "hsn0", Outcome.WARN, message)]


def test_three_hosts_that_all_differ_are_not_compared() -> None:
    results = of(LINK_MTU, *(host(f"n{mtu}", nic(mtu=mtu)) for mtu in ("1500", "4200", "9000")))
    assert outcomes(results) == [Outcome.SKIP] * 3


def test_two_speeds_of_two_hosts_are_a_warning_each() -> None:
    results = of(LINK_SPEED, host("n1", nic(speed="200000")), host("n2", nic(speed="100000")))
    assert [(name, outcome) for name, _, outcome, _ in wrong(results)] == [
        ("n1", Outcome.WARN),
        ("n2", Outcome.WARN),
    ]


def test_a_link_that_is_down_on_one_host_alone() -> None:
    hosts = [host(f"n{index}", nic(operstate="down" if index == 3 else "up")) for index in range(16)]
    assert wrong(of(LINK_UP, *hosts)) == [("n3", "hsn0", Outcome.FAIL, "link down, 15 others up")]


def test_a_link_that_is_configured_on_other_hosts_only() -> None:
    down = nic(operstate="down", carrier="0", flags="0x1002")
    hosts = [host(f"n{index}", down if index == 3 else nic()) for index in range(4)]
    assert wrong(of(LINK_UP, *hosts)) == [("n3", "hsn0", Outcome.FAIL, "not configured, 3 others up")]


def test_a_second_port_that_no_host_uses_is_no_fault() -> None:
    for flags in ("0x1002", "0x1003"):
        unused = nic("hsn1", operstate="down", carrier="0", flags=flags)
        results = of(LINK_UP, *(host(f"n{index}", {**nic(), **unused}) for index in range(4)))
        assert outcomes(results) == [Outcome.PASS, Outcome.SKIP] * 4


def test_a_fabric_that_is_dead_everywhere() -> None:
    hosts = [host(f"n{index}", nic("eth0", operstate="down", carrier="0")) for index in range(4)]
    assert outcomes(of(LINK_UP, *hosts)) == [Outcome.FAIL] * 4


def test_a_lone_host() -> None:
    def alone(files: dict[str, str]) -> list[Outcome]:
        return outcomes(of(LINK_UP, host("n1", files)))

    assert alone(nic(operstate="down", carrier="0")) == [Outcome.FAIL]
    assert alone(nic(operstate="down", carrier="0", flags="0x1002")) == [Outcome.SKIP]
    laptop = {**nic("eth0", operstate="down", carrier="0"), **nic("wlan0")}
    assert alone(laptop) == [Outcome.SKIP, Outcome.PASS]
    assert alone(nic(operstate="unknown", carrier="")) == [Outcome.SKIP]
    assert alone({}) == [Outcome.SKIP]


def test_a_slower_link_is_named_and_a_faster_one_is_not() -> None:
    speeds = {2: "100000", 3: "400000", 4: "-1"}
    hosts = [host(f"n{index}", nic(speed=speeds.get(index, "200000"))) for index in range(8)]
    assert wrong(of(LINK_SPEED, *hosts)) == [("n2", "hsn0", Outcome.FAIL, "100000 Mbit/s, 5 others 200000")]


def test_half_duplex() -> None:
    assert wrong(of(LINK_DUPLEX, host("n1", nic(duplex="half")), host("n2", nic()))) == [
        ("n1", "hsn0", Outcome.WARN, "half duplex")
    ]
    assert outcomes(of(LINK_DUPLEX, host("n1", nic(duplex="unknown")))) == [Outcome.SKIP]


def test_a_missing_nic_is_named() -> None:
    two = {**nic("hsn0"), **nic("hsn1")}
    hosts = [host(f"n{index}", nic("hsn0") if index == 3 else two) for index in range(8)]
    assert wrong(of(RAILS_COUNT, *hosts)) == [("n3", "hsn1", Outcome.FAIL, "hsn1 is missing, 7 others have it")]


def test_nics_that_are_called_otherwise_are_not_missing() -> None:
    hosts = [host(f"n{index}", nic("enp2s0" if index == 3 else "enp1s0")) for index in range(8)]
    assert outcomes(of(RAILS_COUNT, *hosts)) == [Outcome.PASS] * 8
    assert outcomes(of(RAILS_COUNT, host("n1", nic()))) == [Outcome.SKIP]


def test_a_host_of_another_make_is_not_compared() -> None:
    """A login node has no NIC of the fabric."""
    model = "/sys/devices/virtual/dmi/id/product_name"
    hosts = [host(f"n{index}", {**nic(), model: "EX425"}) for index in range(8)]
    assert not wrong(of(RAILS_COUNT, *hosts, host("login", {**nic("eth0", mtu="1500"), model: "DL325"})))


def of_virtual_functions(number: int, *lost: int) -> Host:
    """A container with four functions, whose RDMA devices have other names on each host; some have no interface."""
    files, links, folders = {}, {}, {}
    for rail in range(4):
        device, bus = f"mlx5_{10 * number + rail}", f"0000:{16 * rail + 26:02x}:00.2"
        at = f"/sys/class/infiniband/{device}"
        files |= {f"{at}/node_type": "1: CA", f"{at}/device/vendor": "0x15b3", f"{at}/device/device": "0x101e"}
        port = {"state": "4: ACTIVE", "link_layer": "Ethernet", "rate": "400 Gb/sec (4X NDR)"}
        files |= {f"{at}/ports/1/{key}": text for key, text in port.items()}
        links[f"{at}/device"] = f"../../../{bus}"
        if rail not in lost:
            files |= nic(f"net{rail}", address=f"02:00:00:00:{number:02x}:{rail:02x}")
            links[f"/sys/class/net/net{rail}/device"] = f"../../../{bus}"
            folders[f"{at}/device/net"] = [f"net{rail}"]
    return host(f"n{number}", files, links=links, folders=folders)


@pytest.mark.parametrize("lost", [(2,), (0, 3)])
@pytest.mark.parametrize("count", [5, 9])
def test_a_device_without_its_interface_does_not_replace_it(lost: tuple[int, ...], count: int) -> None:
    hosts = [of_virtual_functions(number, *(lost if number == 3 else ())) for number in range(count)]
    found = wrong(of(RAILS_COUNT, *hosts))
    assert [one[:3] for one in found] == [("n3", f"net{rail}", Outcome.WARN) for rail in lost]
    assert not wrong(of(RAILS_COUNT, *(of_virtual_functions(number) for number in range(count))))
    assert not wrong(of(RAILS_COUNT, *(of_virtual_functions(number, *lost) for number in range(count))))
