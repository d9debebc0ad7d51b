"""Room in the table of neighbours."""

from __future__ import annotations

from net_help import wired
from preflight_help import host, nic, of, outcomes, sample, wrong

from fablint.model import Topology
from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.arp_table import ARP_OVERFLOW, ARP_SIZE, ARP_UNIFORM
from fablint.preflight.host import Host
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

CACHE = "/proc/net/stat/arp_cache"


def limits(first: int, last: int) -> dict[str, str]:
    at = "/proc/sys/net/ipv4/neigh/default"
    return {f"{at}/gc_thresh1": str(first), f"{at}/gc_thresh2": str(first), f"{at}/gc_thresh3": str(last)}


def cluster(first: int, last: int, *, shared: bool = False, count: int = 101) -> list[Host]:
    """Two rails: 100 others need 200 entries, 400 where the rails share a subnet."""
    second = "10.1.1" if shared else "10.2.0"
    return [
        wired(index, {"hsn0": f"10.1.0.{index}/16", "hsn1": f"{second}.{index}/16"}, files=limits(first, last))
        for index in range(1, count + 1)
    ]


def test_a_small_table() -> None:
    results = of(ARP_SIZE, *cluster(512, 1024)[:100], cluster(64, 128)[100])
    assert wrong(results) == [("n101", "", Outcome.FAIL, PINNED["gc_thresh3 128, 200 neighbours"])]


def test_rails_in_one_subnet_need_room_for_each_pair() -> None:
    assert outcomes(of(ARP_SIZE, *cluster(256, 399, shared=True))) == [Outcome.FAIL] * 101
    assert outcomes(of(ARP_SIZE, *cluster(400, 499, shared=True))) == [Outcome.WARN] * 101
    assert outcomes(of(ARP_SIZE, *cluster(399, 500, shared=True))) == [Outcome.WARN] * 101
    assert outcomes(of(ARP_SIZE, *cluster(400, 500, shared=True))) == [Outcome.PASS] * 101


def test_silent_hosts_need_room_as_well() -> None:
    silent = {f"s{index}": "no answer in time" for index in range(300)}
    assert outcomes(of(ARP_SIZE, *cluster(128, 256, count=2), silent=silent)) == [Outcome.FAIL] * 2


def test_without_addresses_the_number_of_nics_counts() -> None:
    rails = {**nic("hsn0"), **nic("hsn1"), **limits(64, 128)}
    hosts = [host(f"n{index}", rails) for index in range(101)]
    assert wrong(of(ARP_SIZE, *hosts))[0][3] == PINNED["gc_thresh3 128, 400 neighbours"]


def test_the_kernels_own_limits_do_for_a_small_cluster() -> None:
    assert outcomes(of(ARP_SIZE, *cluster(128, 1024, count=32))) == [Outcome.PASS] * 32


def test_hosts_of_the_topology_that_were_not_requested_warn() -> None:
    names = [f"x{number}" for number in range(2000)]
    topology = Topology({}, dict.fromkeys(names, "s1"))
    hosts = cluster(1024, 2048, count=3)
    assert outcomes(of(ARP_SIZE, *hosts)) == [Outcome.PASS] * 3
    assert [said for *_, said in wrong(of(ARP_SIZE, *hosts, topology=topology))] == [
        PINNED["gc_thresh3 2048, all hosts"]
    ] * 3


def test_the_table_of_ipv6() -> None:
    files = {path.replace("ipv4", "ipv6"): text for path, text in limits(16, 32).items()}
    hosts = [
        wired(index, {"hsn0": f"10.1.0.{index}/16"}, files={**limits(128, 1024), **files}) for index in range(1, 41)
    ]
    assert wrong(of(ARP_SIZE, *hosts)) == []
    for index, one in enumerate(hosts):
        for nic_ in one.nics:
            object.__setattr__(nic_, "addresses", (*nic_.addresses, f"fd00::{index:x}/64", "fe80::1/64"))
    found = wrong(of(ARP_SIZE, *hosts))
    assert {(target, said) for _, target, _, said in found} == {("IPv6", PINNED["gc_thresh3 32, 39 neighbours"])}


def test_a_container_shows_no_limits() -> None:
    for check in (ARP_SIZE, ARP_UNIFORM, ARP_OVERFLOW):
        assert outcomes(of(check, wired(1))) == [Outcome.SKIP]


def test_limits_that_differ() -> None:
    hosts = [host(f"n{index}", limits(128, 1024) if index == 3 else limits(4096, 16384)) for index in range(8)]
    message = "gc_thresh 128/128/1024, 7 others 4096/4096/16384"
    assert wrong(of(ARP_UNIFORM, *hosts)) == [("n3", "", Outcome.WARN, message)]


def test_an_overflow() -> None:
    """Columns are hexadecimal, a row for each CPU."""
    text = sample("host/proc-net-stat-arp_cache.txt")
    assert text.endswith("00000000\n")
    later = text.replace(" 00000000\n", " 0000000a\n")
    full = host("n1", {CACHE: text}, later={CACHE: later})
    assert wrong(of(ARP_OVERFLOW, full)) == [("n1", "", Outcome.FAIL, PINNED["the neighbour table overflowed"])]
    assert outcomes(of(ARP_OVERFLOW, host("n1", {CACHE: later}))) == [Outcome.PASS]
    assert outcomes(of(ARP_OVERFLOW, host("n1", {CACHE: "entries table_fulls\n0000"}))) == [Outcome.ERROR]
