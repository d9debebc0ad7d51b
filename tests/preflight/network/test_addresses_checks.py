"""IPv4 addresses of the fabric's NICs, and their names."""

from __future__ import annotations

import json

from net_help import wired
from preflight_help import host, nic, of, outcomes, sample, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.address_names import DNS_FORWARD, DNS_REVERSE
from fablint.preflight.checks.network.addresses import IP_ASSIGNED, IP_PREFIX, IP_TLV
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

MISMATCH = "lldpcli-json0-slingshot-ama-mismatch-on-hsn1.json"  # asks for 10.253.0.21/16, MTU 9000, on hsn0


def test_a_nic_without_an_address() -> None:
    hosts = [wired(index, {"hsn0": "" if index == 3 else f"10.1.0.{index}/16"}) for index in range(1, 17)]
    assert wrong(of(IP_ASSIGNED, *hosts)) == [("n3", "hsn0", Outcome.FAIL, "no IPv4 address, 15 others have one")]


def test_a_fabric_without_addresses_is_no_fault() -> None:
    assert outcomes(of(IP_ASSIGNED, *(wired(index, {"ib0": ""}) for index in range(4)))) == [Outcome.SKIP] * 4
    assert outcomes(of(IP_ASSIGNED, wired(1, {"hsn0": ""}))) == [Outcome.SKIP]


def test_without_ip_nothing_is_known() -> None:
    absent = host("n1", nic(), commands={"ip-addr": Output(error="not installed")})
    assert [(one.outcome, one.message) for one in of(IP_ASSIGNED, absent)] == [
        (Outcome.SKIP, "ip addr: not installed"),
    ]
    assert outcomes(of(IP_ASSIGNED, host("n1", nic(), commands={"ip-addr": "Oops"}))) == [Outcome.ERROR]
    for check in (IP_PREFIX, DNS_REVERSE, DNS_FORWARD):
        assert outcomes(of(check, absent)) == [Outcome.SKIP]


def test_a_prefix_that_no_other_host_has() -> None:
    hosts = [wired(index, {"hsn0": f"10.1.0.{index}/{24 if index == 3 else 16}"}) for index in range(1, 9)]
    assert wrong(of(IP_PREFIX, *hosts)) == [("n3", "hsn0", Outcome.WARN, PINNED["10.1.0.3 in 10.1.0.0/24"])]


def test_racks_with_a_network_each_are_no_fault() -> None:
    hosts = [wired(index, {"hsn0": f"10.{1 if index > 3 else 2}.0.{index}/24"}) for index in range(1, 9)]
    assert outcomes(of(IP_PREFIX, *hosts)) == [Outcome.PASS] * 8
    routed = [wired(index, {"eth1": f"10.1.0.{2 * index}/31"}) for index in range(1, 9)]
    assert outcomes(of(IP_PREFIX, *routed)) == [Outcome.SKIP] * 8


def slingshot(mtu: str, address: str) -> Host:
    return wired(1, {"hsn0": address}, files=nic(mtu=mtu), commands={"lldpcli": sample(MISMATCH)})


def test_what_the_switch_asks_for() -> None:
    assert outcomes(of(IP_TLV, slingshot("9000", "10.253.0.21/16"))) == [Outcome.PASS]
    message = "MTU 1500, the switch requests 9000; address 10.253.0.9/16, the switch requests 10.253.0.21/16"
    assert wrong(of(IP_TLV, slingshot("1500", "10.253.0.9/16"))) == [("n1", "hsn0", Outcome.WARN, message)]
    assert outcomes(of(IP_TLV, wired(1))) == [Outcome.SKIP]


def test_a_tlv_that_cannot_be_understood() -> None:
    document = json.loads(sample(MISMATCH))
    document["lldp"][0]["interface"][0]["unknown-tlvs"][0]["unknown-tlv"][0]["value"] = "7B,22"
    assert outcomes(of(IP_TLV, wired(1, commands={"lldpcli": json.dumps(document)}))) == [Outcome.ERROR]


# ------------------------------------------------------------------------------------------------ names


def named(index: int, name: str | None = "", leads_to: str | None = "") -> Host:
    """`n3`, whose address is called `n3-hsn0`; both lead to each other unless something else is given."""
    own = f"n{index}-hsn0" if name == "" else name
    to = {own: [leads_to or f"10.1.0.{index}"] if leads_to is not None else []} if own else {}
    return wired(index, names_of={f"10.1.0.{index}": own}, addresses_of={**to, f"n{index}": [f"10.9.0.{index}"]})


def test_an_address_without_a_name() -> None:
    hosts = [named(index, None if index == 3 else "") for index in range(1, 9)]
    assert wrong(of(DNS_REVERSE, *hosts)) == [("n3", "hsn0", Outcome.WARN, PINNED["10.1.0.3 has no name; 7 others"])]


def test_an_address_with_another_hosts_name() -> None:
    hosts = [named(index, "N4-hsn0.site.org" if index == 3 else "") for index in range(1, 9)]
    assert wrong(of(DNS_REVERSE, *hosts)) == [("n3", "hsn0", Outcome.WARN, PINNED["10.1.0.3 has the name"])]
    assert not wrong(of(DNS_REVERSE, *(named(index, f"x1000c0s{index}b0n0h0") for index in range(1, 9))))
    assert not wrong(of(DNS_REVERSE, *hosts[3:], named(3), named(1, "n30-hsn0")))  # which is not n3's


def test_a_site_without_names_for_its_fabric_has_no_finding() -> None:
    hosts = [named(index, None) for index in range(1, 9)]
    assert not wrong([*of(DNS_REVERSE, *hosts), *of(DNS_FORWARD, *hosts)])
    assert outcomes(of(DNS_REVERSE, named(1, None))) == [Outcome.SKIP]
    assert outcomes(of(DNS_REVERSE, wired(1))) == [Outcome.SKIP]


def test_a_name_that_leads_elsewhere() -> None:
    hosts = [named(index, "", "10.1.0.99" if index == 3 else "") for index in range(1, 9)]
    assert wrong(of(DNS_FORWARD, *hosts)) == [("n3", "hsn0", Outcome.WARN, PINNED["n3-hsn0 resolves to 10.1.0.99"])]


def test_names_that_lead_to_another_network_everywhere_are_no_fault() -> None:
    assert not wrong(of(DNS_FORWARD, *(named(index, "", f"10.9.0.{index}") for index in range(1, 9))))


def test_a_host_whose_own_name_leads_nowhere() -> None:
    hosts = [named(index) for index in range(1, 8)]
    lost = wired(8, names_of={"10.1.0.8": None}, addresses_of={"n8": []})
    assert wrong(of(DNS_FORWARD, *hosts, lost)) == [("n8", "", Outcome.WARN, PINNED["n8 resolves to no address"])]
