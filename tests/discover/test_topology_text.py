"""Topology files that fablint writes: they read back as what was written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from fablint.discover import load_topology, write_topology
from fablint.errors import UsageError
from fablint.model import Cable, Routing, Switch, Topology
from fablint.model.host_name import NicRef
from fablint.topology.file_reader import read_topology
from pinned import pinned_by

PINNED = pinned_by("discover.toml", __file__)

NAMES = st.one_of(
    st.from_regex(r"[a-z]{0,2}[0-9]{1,3}", fullmatch=True),  # neighbours that fold, paddings that do not
    st.from_regex(r"x[0-9]c[0-9]s[0-3]b0n[01]", fullmatch=True),
    st.sampled_from(["no", "null", "1e3", "0x10", "~x", "h 1", "h0.a.org", "h1.a.org", "é1", "-", "1:30", "a: b", "#"]),
)
PORTS = st.one_of(st.none(), st.sampled_from(["1", "01", "p1", "x0j1p0", "yes", "1.0"]))


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    names = draw(st.lists(NAMES, min_size=4, max_size=40, unique=True))
    count = draw(st.integers(2, len(names) - 1))
    switches = {name: Switch(name, draw(st.sampled_from(["", "g0", "7"]))) for name in names[:count]}
    anywhere = st.sampled_from(list(switches))
    host_switch, nic_switch = {}, {}
    ports: dict[tuple[str, str], str] = {}
    taken = set()

    def plug(switch: str, end: str) -> None:
        port = draw(PORTS)
        if port and (switch, port) not in taken:
            taken.add((switch, port))
            ports[switch, end] = port

    for host in names[count:]:
        rails = draw(st.lists(st.sampled_from(["hsn0", "hsn1", "mlx5_0/1", "no"]), max_size=3, unique=True))
        places = [draw(anywhere) for _ in rails] or [draw(anywhere)]
        host_switch[host] = places[0]
        for nic, place in zip(rails, places, strict=False):
            nic_switch[NicRef.of(host, nic)] = place
            plug(place, NicRef.of(host, nic))
        if not rails:
            plug(places[0], host)
    speeds = st.sampled_from([None, 12.5e9, 25e9, 50e9, 1.25e6, 3.125e9])
    strung = draw(st.lists(st.tuples(anywhere, anywhere, speeds), max_size=8))
    cables = [Cable(a, b, speed) for a, b, speed in strung if a != b]
    for a, b in {tuple(sorted((cable.a, cable.b))) for cable in cables}:
        plug(a, b)
        plug(b, a)
    routing = draw(
        st.one_of(
            st.sampled_from([Routing(), Routing("d-mod-k"), Routing("ecmp")]),
            st.builds(Routing, st.just("adaptive"), st.floats(0.01, 1)),
            st.just(Routing("tables", tables=_straight_tables(host_switch, cables))),
        )
    )
    return Topology(switches, host_switch, tuple(cables), "", routing, nic_switch, ports)


def _straight_tables(hosts: dict[str, str], cables: list[Cable]) -> dict[str, dict[str, str]]:
    """Every neighbour of a host's switch sends its messages there."""
    tables: dict[str, dict[str, str]] = {}
    for cable in cables:
        for here, there in ((cable.a, cable.b), (cable.b, cable.a)):
            tables.setdefault(here, {}).update({host: there for host, switch in hosts.items() if switch == there})
    return tables


def in_order(topology: Topology) -> tuple[object, ...]:
    """All that a file holds. The order of hosts, switches and cables says how d-mod-k routes."""
    return (
        list(topology.switches.items()),
        list(topology.host_switch.items()),
        topology.cables,
        topology.routing,
        list(topology.nic_switch.items()),
        topology.ports,
    )


@settings(max_examples=200)
@given(topology=topologies())
def test_what_was_written_reads_back(topology: Topology, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("written") / "topology.yaml"
    path.write_text(write_topology(topology), encoding="utf-8")
    assert in_order(load_topology(path)) == in_order(topology)


def test_hosts_whose_first_nics_differ_are_not_folded() -> None:
    switches = {name: Switch(name) for name in ("s0", "s1")}
    rails = {
        NicRef.of(*nic): f"s{nic[1][-1]}" for nic in (("h0", "hsn0"), ("h0", "hsn1"), ("h1", "hsn1"), ("h1", "hsn0"))
    }
    given = Topology(switches, {"h0": "s0", "h1": "s1"}, nic_switch=rails)
    found = read_topology(Path("topology.yaml"), write_topology(given))
    assert in_order(found) == in_order(given)


def test_names_that_follow_each_other_are_folded() -> None:
    switches = {f"s{index}": Switch(f"s{index}", "g0") for index in range(2)}
    hosts = {f"h{index:02d}": "s0" if index < 8 else "s1" for index in range(16)}
    tables = {"s0": {host: "s1" for host, switch in hosts.items() if switch == "s1" and host != "h10"}}
    text = write_topology(Topology(switches, hosts, (Cable("s0", "s1"),), routing=Routing("tables", tables=tables)))
    assert text == PINNED["format: 1 switches: s 0-1"]


def test_equal_parts_are_written_each_time() -> None:
    """Readers of other programs, and people, do not know the anchors of YAML."""
    switches = {name: Switch(name, "g0") for name in ("a0", "b5", "c9", "leaf")}
    rails = {NicRef.of(host, nic): "leaf" for host in ("x1", "y7", "z3") for nic in ("hsn0", "hsn1")}
    table = {"x1": "leaf", "y7": "leaf", "z3": "leaf"}
    cables = tuple(Cable(name, "leaf", 25e9) for name in ("a0", "b5", "c9"))
    routing = Routing("tables", tables={name: table for name in ("a0", "b5", "c9")})
    given = Topology(switches, {host: "leaf" for host in ("x1", "y7", "z3")}, cables, "", routing, rails)
    text = write_topology(given)
    assert not re.search(r"[&*]\w", text)
    assert in_order(read_topology(Path("topology.yaml"), text)) == in_order(given)


def test_an_inferred_map_is_marked() -> None:
    text = write_topology(Topology({"s0": Switch("s0")}, {"h0": "s0"}, inferred=True))
    assert PINNED["inferred by fablint"].begins(text)


@pytest.mark.parametrize("name", ["a,b", "h[0-1]", "h[0-", "a&b", "", " a", "a/b", "a\nb", "h٣"])
def test_a_name_that_would_read_as_another_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be written to a topology file"):
        write_topology(Topology({"s0": Switch("s0")}, {name: "s0"}))
