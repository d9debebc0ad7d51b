"""What explains pairs of hosts without an answer: hosts, switches, paths between them, whole or in part."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest

from fablint.model import Switch, Topology
from fablint.preflight import DeadPath, explain_dead_pairs

Dead = Callable[[int, int], bool]  # of the number of the first and of the second host, the lower one first


def fabric(count: int, each: int, groups: int = 0) -> Topology:
    """Switches s0, s1 ... of `each` hosts; `groups` switches are a group."""
    hosts = {f"n{number:02}": f"s{number // each}" for number in range(count)}
    names = dict.fromkeys(hosts.values())
    return Topology({name: Switch(name, f"g{int(name[1:]) // groups}" if groups else "") for name in names}, hosts)


def explained(
    dead: Dead, topology: Topology | None, count: int = 12, tried: Dead = lambda a, b: True
) -> list[DeadPath]:
    pairs = {
        frozenset((f"n{a:02}", f"n{b:02}")): not dead(a, b) for a, b in combinations(range(count), 2) if tried(a, b)
    }
    return explain_dead_pairs(pairs, topology)


def named(paths: list[DeadPath]) -> list[tuple[str, ...]]:
    return sorted((path.name.kind, *(",".join(end) for end in path.name.ends)) for path in paths)


def between(first: set[int], second: set[int], each: int = 3) -> Dead:
    return lambda a, b: (a // each in first and b // each in second) or (a // each in second and b // each in first)


CASES: dict[str, tuple[Dead, list[tuple[str, ...]]]] = {
    "none": (lambda a, b: False, []),
    "all: pings may be filtered": (lambda a, b: True, []),
    "a host": (lambda a, b: 7 in (a, b), [("host", "n07")]),
    "a host, beyond its switch": (lambda a, b: 7 in (a, b) and a // 3 != b // 3, [("host", "n07")]),
    "two hosts of a switch": (lambda a, b: bool({6, 7} & {a, b}), [("host", "n06"), ("host", "n07")]),
    "two switches": (between({0}, {2}), [("route", "s0", "s2")]),
    "two holes": (
        lambda a, b: between({0}, {1})(a, b) or between({2}, {3})(a, b),
        [("route", "s0", "s1"), ("route", "s2", "s3")],
    ),
    "two holes of a switch": (between({0}, {1, 2}), [("route", "s0", "s1"), ("route", "s0", "s2")]),
    "a switch and all others": (between({1}, {0, 2, 3}), [("switch", "s1")]),
    "an entry for a host in a switch": (lambda a, b: b == 11 and a < 3, [("route", "n11", "s0")]),
    "half of the pairs of two switches": (
        lambda a, b: between({0}, {1})(a, b) and (a + b) % 2,
        [("route", "s0", "s1")],
    ),
    "a host and a hole": (
        lambda a, b: 11 in (a, b) or between({0}, {1})(a, b),
        [("host", "n11"), ("route", "s0", "s1")],
    ),
    "two hosts": (lambda a, b: (a, b) == (2, 7), [("route", "n02", "n07")]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_component_that_explains_most_is_named(case: str) -> None:
    dead, expected = CASES[case]
    assert named(explained(dead, fabric(12, 3))) == expected


def test_a_hole_between_groups_is_one_path() -> None:
    found = explained(lambda a, b: a < 6 <= b, fabric(12, 3, groups=2))
    assert named(found) == [("route", "g0", "g1")]
    assert (found[0].tried, len(found[0].dead), found[0].is_whole) == (36, 36, True)


def test_a_path_with_some_answers_is_not_whole_and_counts_them() -> None:
    (path,) = explained(lambda a, b: between({0}, {1})(a, b) and (a + b) % 2 == 1, fabric(12, 3))
    assert (len(path.dead), path.tried, path.is_whole) == (5, 9, False)
    assert path.pairs == set(path.dead)


@pytest.mark.parametrize(
    ("dead", "expected"),
    [
        (between({0}, {1}), [("route", "n00,n01,n02", "n03,n04,n05")]),
        (lambda a, b: 4 in (a, b), [("host", "n04")]),
        (lambda a, b: (a, b) in ((4, 6), (4, 9), (2, 4)), [("route", "n02,n06,n09", "n04")]),
        (lambda a, b: (a, b) in ((4, 6), (1, 9)), [("route", "n01", "n09"), ("route", "n04", "n06")]),
    ],
)
def test_without_known_switches_hosts_that_fail_with_the_same_hosts_are_an_end(
    dead: Dead, expected: list[tuple[str, ...]]
) -> None:
    assert named(explained(dead, None)) == expected


def test_of_many_hosts_a_part_of_the_pairs_shows_the_path_and_all_its_pairs() -> None:
    """Each host pings a few others: the launch still has to do without all pairs of the path."""
    topology = fabric(60, 6)
    found = explained(between({2}, {5}, each=6), topology, 60, tried=lambda a, b: (a * 7 + b * 11) % 5 == 0)
    assert named(found) == [("route", "s2", "s5")]
    assert found[0].tried < 12
    assert len(found[0].pairs) == 36
