"""Kinds of NICs, by what a run records of the NICs and the ranks."""

from __future__ import annotations

from typing import Any

from fablint.model.facts.nic_kinds import NicKind, nic_kinds
from fablint.model.facts.run_attributes import RunFacts
from fact_cases import run_facts


def facts_of(nics: dict[str, list[dict[str, Any]]], rank_host: list[int], **more: Any) -> RunFacts:
    facts = {"hosts": [*nics], "rank_host": rank_host, "ranks": len(rank_host), "nics": nics, **more}
    return run_facts(facts)


def nic(name: str, speed_mbps: int | None, numa: int | None = None) -> dict[str, Any]:
    return {"name": name, "speed_mbps": speed_mbps, "numa": numa}


def test_the_kind_with_most_ranks_comes_first() -> None:
    nics = {host: [nic("hsn0", speed)] for host, speed in (("a", 100_000), ("b", 200_000), ("c", 200_000))}
    kinds, of_rank = nic_kinds(facts_of(nics, [0, 1, 2]), ["hsn0"] * 3)
    assert kinds == (NicKind(200_000), NicKind(100_000))
    assert of_rank.tolist() == [1, 0, 0]


def test_a_nic_on_another_numa_node_than_its_rank_is_far() -> None:
    nics = {"a": [nic("mlx5_0", 400_000, 0), nic("mlx5_1", 400_000, 3)]}
    facts = facts_of(nics, [0, 0, 0], rank_numa=[0, 0, 3])
    kinds, of_rank = nic_kinds(facts, ["mlx5_0", "mlx5_1", "mlx5_1"])
    assert [kinds[number].is_far for number in of_rank] == [False, True, False]


def test_without_nodes_no_nic_is_far() -> None:
    nics = {"a": [nic("mlx5_0", 400_000, -1)], "b": [nic("mlx5_0", 400_000)]}
    assert nic_kinds(facts_of(nics, [0, 1], rank_numa=[0, 1]), ["mlx5_0"] * 2)[0] == (NicKind(400_000),)
    assert nic_kinds(facts_of({"a": [nic("x", None, 1)]}, [0]), ["x"])[0] == (NicKind(),)


def test_a_rank_whose_nic_is_not_recorded_has_the_speed_of_the_fastest_of_its_host() -> None:
    nics = {"a": [nic("eth0", 1000), nic("hsn0", 200_000)], "b": []}
    kinds, of_rank = nic_kinds(facts_of(nics, [0, 1, 1]), [""] * 3)
    assert [kinds[number].speed_mbps for number in of_rank] == [200_000, None, None]
