"""The search for hosts that keep a launch from starting, with a fake launcher: no process is started."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil, log2
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from fablint.workflows.recovery.start_search import (
    AT_ONCE,
    WITNESSES,
    Hosts,
    SearchEndedError,
    StartResult,
    StartSearch,
)


@dataclass
class FakeLauncher:
    """Launches that start unless a faulty host, or both ends of a faulty path, take part; some fail by chance."""

    faulty: Collection[str] = ()  # start with no other host
    mute: Collection[str] = ()  # of these: not even alone
    paths: Collection[frozenset[str]] = ()
    chance: float = 0.0
    seed: int = 0
    most: int | None = None  # launches until the time is over
    launched: list[Hosts] = field(default_factory=list)
    rounds: int = 0

    def launch(self, sets: Sequence[Hosts]) -> list[bool]:
        assert 0 < len(sets) <= AT_ONCE
        every = [host for hosts in sets for host in hosts]
        assert len(every) == len(set(every)), "launches at the same time share no host"
        if self.most is not None and len(self.launched) >= self.most:
            raise SearchEndedError
        self.launched += sets
        self.rounds += 1
        return [self._starts(hosts) for hosts in sets]

    def _starts(self, hosts: Hosts) -> bool:
        if len(hosts) == 1:
            return hosts[0] not in self.mute
        by_chance = Random(f"{self.seed} {len(self.launched)} {hosts}").random() < self.chance
        bad = set(hosts) & {*self.faulty, *self.mute} or any(path <= set(hosts) for path in self.paths)
        return not (bad or by_chance)

    def starts_for_sure(self, hosts: Hosts) -> bool:
        return not set(hosts) & {*self.faulty, *self.mute} and not any(path <= set(hosts) for path in self.paths)


def named(count: int) -> list[str]:
    return [f"h{number:04d}" for number in range(count)]


def searched(
    fake: FakeLauncher,
    hosts: Sequence[str],
    suspects: Collection[str] = (),
    unanswered: Collection[frozenset[str]] = (),
    unfit: Collection[str] = (),
) -> StartResult:
    return StartSearch(hosts, fake.launch, suspects, unanswered, unfit).run()


def left_out(result: StartResult) -> set[str]:
    return set(result.excluded)


# ------------------------------------------------------------------------------------------------ hosts


@pytest.mark.parametrize("count", [3, 4, 5, 8, 13, 64, 1000])
def test_one_faulty_host_is_named_wherever_it_is(count: int) -> None:
    hosts = named(count)
    for bad in {hosts[0], hosts[1], hosts[count // 2], hosts[-1]}:
        fake = FakeLauncher({bad})
        result = searched(fake, hosts)
        assert [cause.host for cause in result.faulty] == [bad]
        assert (result.paths, result.unknown) == ([], ())
        assert result.starting == tuple(host for host in hosts if host != bad)


def test_launches_of_one_faulty_host_of_a_thousand_are_about_log2_of_them() -> None:
    for bad in (0, 1, 499, 500, 998, 999):
        fake = FakeLauncher({named(1000)[bad]})
        searched(fake, named(1000))
        assert fake.rounds <= ceil(log2(1000)) + WITNESSES + 5
        assert len(fake.launched) <= 2 * ceil(log2(1000)) + WITNESSES + 10


def test_many_faulty_hosts_take_hardly_more_rounds_than_one() -> None:
    hosts = named(1000)
    bad = set(Random(3).sample(hosts, 20))
    fake = FakeLauncher(bad)
    result = searched(fake, hosts)
    assert {cause.host for cause in result.faulty} == bad == left_out(result)
    assert len(fake.launched) <= 20 * (2 * ceil(log2(1000)) + WITNESSES)
    assert fake.rounds <= 80


def test_a_suspect_is_tried_before_any_group_is_halved() -> None:
    hosts = named(1000)
    fake = FakeLauncher({hosts[700]})
    result = searched(fake, hosts, [hosts[700]])
    assert [cause.host for cause in result.faulty] == [hosts[700]]
    assert len(fake.launched) <= 12
    assert {len(one) for one in fake.launched} <= {1, 2, 991, 999}


def test_a_healthy_suspect_is_not_left_out() -> None:
    hosts = named(32)
    result = searched(FakeLauncher({hosts[5]}), hosts, [hosts[20], hosts[21]])
    assert left_out(result) == {hosts[5]}


def test_a_cause_names_the_partners_of_a_faulty_host_and_whether_its_own_ranks_start() -> None:
    hosts = named(16)
    result = searched(FakeLauncher({hosts[2]}, mute={hosts[9]}), hosts)
    alone = {cause.host: cause.alone for cause in result.faulty}
    assert alone == {hosts[2]: True, hosts[9]: False}
    for cause in result.faulty:
        assert len(cause.fails_with) >= WITNESSES
        assert set(cause.fails_with) <= set(result.starting)


def test_a_launch_that_starts_when_it_is_repeated_leaves_no_host_out() -> None:
    hosts = named(40)
    assert searched(FakeLauncher(), hosts) == StartResult(tuple(hosts))


@pytest.mark.parametrize("count", [2, 3, 8, 100])
def test_where_nothing_starts_no_host_is_named(count: int) -> None:
    fake = FakeLauncher(set(named(count)))
    assert searched(fake, named(count)) == StartResult()
    assert len(fake.launched) <= 20


# ------------------------------------------------------------------------------------------------ paths


@pytest.mark.parametrize("count", [4, 8, 33, 256])
def test_two_hosts_that_fail_only_together_are_a_path(count: int) -> None:
    for first, second in ((0, count - 1), (1, 2), (0, 1), (count // 2 - 1, count // 2)):
        hosts = named(count)
        pair = frozenset((hosts[first], hosts[second]))
        fake = FakeLauncher(paths=[pair])
        result = searched(fake, hosts)
        assert result.faulty == []
        assert [frozenset(path) for path in result.paths] == [pair]
        assert len(result.starting) == count - 1
        assert fake.starts_for_sure(result.starting)
        assert len(fake.launched) <= 3 * ceil(log2(count)) + 30


def test_a_host_that_several_paths_share_is_left_out_and_its_partners_are_not() -> None:
    """As where a switch drops what its own hosts send to one host."""
    hosts = named(16)
    for hub in (hosts[0], hosts[7], hosts[15]):
        others = [host for host in hosts if host != hub][3:6]
        fake = FakeLauncher(paths=[frozenset((hub, other)) for other in others])
        for suspects in ((), (hub,)):
            result = searched(fake, hosts, suspects)
            assert left_out(result) == {hub}, (hub, suspects)
            assert result.paths == []
            (cause,) = result.faulty
            assert set(cause.fails_with) <= set(others)
            assert cause.starts_with
            assert not set(cause.starts_with) & set(others)


def test_pairs_without_answer_are_no_witnesses_of_each_other() -> None:
    hosts = named(16)
    hub, others = hosts[15], hosts[:8]
    paths = [frozenset((hub, other)) for other in others]
    result = searched(FakeLauncher(paths=paths), hosts, [hub], paths)
    (cause,) = result.faulty
    assert cause.host == hub
    assert set(cause.fails_with) <= set(others)


def test_a_host_that_fails_only_in_large_groups_is_a_candidate() -> None:
    """Three hosts that start in pairs and not together."""
    hosts = named(12)

    class Three(FakeLauncher):
        def _starts(self, hosts: Hosts) -> bool:
            return not {"h0001", "h0005", "h0009"} <= set(hosts)

    result = searched(Three(), hosts)
    (cause,) = result.faulty
    assert cause.in_company
    assert (cause.fails_with, len(result.starting)) == ((), 11)


class Losing(FakeLauncher):
    """A host loses half of what is sent to it: it starts with one other at times, and with seven never."""

    def _starts(self, hosts: Hosts) -> bool:
        others = len(hosts) - 1 if set(hosts) & set(self.faulty) else 0
        return Random(f"{self.seed} {len(self.launched)} {hosts}").random() < 0.5 ** min(others, 6) * (others < 7)


@pytest.mark.parametrize("seed", range(20))
def test_no_path_is_searched_in_the_place_of_a_host_that_is_known_to_lose_frames(seed: int) -> None:
    hosts = named(8)
    bad = hosts[3]
    fake = Losing({bad}, seed=seed)
    result = searched(fake, hosts, [bad], unfit=[bad])
    assert (left_out(result), result.paths) == ({bad}, [])
    assert result.starting == tuple(host for host in hosts if host != bad)
    assert fake.rounds <= 10


# ------------------------------------------------------------------------------------------------ at random


@settings(max_examples=300)
@given(st.integers(3, 90), st.integers(0, 6), st.integers(0, 2), st.randoms(use_true_random=False), st.booleans())
def test_random_faults_are_named_and_nothing_else(
    count: int, faults: int, cuts: int, random: Random, suspected: bool
) -> None:
    hosts = named(count)
    faulty = set(random.sample(hosts, min(faults, (count - 2) // 2)))
    healthy = [host for host in hosts if host not in faulty]
    ends = random.sample(healthy, min(2 * cuts, len(healthy) // 3 * 2 // 2 * 2))
    paths = [frozenset(ends[at : at + 2]) for at in range(0, len(ends), 2)] if len(healthy) > 2 else []
    mute = set(random.sample(sorted(faulty), len(faulty) // 3))
    fake = FakeLauncher(faulty - mute, mute, paths)
    suspects = random.sample(hosts, min(3, count // 4)) if suspected else []
    result = searched(fake, hosts, suspects)
    assert {cause.host for cause in result.faulty} == faulty
    assert {frozenset(path) for path in result.paths} == set(paths)
    assert len(result.starting) == count - len(faulty) - len(paths)
    assert set(result.starting) | left_out(result) == set(hosts)
    assert result.unknown == ()


@settings(max_examples=200)
@given(st.integers(4, 64), st.integers(0, 3), st.integers(0, 10**6))
def test_launches_that_fail_by_chance_report_no_healthy_host(count: int, faults: int, seed: int) -> None:
    """One in twenty does not start; a fault needs three that do not start, of a host with three others."""
    hosts = named(count)
    faulty = set(Random(seed).sample(hosts, min(faults, count // 4)))
    fake = FakeLauncher(faulty, chance=0.05, seed=seed)
    result = searched(fake, hosts)
    assert {cause.host for cause in result.faulty if not cause.in_company} <= faulty
    assert not set(result.starting) & faulty
    assert set(result.starting) | left_out(result) == set(hosts) or not result.starting


@settings(max_examples=100)
@given(st.integers(8, 64), st.integers(0, 60), st.integers(0, 10**6))
def test_a_search_that_is_ended_early_leaves_hosts_undecided_and_reports_none_wrongly(
    count: int, most: int, seed: int
) -> None:
    hosts = named(count)
    random = Random(seed)
    faulty = set(random.sample(hosts, count // 4))
    fake = FakeLauncher(faulty, most=most)
    result = searched(fake, hosts)
    assert {cause.host for cause in result.faulty} <= faulty
    assert not set(result.starting) & faulty
    if result.starting:
        assert set(result.starting) | left_out(result) == set(hosts)


def test_every_pair_of_four_hosts() -> None:
    for pair in combinations(named(4), 2):
        result = searched(FakeLauncher(paths=[frozenset(pair)]), named(4))
        assert [frozenset(path) for path in result.paths] == [frozenset(pair)]
