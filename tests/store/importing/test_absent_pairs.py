"""Pairs of present hosts that a file does not name are missing, unless the file is a sample by design."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from fablint.analyse import diagnose
from fablint.model import Run, State, Switch, Topology, Verdict
from fablint.store.importing import import_run

HOSTS = [f"n{number:02}" for number in range(20)]
SWITCHED = Topology(
    switches={name: Switch(name) for name in ("lf0", "lf1", "lf2", "lf3", "lf4")},
    host_switch={host: f"lf{number // 4}" for number, host in enumerate(HOSTS)},
)
Pair = tuple[int, int]


def csv(pairs: Iterable[Pair], *, names: list[str] = HOSTS, column: str = "bandwidth") -> str:
    figure = random.Random(3)
    lines = [f"{names[a]},{names[b]},1048576,{12000 * figure.uniform(0.99, 1.01):.1f}" for a, b in pairs]
    return "\n".join([f"src,dst,size,{column}", *lines, ""])


def imported(tmp_path: Path, *texts: str) -> Run:
    paths = [tmp_path / f"{number}.csv" for number, _ in enumerate(texts)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return import_run(paths)


def every(keep: Callable[[int, int], bool] = lambda a, b: True) -> list[Pair]:
    return [pair for pair in itertools.permutations(range(20), 2) if keep(*pair)]


def unjudged(verdict: Verdict) -> set[str]:
    return {finding.name for finding in verdict.findings if finding.state is State.NOT_JUDGED}


def test_a_csv_of_all_pairs_passes(tmp_path: Path) -> None:
    run = imported(tmp_path, csv(every()))
    verdict = diagnose(run, SWITCHED).verdict
    assert (run.state, verdict.verdict) == ("complete", "pass")
    assert (verdict.coverage.pairs_planned, verdict.coverage.pairs_measured) == (380, 380)


@pytest.mark.parametrize(
    ("keep", "name"),
    [
        (lambda a, b: not (a == 5 and b >= 12), "n05"),  # a host without a line to the hosts of two leaves
        (lambda a, b: not (a // 4 == 1 and b // 4 == 3), "lf1>lf3"),
        (lambda a, b: {a // 4, b // 4} != {0, 4}, "lf0=lf4"),
        (lambda a, b: b != 9, "n09"),
    ],
)
def test_a_csv_without_some_pairs_of_its_hosts_is_incomplete(
    tmp_path: Path, keep: Callable[[int, int], bool], name: str
) -> None:
    run = imported(tmp_path, csv(every(keep)))
    verdict = diagnose(run, SWITCHED).verdict
    assert (run.state, verdict.exit_code) == ("interrupted", 3)
    assert name in unjudged(verdict)
    assert (verdict.coverage.pairs_planned, verdict.coverage.pairs_measured) == (380, len(every(keep)))


def test_lines_of_one_pair_do_not_stand_for_those_of_another(tmp_path: Path) -> None:
    """Each pair twice, a block of pairs never: there are more lines than pairs."""
    pairs = every(lambda a, b: not (a // 4 == 1 and b // 4 == 3))
    run = imported(tmp_path, csv(pairs), csv(pairs))
    assert "lf1>lf3" in unjudged(diagnose(run, SWITCHED).verdict)


def test_a_file_of_each_host_is_one_plan_with_the_others(tmp_path: Path) -> None:
    texts = [csv(every(lambda a, b, host=host: a == host)) for host in range(20)]
    whole = imported(tmp_path, *texts)
    assert (whole.state, diagnose(whole, SWITCHED).verdict.verdict) == ("complete", "pass")
    texts[7] = csv(every(lambda a, b: a == 7 and b < 8))
    assert "n07" in unjudged(diagnose(imported(tmp_path, *texts), SWITCHED).verdict)


def test_one_direction_of_each_pair_is_a_plan(tmp_path: Path) -> None:
    forward = every(lambda a, b: a < b)
    assert imported(tmp_path, csv(forward)).state == "complete"
    run = imported(tmp_path, csv(pair for pair in forward if pair != (3, 17)))
    assert run.state == "interrupted"
    assert "n03>n17" in unjudged(diagnose(run, SWITCHED).verdict)


def test_ranks_of_a_host_need_no_lines_among_themselves(tmp_path: Path) -> None:
    names = [f"{HOSTS[rank // 2]}:{rank % 2}" for rank in range(20)]
    between = every(lambda a, b: a // 2 != b // 2)
    whole = imported(tmp_path, csv(between, names=names))
    assert (whole.state, diagnose(whole).verdict.verdict) == ("complete", "pass")
    less = imported(tmp_path, csv((pair for pair in between if pair != (3, 17)), names=names))
    assert less.state == "interrupted"


def test_a_sample_of_the_pairs_is_complete_by_itself(tmp_path: Path) -> None:
    near = every(lambda a, b: (b - a) % 20 in (1, 2, 5, 15, 18, 19))
    run = imported(tmp_path, csv(near))
    assert (run.state, diagnose(run).verdict.verdict) == ("complete", "pass")


def in_rounds(rounds: Iterable[Iterable[Pair]]) -> str:
    figure = random.Random(4)
    lines = [
        f"{HOSTS[a]},{HOSTS[b]},1048576,{12000 * figure.uniform(0.99, 1.01):.1f},{number}"
        for number, pairs in enumerate(rounds)
        for a, b in pairs
    ]
    return "\n".join(["src,dst,size,bandwidth,round", *lines, ""])


def drawn(count: int, seed: int) -> list[list[Pair]]:
    draw = random.Random(seed)
    orders = [draw.sample(range(20), 20) for _ in range(count)]
    return [list(zip(order[::2], order[1::2], strict=True)) for order in orders]


def turned(rounds: Iterable[Iterable[Pair]]) -> list[list[Pair]]:
    return [[(b, a) for a, b in pairs] for pairs in rounds]


@pytest.mark.parametrize(
    "rounds",
    [
        drawn(8, 1),
        [*drawn(6, 2), *turned(drawn(6, 2))],
        [part for pairs in drawn(7, 3) for part in ([*pairs[:5]], *turned([pairs]))],
    ],
    ids=["one direction", "both, in rounds of their own", "some also back"],
)
def test_a_round_of_one_direction_lacks_no_measurement(tmp_path: Path, rounds: list[list[Pair]]) -> None:
    run = imported(tmp_path, in_rounds(rounds))
    coverage = diagnose(run, SWITCHED).verdict.coverage
    cells = sum(len(pairs) for pairs in rounds)
    assert run.state == "complete"
    assert (run.rows[0].layout, run.rows[0].directions) == ("list", "one")
    assert (coverage.pairs_planned, coverage.pairs_measured) == (cells, cells)


def test_a_direction_that_one_round_lacks_is_missing_where_others_have_both(tmp_path: Path) -> None:
    rounds = [[*pairs, *back] for pairs, back in zip(drawn(6, 5), turned(drawn(6, 5)), strict=True)]
    rounds[2].pop()
    coverage = diagnose(imported(tmp_path, in_rounds(rounds)), SWITCHED).verdict.coverage
    assert (coverage.pairs_planned, coverage.pairs_measured) == (120, 119)
