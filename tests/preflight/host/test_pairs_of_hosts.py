"""Two like hosts that differ share a warning, whatever differs; two that are equal, or of different make, have none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from preflight_help import host, nic, of, wrong

from fablint.preflight import Fleet, judge
from fablint.preflight.checks.host.class_members import HOST_CLASSES
from fablint.preflight.checks.host.memory import MEMORY
from fablint.preflight.checks.network.addresses import IP_ASSIGNED
from fablint.preflight.checks.network.ipv6_addresses import IP6_ADDRESS
from fablint.preflight.host import Host

PCI = "/sys/bus/pci/devices"
DMI = "/sys/devices/virtual/dmi/id"
WHOLE = {"0x030200 0x10de": 8, "0x020700 0x15b3": 4}  # GPUs and NICs of a host


def built(name: str, cards: Mapping[str, int], product: str = "DGXH100") -> Host:
    files = {f"{DMI}/sys_vendor": "NVIDIA", f"{DMI}/product_name": product, "/proc/cpuinfo": "model name : X"}
    for kind, (words, count) in enumerate(cards.items()):
        for number in range(count):
            at = f"{PCI}/0000:{kind}{number}:00.0"
            values = zip(("class", "vendor"), words.split(), strict=True)
            files |= {f"{at}/{key}": text for key, text in values} | {f"{at}/device": "0x1"}
    return host(name, files)


@pytest.mark.parametrize(
    ("cards", "message"),
    [
        ({"0x030200 0x10de": 7, "0x020700 0x15b3": 4}, "7 instead of 8 GPUs on 1 host, 1 other has all of them"),
        ({"0x030200 0x10de": 8, "0x020700 0x15b3": 2}, "2 instead of 4 NICs on 1 host, 1 other has all of them"),
        ({"0x020700 0x15b3": 4}, ""),  # a login host of the same machine
        (WHOLE, ""),
        ({"0x030200 0x10de": 8, "0x020700 0x15b3": 4, "0x020000 0x8086": 1}, ""),
    ],
)
def test_a_card_that_the_other_of_two_hosts_has(cards: Mapping[str, int], message: str) -> None:
    fleet = Fleet([built("n1", cards), built("n2", WHOLE)])
    assert [said for *_, said in wrong(list(HOST_CLASSES.results(fleet)))] == [message] * bool(message)


def test_hosts_of_other_machines_are_no_pair() -> None:
    few = {"0x030200 0x10de": 7, "0x020700 0x15b3": 4}
    assert wrong(of(HOST_CLASSES, built("n1", few, "DGXA100"), built("n2", WHOLE))) == []
    assert wrong(of(HOST_CLASSES, built("n1", few), built("n2", WHOLE), built("n3", {"0x030200 0x10de": 2}))) == []


@pytest.mark.parametrize(("gib", "count"), [((512, 512), 0), ((512, 508), 0), ((512, 496), 2), ((256, 512), 2)])
def test_memory_of_two_hosts(gib: Sequence[int], count: int) -> None:
    hosts = [host(f"n{index}", {"/proc/meminfo": f"MemTotal: {size << 20} kB"}) for index, size in enumerate(gib)]
    result = wrong(of(MEMORY, *hosts))
    assert len(result) == count
    assert all("two kinds" in said and "n0" in said and "n1" in said for *_, said in result)


def addressed(name: str, *addresses: str, family: str = "inet6") -> Host:
    infos = [
        {"family": family, "local": local, "prefixlen": int(length), "scope": "global"}
        for local, _, length in (address.partition("/") for address in addresses)
    ]
    return host(name, nic(), commands={"ip-addr": json.dumps([{"ifname": "hsn0", "addr_info": infos}])})


def test_an_address_that_the_other_of_two_hosts_has() -> None:
    six = [addressed("n1"), addressed("n2", "2001:db8::2/64")]
    assert [name for name, *_ in wrong(of(IP6_ADDRESS, *six))] == ["n1", "n2"]
    four = [addressed("n1", family="inet"), addressed("n2", "10.1.0.2/16", family="inet")]
    assert [name for name, *_ in wrong(of(IP_ASSIGNED, *four))] == ["n1", "n2"]
    assert wrong(of(IP6_ADDRESS, *four)) == wrong(of(IP_ASSIGNED, *six)) == []


@pytest.mark.parametrize(
    ("networks", "alone"),
    [
        ("1 1 1 1 7", ["n5"]),
        ("1 1 1 2 2", []),  # a rack
        ("1 2 3 4 5", []),  # routed to each host
        ("1 1 1 1 1,7", []),  # one more address
        ("1 1 7", ["n3"]),
        ("1 7", []),
    ],
)
def test_a_host_alone_in_an_ipv6_network(networks: str, alone: list[str]) -> None:
    hosts = [
        addressed(f"n{index}", *(f"2001:db8:{network}::{index}/64" for network in of_host.split(",")))
        for index, of_host in enumerate(networks.split(), 1)
    ]
    assert [name for name, *_ in wrong(of(IP6_ADDRESS, *hosts))] == alone


def test_no_difference_makes_a_host_of_two_unfit() -> None:
    hosts = [built("n1", {"0x030200 0x10de": 7, "0x020700 0x15b3": 4}), built("n2", WHOLE)]
    checks = ("host.class", "host.memory", "net.ip6", "net.ip.assigned")
    assert not [one for one in judge(Fleet(hosts)).results if one.check in checks and one.outcome.name == "FAIL"]
