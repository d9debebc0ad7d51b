"""One identity per host: names with and without domain, subdomains, addresses, and lists that mix them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from fablint.model import Switch, Topology
from fablint.model.host_name import HostName, HostNames, NicRef, one_spelling, unified
from fablint.model.placement import Placement
from fablint.model.topology import Routing

NAMES = st.lists(
    st.sampled_from(["n1", "n2", "N1", "n1.a", "n1.b", "n1.a.org", "n2.org.", "10.0.0.1", "10"]), unique=True
)


@pytest.mark.parametrize(
    ("text", "short", "full"),
    [
        ("nid001000", "nid001000", "nid001000"),
        ("nid001000.hpc.example.", "nid001000", "nid001000.hpc.example"),
        ("mpi-worker.10.foo.net", "mpi-worker", "mpi-worker.10.foo.net"),
        ("10.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("[2001:db8::3000:1]", "2001:db8::3000:1", "2001:db8::3000:1"),
        (".", ".", "."),
        ("", "", ""),
    ],
)
def test_forms_of_a_name(text, short, full):
    assert (HostName(text).short, HostName(text).full) == (short, full)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("n1", "n1.hpc.example", True),
        ("N1.HPC.example.", "n1.hpc", True),
        ("n1.a.example", "n1.b.example", False),
        ("n1", "n10.hpc.example", False),
        ("10.0.0.1", "10", False),
        ("10.0.0.1", "10.0.0.10", False),
        ("2001:db8::1", "2001:0db8:0:0::0001", True),
        ("2001:db8::1", "2001:db8::2", False),
        ("mpi-worker.10", "mpi-worker.10.foo.net", True),
        ("mpi-worker.1", "mpi-worker.10.foo.net", False),
    ],
)
def test_names_of_one_host(a, b, same):
    assert HostName(a).is_same(HostName(b)) is HostName(b).is_same(HostName(a)) is same


def test_lookup_prefers_the_spelling_then_the_agreeing_name_then_the_only_first_label():
    hosts = HostNames(["n1.site.org", "n2", "n3.a", "n3.b", "N5", "n5", "n6", "n6.x"], complete=True)
    found = {
        name: hosts.find(name)
        for name in ("n1", "n2.site.org", "n3", "n3.B.", "n4", "n5", "n5.y", "n6.x.org", "n1.mgmt")
    }
    assert found == {
        "n1": "n1.site.org",
        "n2.site.org": "n2",
        "n3": None,  # of two hosts
        "n3.B.": "n3.b",
        "n4": None,
        "n5": "n5",
        "n5.y": None,
        "n6.x.org": "n6.x",
        "n1.mgmt": "n1.site.org",
    }
    assert HostNames(["n1.site.org"]).find("n1.mgmt") is None  # may be a host that the list lacks


def test_names_of_one_list_are_never_one_host():
    assert HostNames(["n1"]).matched(["n1.a", "n1.b"]) == {}
    assert HostNames(["n1"], complete=True).matched(["n1.a", "n1"]) == {"n1": "n1"}
    assert HostNames(["n1.a.org"], complete=True).matched(["n1.a", "n1.b.org"]) == {"n1.a": "n1.a.org"}
    assert unified(["n1.site", "n2", "n1", "n3.a", "n3.b", "n3"]) == {
        **{"n1.site": "n1.site", "n1": "n1.site", "n2": "n2"},
        **{"n3.a": "n3.a", "n3.b": "n3.b", "n3": "n3"},
    }


@given(NAMES, NAMES)
def test_matches_are_one_to_one(hosts, names):
    for complete in (False, True):
        matches = HostNames(hosts, complete=complete).matched(names)
        assert len(set(matches.values())) == len(matches) <= len(hosts)
        assert all(matches[name] == name for name in set(names) & set(hosts))


def test_one_spelling_is_the_requested_one_else_the_shorter():
    spell = one_spelling(["n1.site", "n7.a", "n7.b"], ["n1", "n2.site", "n2", "n7", "n1.mgmt"])
    names = ("n1", "n1.site", "n1.mgmt", "n2.site", "n2", "n7", "n7.a", "n8")
    assert [spell(name) for name in names] == ["n1.site", "n1.site", "n1.mgmt", "n2", "n2", "n7", "n7.a", "n8"]


@pytest.mark.parametrize(
    ("run", "topology"),
    [
        (["n1", "n2", "n3"], ["n1.hpc.example", "n2.hpc.example", "n3.hpc.example"]),
        (["n1.hpc.example", "n2.hpc.example", "n3.hpc.example"], ["n1", "n2", "n3"]),
        (["n1.hpc.example", "n2", "n3.hpc.example."], ["n1", "n2.hpc.example", "n3.hpc.example"]),
        (["N1", "n2", "n3.ib.example"], ["n1", "n2.", "n3.eth.example"]),
        (["w.10.foo.net", "w.20.foo.net", "w.30"], ["w.10", "w.20", "w.30.foo.net"]),
    ],
)
def test_every_host_has_its_switch(run, topology):
    switches = {name: Switch(name, f"g{name}") for name in ("s0", "s1", "s2")}
    fabric = Topology(switches, dict(zip(topology, switches, strict=True)))
    placement = Placement.of_hosts(run, fabric)
    assert placement.switch.tolist() == [0, 1, 2]
    assert placement.hosts == tuple(run)


def test_subdomains_that_a_topology_does_not_distinguish_have_no_switch():
    fabric = Topology({"s0": Switch("s0")}, {"n1": "s0", "n2": "s0"})
    assert Placement.of_hosts(["n1.a", "n1.b", "n2.a"], fabric).switch.tolist() == [-1, -1, 0]


def test_everything_that_a_topology_says_of_a_host_is_renamed():
    fabric = Topology(
        {"s0": Switch("s0")},
        {"n1": "s0"},
        nic_switch={NicRef("n1/hsn0"): "s0"},
        ports={("s0", "n1/hsn0"): "p1"},
        routing=Routing("tables", tables={"s0": {"n1": "s1"}}),
    )
    renamed = fabric.named_as(["n1.hpc.example"])
    assert renamed.host_switch == {"n1.hpc.example": "s0"}
    assert renamed.nic_switch == {"n1.hpc.example/hsn0": "s0"}
    assert renamed.ports == {("s0", "n1.hpc.example/hsn0"): "p1"}
    assert renamed.routing.tables == {"s0": {"n1.hpc.example": "s1"}}
    assert fabric.named_as(["n1"]) is fabric
