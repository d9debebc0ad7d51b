"""Numbers of ranks: findings name a rank by the number that the file has, also where each host begins with 0."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from fablint.analyse import diagnose
from fablint.store import import_run, read_run, write_run

HOSTS = [f"n{host}" for host in range(6)]


def written(folder: Path, number: list[list[int]], slow: str) -> Path:
    """A CSV of all pairs of hosts; `number` has the numbers of the ranks of each host."""
    chance = random.Random(1)
    ranks = [f"{host}:{rank}" for host, numbers in zip(HOSTS, number, strict=True) for rank in numbers]
    lines = ["src,dst,size,time_us"]
    for src, dst in itertools.permutations(ranks, 2):
        if src.partition(":")[0] != dst.partition(":")[0]:
            time = chance.gauss(2, 0.02) * (1.6 if slow in (src, dst) else 1)
            lines.append(f"{src},{dst},8,{time:.5f}")
    path = folder / "a.csv"
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.mark.parametrize(
    ("number", "slow", "numbers"),
    [
        ([[0, 1, 2, 3]] * 6, "n4:1", [0, 1, 2, 3] * 6),
        ([[1, 2, 3]] * 6, "n4:3", [1, 2, 3] * 6),
        ([[0, 1, 2]] * 5 + [[0, 1]], "n5:1", [*([0, 1, 2] * 5), 0, 1]),
        ([[3 * host + rank for rank in range(3)] for host in range(6)], "n4:13", []),
        ([[host + 6 * rank for rank in range(3)] for host in range(6)], "n4:10", []),  # cyclic
    ],
)
def test_the_slow_rank_is_named_as_in_the_file(
    tmp_path: Path, number: list[list[int]], slow: str, numbers: list[int]
) -> None:
    run = import_run([written(tmp_path, number, slow)])
    write_run(tmp_path / "a.run", run)
    again = read_run(tmp_path / "a.run")
    assert list(again.facts.rank_number) == numbers
    labels = [finding.components[0].label for finding in diagnose(again).verdict.findings if finding.components]
    assert slow in labels
