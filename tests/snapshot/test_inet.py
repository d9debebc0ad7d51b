"""What `ip -j` prints, and the routes of packets that follow from it."""

from __future__ import annotations

import json
import random

import pytest

from fablint.preflight.route_lookup import RouteLookup
from fablint.snapshot.host_snapshot import Output, Snapshot
from fablint.snapshot.parsers.inet import Inet, Route, dotted, number_of
from snapshot_trees import FIXTURES

SAMPLES = FIXTURES / "preflight/host"


def inet(**outputs: str) -> Inet:
    return Inet(Snapshot("n1", commands={f"ip-{name}": Output(text, status=0) for name, text in outputs.items()}))


REAL = inet(
    addr=(SAMPLES / "ip-j-addr-two-rails.json").read_text(),
    route=(SAMPLES / "ip-j-route-all-wrong-route.json").read_text(),
    rule=(SAMPLES / "ip-j-rule-many.json").read_text(),
    neigh=(SAMPLES / "ip-j-s-neigh-incomplete.json").read_text(),
)


def number(text: str) -> int:
    found = number_of(text)
    assert found is not None
    return found


def test_addresses_of_a_real_host() -> None:
    found = [(item.nic, item.text, item.network) for item in REAL.addresses.items]
    assert found == [
        ("hsn0", "10.100.0.11", "10.100.0.0/16"),
        ("hsn0", "10.100.0.12", "10.100.0.0/16"),
        ("hsn1", "10.100.1.11", "10.100.0.0/16"),
        ("mgmt0", "10.99.0.11", "10.99.0.0/16"),
    ]


def test_the_neighbour_table_of_a_real_host() -> None:
    permanent, asked = REAL.entries.items
    assert (dotted(permanent.number), permanent.mac, permanent.silent) == ("10.100.0.14", "02:15:00:00:00:03", False)
    assert (dotted(asked.number), asked.mac, asked.state, asked.silent) == ("10.100.0.77", "", "INCOMPLETE", True)


def test_rules_that_look_at_more_than_addresses_are_left_out() -> None:
    assert [rule.priority for rule in REAL.rules.items] == [0, 100, 101, 32766, 32767]
    assert not REAL.divided
    assert inet(rule='[{"priority":1000,"src":"all","l3mdev":null}]').divided


@pytest.mark.parametrize(
    "source, destination, route_text",
    [
        (None, "10.100.0.13", "10.100.0.13 via 10.99.0.13 dev mgmt0"),
        ("10.100.0.11", "10.100.0.14", "10.100.0.0/16 dev hsn0"),
        ("10.100.1.11", "10.100.0.13", "10.100.0.0/16 dev hsn1"),  # by its rule
        ("10.5.1.1", "10.6.1.1", "default via 10.99.0.1 dev mgmt0"),  # a rule whose table has no such route
        (None, "10.100.0.12", "local 10.100.0.12 dev hsn0"),
        (None, "10.7.0.1", "blackhole 10.7.0.0/16"),
        (None, "10.8.0.1", "10.8.0.0/16 dev hsn0 dev mgmt0"),
        (None, "192.0.2.1", "default via 10.99.0.1 dev mgmt0"),
    ],
)
def test_the_route_of_a_packet(source: str | None, destination: str, route_text: str) -> None:
    route = RouteLookup(REAL).find_route(number(destination), number_of(source))
    assert str(route) == route_text


def test_a_table_that_hands_on_to_the_next() -> None:
    routes = [{"type": "throw", "dst": "default", "table": "7"}, {"dst": "10.0.0.0/8", "dev": "hsn0"}]
    rules = [{"priority": 1, "src": "all", "table": "7"}, {"priority": 2, "src": "all", "table": "main"}]
    lookup = RouteLookup(inet(route=json.dumps(routes), rule=json.dumps(rules)))
    assert str(lookup.find_route(number("10.0.0.1"))) == "10.0.0.0/8 dev hsn0"
    assert lookup.find_route(number("11.0.0.1")) is None


def test_routes_of_ipv6_are_no_routes_of_ipv4() -> None:
    routes = [
        {"dst": "default", "dev": "tun0", "metric": 1, "pref": "medium"},
        {"dst": "default", "dev": "e0", "metric": 9},
    ]
    assert str(RouteLookup(inet(route=json.dumps(routes))).find_route(number("10.0.0.1"))) == "default dev e0"


def test_all_addresses_of_a_section_have_the_same_route() -> None:
    """Of thousands of addresses a few are looked up; the others must have the same route."""
    dice = random.Random(3)
    octets = [(dice.randrange(4), dice.randrange(256), dice.randrange(256), dice.randrange(9, 33)) for _ in range(200)]
    routes = [{"dst": "10.{}.{}.{}/{}".format(*each), "dev": f"e{index}"} for index, each in enumerate(octets)]
    routes += [{"dst": "10.2.0.0/15", "dev": "z", "table": "7"}]
    rules = [
        {"priority": 1, "src": "all", "dst": "10.2.77.0", "dstlen": 24, "table": "7"},
        {"priority": 2, "src": "all", "table": "main"},
    ]
    lookup = RouteLookup(inet(route=json.dumps(routes), rule=json.dumps(rules)))
    addresses = sorted({number("10.0.0.0") + dice.randrange(1 << 18) for _ in range(5000)})
    sections = list(lookup.sections(addresses, range(100, 4000)))
    assert [at for section in sections for at in section] == list(range(100, 4000))
    for section in sections:
        assert len({lookup.find_route(addresses[at]) for at in section}) == 1
    assert len(sections) < 500


def test_a_list_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    entries = [
        {"dst": f"10.0.{index // 256}.{index % 256}", "dev": "hsn0", "state": ["STALE"]} for index in range(4000)
    ]
    text = json.dumps(entries, separators=(",", ":"))
    found = inet(neigh=text[: len(text) * 3 // 4]).entries
    assert not found.missing
    assert 2900 < len(found.items) < 3100
    assert inet(neigh='[{"dst":"10.0.0.1","de').entries.garbled


def test_nothing_at_all() -> None:
    empty = inet(addr="", neigh="[]").addresses
    assert (empty.items, empty.missing) == ([], "")
    gone = Inet(Snapshot("n1", commands={"ip-addr": Output(error="not installed")})).addresses
    assert (gone.missing, gone.garbled) == ("ip addr: not installed", False)


@pytest.mark.parametrize("text", ["10.0.0", "10.0.0.256", "::1", "10.0.0.1\x00", "", None, 5])
def test_what_is_no_address(text: object) -> None:
    assert number_of(text) is None


def test_a_route_reads_as_ip_writes_it() -> None:
    assert str(Route("main", number("10.0.0.0"), 8, ("a",), gateway="10.1.1.1")) == "10.0.0.0/8 via 10.1.1.1 dev a"
