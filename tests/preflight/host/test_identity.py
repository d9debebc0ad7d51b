"""Hosts with a wrong identity, clocks that are off, cables of a host that are swapped."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from net_help import mac, wired
from preflight_help import NOW, of, outcomes, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight import Host
from fablint.preflight.checks.host.identity import CLOCK_PEERS, HOST_IDENTITY, OWN_NAME, PLANES
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

HOSTNAME, BOOT = "/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id"
MACHINE, SERIAL = "/etc/machine-id", "/sys/devices/virtual/dmi/id/product_serial"


def machine(index: int, name: str = "", **changed: str) -> Host:
    """A host with ids of its own, asked by a name."""
    ids = {"own": f"n{index}", "boot": f"boot-{index}", "id": f"4a7c{index:04d}e9b15d", "serial": f"SGH{index:04d}KX"}
    ids |= changed
    files = {HOSTNAME: ids["own"], BOOT: ids["boot"], MACHINE: ids["id"], SERIAL: ids["serial"]}
    one = wired(index, files=files)
    return Host(replace(one.snapshot, host=name or f"n{index}"))


def fleet(count: int = 8) -> list[Host]:
    return [machine(index) for index in range(1, count + 1)]


def test_a_fleet_of_its_own_is_silent():
    for check in (HOST_IDENTITY, CLOCK_PEERS):
        assert outcomes(of(check, *fleet())) == [Outcome.PASS] * 8


def test_two_names_of_one_machine():
    found = wrong(of(HOST_IDENTITY, *fleet(), machine(3, "n3-alt")))
    assert found == [("n3-alt", "", Outcome.FAIL, PINNED["is the same machine as n3"])]


def test_containers_of_one_machine_are_hosts_of_their_own():
    hosts = [machine(index, boot="same", id="4a7c12e9b15d88", serial="SGH77") for index in range(1, 9)]
    assert wrong(of(HOST_IDENTITY, *hosts)) == []


def test_a_host_that_has_the_name_of_another():
    hosts = [*fleet(), machine(9, own="n3.site.org")]
    assert wrong(of(HOST_IDENTITY, *hosts)) == [("n9", "", Outcome.WARN, "has the host name n3, the same as n3")]


@pytest.mark.parametrize(("what", "words"), [("id", "machine id"), ("serial", "serial number")])
def test_ids_of_another_host(what, words):
    hosts = [*fleet(), machine(9, **{what: machine(4).read(MACHINE if what == "id" else SERIAL) or ""})]
    assert wrong(of(HOST_IDENTITY, *hosts)) == [
        ("n4", "", Outcome.WARN, f"has the same {words} as n9"),
        ("n9", "", Outcome.WARN, f"has the same {words} as n4"),
    ]


@pytest.mark.parametrize("serial", ["0123456789", "Default string", "To be filled by O.E.M.", "000000000", ""])
def test_serial_numbers_that_vendors_left_out_say_nothing(serial):
    assert wrong(of(HOST_IDENTITY, machine(1, serial=serial), machine(2, serial=serial))) == []


def named(index: int, address: str) -> Host:
    """A host that finds this address for its own name."""
    one = machine(index)
    return Host(replace(one.snapshot, addresses_of={f"n{index}": [address]}))


def test_a_name_that_leads_to_another_host():
    hosts = [*(named(index, f"10.1.0.{index}") for index in range(1, 5)), named(5, "10.1.0.2")]
    found = wrong(of(OWN_NAME, *hosts))
    assert found == [("n5", "", Outcome.FAIL, PINNED["its own name n5 resolves"])]


@pytest.mark.parametrize("address", ["127.0.1.1", "192.0.2.9"])
def test_names_that_lead_to_the_loopback_or_to_a_network_that_is_not_seen(address):
    assert wrong(of(OWN_NAME, named(1, "10.1.0.1"), named(2, address))) == []


@pytest.mark.parametrize(
    ("off", "message"),
    [(300.0, "clock 300 s ahead of that of 7 others"), (-7200.0, "clock 7,200 s behind that of 7 others"), (20.0, "")],
)
def test_a_clock_without_a_time_service(off, message):
    hosts = fleet()
    hosts[4] = Host(replace(hosts[4].snapshot, time=NOW + off))
    assert [one[3] for one in wrong(of(CLOCK_PEERS, *hosts))] == ([message] if message else [])


def test_snapshots_of_several_days_have_no_common_time():
    hosts = [Host(replace(one.snapshot, time=NOW + 86400.0 * at)) for at, one in enumerate(fleet())]
    assert outcomes(of(CLOCK_PEERS, *hosts)) == [Outcome.SKIP] * 8


# ------------------------------------------------------------------------------------------------ planes


def plugged(index: int, switches: list[str]) -> Host:
    """A host whose rails hear these switches, as `lldpcli -f json0` tells."""
    rails = {f"hsn{rail}": f"10.{rail}.0.{index}/16" for rail in range(len(switches))}
    heard = [
        {
            "name": f"hsn{rail}",
            "via": "LLDP",
            "chassis": [{"id": [{"type": "mac", "value": mac(index, 90 + rail)}], "name": [{"value": switch}]}],
            "port": [{"id": [{"type": "ifname", "value": f"p{index}"}]}],
        }
        for rail, switch in enumerate(switches)
        if switch
    ]
    return wired(index, rails, commands={"lldpcli": json.dumps({"lldp": [{"interface": heard}]})})


def test_cables_of_a_host_that_are_swapped_are_seen_from_the_others():
    hosts = [plugged(index, ["planeA", "planeB"]) for index in range(1, 8)] + [plugged(8, ["planeB", "planeA"])]
    assert [one[:3] for one in wrong(of(PLANES, *hosts))] == [
        ("n8", "hsn0", Outcome.FAIL),
        ("n8", "hsn1", Outcome.FAIL),
    ]
    assert PINNED["7 other hosts have hsn1"] in wrong(of(PLANES, *hosts))[0][3]


def test_two_hosts_that_agree_are_enough_to_warn():
    hosts = [plugged(index, ["planeA", "planeB"]) for index in (1, 2)] + [plugged(3, ["planeB", "planeA"])]
    assert [one[:3] for one in wrong(of(PLANES, *hosts))] == [
        ("n3", "hsn0", Outcome.WARN),
        ("n3", "hsn1", Outcome.WARN),
    ]


@pytest.mark.parametrize(
    "wiring",
    [
        [["leaf1", "leaf1"]] * 8,  # both rails on one switch
        [["planeA", "planeB"]] * 4 + [["planeB", "planeA"]] * 4,  # no majority
        [["planeA", "planeB"]] * 7 + [["planeA", ""]],
        [["planeA", "planeB"], ["planeB", "planeA"]],  # neither host is known to be right
        [[f"leaf{index}a", f"leaf{index}b"] for index in range(8)],  # a host alone on its switches
    ],
)
def test_wirings_that_are_no_swap(wiring):
    hosts = [plugged(index, switches) for index, switches in enumerate(wiring, 1)]
    assert wrong(of(PLANES, *hosts)) == []
