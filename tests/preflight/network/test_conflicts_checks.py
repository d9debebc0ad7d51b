"""Whose is an address: what hosts say of themselves, and their neighbour tables of others."""

from __future__ import annotations

import json
from dataclasses import replace

from net_help import mac, wired
from preflight_help import of, outcomes, sample, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.conflicts import ARP_FAILED, IP_DUPLICATE
from fablint.preflight.host import Host
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

STRANGER = "02:15:00:00:ff:ff"


def healthy(*but: int) -> list[Host]:
    """Hosts n1 to n8 that know each other, but some."""
    known = [(f"10.1.0.{index}", mac(index), "STALE") for index in range(1, 9)]
    return [wired(index, neighbours=known) for index in range(1, 9) if index not in but]


def test_hosts_that_know_each_other_are_fine() -> None:
    assert outcomes(of(IP_DUPLICATE, *healthy())) == [Outcome.PASS] * 8
    assert outcomes(of(ARP_FAILED, *healthy())) == [Outcome.PASS] * 8


def test_an_address_that_two_hosts_have() -> None:
    """n2 has the address of n5 in addition to its own, and half of the others map it to n2."""
    both = [{"family": "inet", "local": f"10.1.0.{last}", "prefixlen": 16, "scope": "global"} for last in (2, 5)]
    thief = wired(2, commands={"ip-addr": json.dumps([{"ifname": "hsn0", "addr_info": both}])})
    deceived = wired(9, neighbours=[("10.1.0.5", mac(2), "REACHABLE")])
    assert wrong(of(IP_DUPLICATE, *healthy(2), thief, deceived)) == [
        ("n5", "hsn0", Outcome.FAIL, PINNED["address 10.1.0.5 is also"]),
        ("n2", "hsn0", Outcome.FAIL, PINNED["address 10.1.0.5 (in addition"]),
    ]


def test_an_address_that_another_host_answers_for() -> None:
    hearing = wired(9, neighbours=[("10.1.0.5", mac(2), "REACHABLE")])
    message = "10.1.0.5 of n5/hsn0 is also answered by n2/hsn0, according to n9"
    assert wrong(of(IP_DUPLICATE, *healthy(), hearing)) == [
        ("n2", "hsn0", Outcome.FAIL, message),
        ("n5", "hsn0", Outcome.FAIL, message),
    ]


def test_what_is_only_remembered_may_be_over() -> None:
    hearing = wired(9, neighbours=[("10.1.0.5", mac(2), "STALE")])
    assert {outcome for *_, outcome, _ in wrong(of(IP_DUPLICATE, *healthy(), hearing))} == {Outcome.WARN}


def ipv6_host(index: int, *entries: tuple[int, str, str], address: int = 0) -> Host:
    """A host with an IPv6 address only, and neighbour entries: number of a host, MAC, state."""
    own = [{"family": "inet6", "local": f"fd00::{address or index:x}", "prefixlen": 64, "scope": "global"}]
    known = [{"dst": f"fd00::{n:x}", "dev": "hsn0", "lladdr": one, "state": [state]} for n, one, state in entries]
    said = {"ip-addr": json.dumps([{"ifname": "hsn0", "addr_info": own}]), "ip-neigh": json.dumps(known)}
    return wired(index, commands=said)


def test_hosts_with_ipv6_only() -> None:
    known = [(index, mac(index), "REACHABLE") for index in range(1, 9)]
    fleet = [ipv6_host(index, *known) for index in range(1, 9)]
    assert outcomes(of(IP_DUPLICATE, *fleet)) == [Outcome.PASS] * 8
    assert outcomes(of(ARP_FAILED, *fleet)) == [Outcome.PASS] * 8


def test_conflicts_of_hosts_with_ipv6_only() -> None:
    fleet = [ipv6_host(index) for index in range(1, 9)]
    hearing = ipv6_host(9, (5, mac(2), "REACHABLE"))
    message = "fd00::5 of n5/hsn0 is also answered by n2/hsn0, according to n9"
    assert {row[:1] + row[3:] for row in wrong(of(IP_DUPLICATE, *fleet, hearing))} == {("n2", message), ("n5", message)}
    twin = ipv6_host(9, address=5)
    claims = {row[0]: row[3] for row in wrong(of(IP_DUPLICATE, *fleet, twin))}
    assert claims == {
        "n5": PINNED["address fd00::5 is also assigned"],
        "n9": PINNED["address fd00::5 is also assigned to"],
    }
    deaf = [ipv6_host(index, (5, "", "FAILED")) for index in (1, 2, 3)]
    ((name, nic, _, words),) = wrong(of(ARP_FAILED, *deaf, *fleet[3:]))
    assert (name, nic, words) == ("n5", "hsn0", "does not answer n[1-3]")


def test_entries_of_ipv6_count_only_where_ipv6_is_in_use() -> None:
    hearing = wired(9, commands={"ip-neigh": json.dumps([{"dst": "fd00::5", "dev": "hsn0", "state": ["FAILED"]}])})
    assert wrong(of(ARP_FAILED, *healthy(), hearing)) == []


def test_a_stranger() -> None:
    """Its MAC is not that of one of these hosts."""
    hearing = wired(9, neighbours=[("10.1.0.5", STRANGER, "DELAY")])
    message = f"10.1.0.5 is also answered by {STRANGER}, which belongs to no known host, according to n9"
    assert wrong(of(IP_DUPLICATE, *healthy(), hearing)) == [("n5", "hsn0", Outcome.FAIL, message)]


def test_a_cloud_that_answers_for_everybody_is_no_stranger() -> None:
    cloud = "12:34:56:78:9a:bc"
    known = [(f"10.1.0.{index}", cloud, "REACHABLE") for index in range(1, 9)]
    assert not wrong(of(IP_DUPLICATE, *(wired(index, neighbours=known) for index in range(1, 9))))
    gateway = [{"dst": "default", "gateway": "10.1.255.254", "dev": "hsn0"}]
    known = [("10.1.0.2", cloud, "REACHABLE"), ("10.1.255.254", cloud, "REACHABLE")]
    assert not wrong(of(IP_DUPLICATE, wired(1, routes=gateway, neighbours=known), wired(2)))


def test_two_macs_of_one_host_are_arp_flux() -> None:
    """As `arping` shows it in tests/fixtures/preflight/host/arp-flux.txt: hsn0 answers for the address of hsn1."""
    two = [wired(index, {"hsn0": f"10.1.0.{index}/16", "hsn1": f"10.1.1.{index}/16"}) for index in (1, 2)]
    hearing = wired(9, neighbours=[("10.1.1.2", mac(2, 0), "REACHABLE"), ("10.1.0.2", mac(2, 0), "REACHABLE")])
    message = "10.1.1.2 is also answered by hsn0, according to n9 (ARP flux)"
    assert wrong(of(IP_DUPLICATE, *two, hearing)) == [("n2", "hsn1", Outcome.WARN, message)]


def test_a_bond_may_answer_with_each_of_its_nics() -> None:
    bond = {"/sys/class/net/hsn0/bonding/slaves": "hsn1 hsn2"}
    two = wired(2, {"hsn0": "10.1.0.2/16", "hsn1": ""}, files=bond)
    assert not wrong(of(IP_DUPLICATE, two, wired(9, neighbours=[("10.1.0.2", mac(2, 1), "REACHABLE")])))


def test_a_permanent_entry_that_is_wrong_is_its_hosts_fault() -> None:
    hearing = wired(9, neighbours=[("10.1.0.5", STRANGER, "PERMANENT")])
    ((name, *_, outcome, message),) = wrong(of(IP_DUPLICATE, *healthy(), hearing))
    assert (name, outcome) == ("n9", Outcome.WARN)
    assert PINNED["permanent entry: 10.1.0.5"].begins(message)


def test_machines_behind_hypervisors_have_the_same_address() -> None:
    """Each its own network: the same address, often with the same MAC."""
    assert not wrong(of(IP_DUPLICATE, *(wired(index, {"eth0": "10.0.2.15/24"}) for index in range(1, 5))))
    again = Host(replace(wired(1).snapshot, host="localhost"))
    assert not wrong(of(IP_DUPLICATE, wired(1), again))


def test_the_queue_pair_of_an_ipoib_address_changes() -> None:
    guid = "fe:80:00:00:00:00:00:00:24:8a:07:03:00:a1:b2:c3"
    one = wired(1, {"ib0": "10.1.0.1/16"}, files={"/sys/class/net/ib0/address": f"80:00:02:08:{guid}"})
    hearing = wired(2, {"ib0": "10.1.0.2/16"}, neighbours=[("10.1.0.1", f"00:00:10:29:{guid}", "REACHABLE")])
    assert not wrong(of(IP_DUPLICATE, one, hearing))


# ------------------------------------------------------------------------------------------------ in vain


def asking(index: int, *silent: int, state: str = "FAILED") -> Host:
    """A host that asked for some in vain, and knows the others."""
    return wired(
        index,
        neighbours=[
            (f"10.1.0.{other}", "" if other in silent else mac(other), state if other in silent else "REACHABLE")
            for other in range(1, 5)
            if other != index
        ],
    )


def test_a_host_that_answers_no_host() -> None:
    hosts = [asking(1, 3), asking(2, 3, state="INCOMPLETE"), asking(3, 1, 2, 4), asking(4, 3)]
    assert wrong(of(ARP_FAILED, *hosts)) == [
        ("n3", "hsn0", Outcome.WARN, "does not answer n[1-2,4]"),
    ]


def test_a_host_that_does_not_reach_one_other() -> None:
    assert wrong(of(ARP_FAILED, asking(1, 3), asking(2), asking(3), asking(4))) == [
        ("n1", "hsn0", Outcome.WARN, "no answer from n3/hsn0")
    ]


def test_what_was_asked_long_ago_says_nothing() -> None:
    text = asking(1, 3).command("ip-neigh").text.replace('"updated": 9', '"updated": 86400')
    assert not wrong(of(ARP_FAILED, wired(1, commands={"ip-neigh": text}), asking(2), asking(3), asking(4)))


def test_addresses_that_are_no_hosts_of_these_do_not_matter() -> None:
    """A real neighbour table, with an entry that is being asked for."""
    text = sample("host/ip-j-s-neigh-incomplete.json")
    one = wired(1, {"hsn0": "10.100.0.11/16"}, commands={"ip-neigh": text})
    assert outcomes(of(ARP_FAILED, one)) == [Outcome.PASS]
    other = wired(2, {"hsn0": "10.100.0.77/16"})
    assert wrong(of(ARP_FAILED, one, other)) == [("n1", "hsn0", Outcome.WARN, "no answer from n2/hsn0")]
