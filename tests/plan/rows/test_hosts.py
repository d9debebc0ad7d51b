"""Lists of hosts."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from fablint.errors import UsageError
from fablint.model import Plan, Slots
from fablint.plan import joined, parse_hosts, parse_rank_hosts, parse_slots


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("server[2-3]", "server2 server3"),
        ("client[1-3,10]", "client1 client2 client3 client10"),
        ("client{1,5,7}", "client1 client5 client7"),
        ("client{1..3}", "client1 client2 client3"),
        ("n[001-003]-ib", "n001-ib n002-ib n003-ib"),
        ("n{a,b}[1-2]", "na1 na2 nb1 nb2"),
        ("{n1,n5}", "n1 n5"),
        ("x{1,b}", "x1 xb"),
        ("z,a,n[2-3]", "z a n2 n3"),
        (" a , b ", "a b"),
        ("nid000001.site.org", "nid000001.site.org"),
        ("10.0.0.1", "10.0.0.1"),
        ("fd00::1,FD00:0::2", "fd00::1 fd00::2"),
        ("[fd00::1],n[1-2]", "fd00::1 n1 n2"),
        ("2001:db8::[1-3]", "2001:db8::1 2001:db8::2 2001:db8::3"),
    ],
)
def test_a_list_in_its_order(text, hosts):
    assert list(parse_hosts(text)) == hosts.split()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{1,5,7}", "'{1,5,7}': 1 is a number and no host: put the name before it, as client{1,5,7}"),
        ("2", "'2': 2 is a number and no host"),
        ("", "'' names no host"),
        (",", "',' names no host"),
        ("n[1-", "'n[1-' is not a list of hosts: missing bracket"),
        ("n1,n[1-2]", "'n1,n[1-2]': n1 appears twice: give every host once"),
        ("-x", "'-x': '-x' is not a host"),
        ("a b", "'a b': 'a b' is not a host"),
        ("@all", "'@all': '@all' is not a host"),
        ("a:2", "'a:2': 'a:2' is not a host"),
        ("n[1-99999999999]", "'n[1-99999999999]' stands for more than 250,000 names"),
        ("n{1..99999999999}", "'n[1-99999999999]' stands for more than 250,000 names"),
        ("n[1-150000],m[1-150000]", "'n[1-150000],m[1-150000]' stands for more than 250,000 names"),
        ("{a,b}" * 40, "'" + "{a,b}" * 12 + "...' stands for more than 250,000 names"),
        ("fd00::1,[fd00:0::1]", "'fd00::1,[fd00:0::1]': fd00::1 appears twice"),
        ("fd00::xyz", "'fd00::xyz': 'fd00::xyz' is not a host"),
        ("fe80::1%eth0", "'fe80::1%eth0': 'fe80::1%eth0' is not a host"),
        ("[fd00::1]:4", "'[fd00::1]:4' is not a list of hosts"),
        ("n1\nn2", "'n1?n2': 'n1?n2' is not a host"),
    ],
)
def test_what_is_no_list(text, error):
    with pytest.raises(UsageError) as caught:
        parse_hosts(text)
    assert str(caught.value).startswith(error)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["n1,n1,n2,n2", "n[1-2],n[1-2]", "n1,n[1-2]", "fd00::1,[fd00:0::1]"])
def test_hosts_of_ranks_may_repeat(text):
    hosts = parse_rank_hosts(text)
    assert len(hosts) > len(set(hosts))


@given(st.lists(st.integers(0, 999), min_size=1, max_size=20, unique=True))
def test_brackets_and_braces_mean_the_same(numbers):
    inside = ",".join(map(str, numbers))
    assert (
        set(parse_hosts(f"n[{inside}]")) == set(parse_hosts(f"n{{{inside}}}")) == {f"n{number}" for number in numbers}
    )


def test_slots_of_two_lists():
    servers, clients = parse_slots("s[1-2]", 2), parse_slots("s2,c1", 1)
    assert servers == (Slots("s1", 2), Slots("s2", 2))
    assert joined(servers, clients) == (Slots("s1", 2), Slots("s2", 3), Slots("c1", 1))
    assert joined(clients, servers) == (Slots("s2", 1), Slots("c1", 1), Slots("s1", 2), Slots("s2", 2))


def test_the_most_ranks_on_a_host():
    slots = (Slots("a", 2), Slots("b", 3), Slots("a", 2))
    assert Plan(7, (), slots).most_ranks_per_host == 4
    assert Plan(7, ()).most_ranks_per_host == 7
