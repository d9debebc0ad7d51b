"""NICs of different speeds, NICs at another NUMA node, ranks that share a NIC: compared with their kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from analyse_cases import named, reported

from fablint.analyse import diagnose
from fablint.model import Diagnosis, Row, Run, State, Switch, Topology
from fablint.model.host_name import NicRef
from fact_cases import row_facts, run_facts
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

SIZE = 1 << 20
FULL = 12.5e9  # bytes/s of 100 Gbit/s
MBPS = 100_000


@dataclass(frozen=True)
class Bed:
    """Hosts with NICs and a stream from every rank to every rank on another host, one pair at a time."""

    hosts: int = 18
    nics: int = 1
    per_switch: int = 6  # hosts
    speeds: Mapping[int, int] = field(default_factory=dict)  # declared share of the speed by host, in percent
    far: frozenset[int] = frozenset()  # NICs at the other NUMA node, 20 % slower
    rates: Mapping[tuple[int, int], float] = field(default_factory=dict)  # share of the rate of (host, NIC)
    rails_only: bool = False  # a NIC is measured with the same NIC of other hosts, each rail on switches of its own

    @property
    def names(self) -> list[str]:
        return [f"n{number:02}" for number in range(self.hosts)]

    def declared(self, host: int) -> int:
        return MBPS * self.speeds.get(host, 100) // 100

    def rate(self, rank: int) -> float:
        host, nic = divmod(rank, self.nics)
        far = 0.8 if nic in self.far else 1.0
        return FULL * self.declared(host) / MBPS * far * self.rates.get((host, nic), 1.0)

    @property
    def topology(self) -> Topology:
        at = {
            NicRef.of(name, f"hsn{nic}"): f"p{nic if self.rails_only else 0}s{number // self.per_switch}"
            for number, name in enumerate(self.names)
            for nic in range(self.nics)
        }
        return Topology(
            switches={name: Switch(name, name[:2]) for name in sorted(set(at.values()))},
            host_switch={name: at[NicRef.of(name, "hsn0")] for name in self.names},
            nic_switch=at if self.nics > 1 else {},
        )

    def run(self, seed: int = 1) -> Run:
        random, ranks = np.random.default_rng(seed), self.hosts * self.nics
        times = np.full((1, ranks, ranks, 1), np.nan, np.float32)
        for src, dst in permutations(range(ranks), 2):
            is_other_rail = self.rails_only and src % self.nics != dst % self.nics
            if src // self.nics != dst // self.nics and not is_other_rail:
                seconds = SIZE / min(self.rate(src), self.rate(dst))
                times[0, src, dst] = seconds * np.exp(0.006 * random.standard_normal())
        return Run(None, run_facts(self.facts()), (_row(times),))

    def facts(self) -> dict[str, Any]:
        nics = {
            name: [
                {"name": f"hsn{nic}", "speed_mbps": self.declared(number), "numa": int(nic in self.far)}
                for nic in range(self.nics)
            ]
            for number, name in enumerate(self.names)
        }
        ranks = range(self.hosts * self.nics)
        return {
            "format": 1,
            "state": "complete",
            "rows": ["bandwidth"],
            "ranks": len(ranks),
            "hosts": self.names,
            "rank_host": [rank // self.nics for rank in ranks],
            "rank_nic": [f"hsn{rank % self.nics}" for rank in ranks],
            "rank_numa": [0] * len(ranks),
            "nics": nics,
        }

    def judged(self) -> Diagnosis:
        return diagnose(self.run(), self.topology)


def _row(times: np.ndarray) -> Row:
    attributes = {
        "kernel": "bandwidth",
        "pattern": "all-pairs",
        "order": "serial",
        "layout": "matrix",
        "transport": "mpi",
        "memory": "host",
        "options": "bandwidth",
        "state": "complete",
        "rounds": times.shape[1] - 1,
        "cells_per_round": times.shape[1],
        "repeats": 1,
        "seed": 1,
        "windows": [64],
        "payload": "src",
        "quantity": "bandwidth",
        "directions": "both",
    }
    count = np.where(np.isnan(times), 0, 100).astype(np.uint32)
    return Row("bandwidth", row_facts(attributes), {"size": np.array([SIZE]), "count": count, "time_median": times})


HALF = dict.fromkeys((0, 4, 7, 9, 13, 17), 50)  # some hosts of each switch
LEAF = dict.fromkeys(range(6, 12), 40)  # all hosts of a switch


def notes(judged: Diagnosis) -> list[str]:
    return [note for note in note_texts(judged.verdict) if "of their kind" in note]


@pytest.mark.parametrize("speeds", [HALF, LEAF], ids=["some hosts of each switch", "all hosts of a switch"])
def test_hosts_that_lose_what_they_declare_are_healthy(speeds: dict[int, int]) -> None:
    judged = Bed(speeds=speeds).judged()
    assert reported(judged) == set()
    (note,) = notes(judged)
    assert "6 NICs of 6 hosts declare" in note
    assert f"bandwidth -{100 - next(iter(speeds.values()))}" in note


def test_a_kind_that_loses_more_than_it_declares_is_not_explained() -> None:
    judged = Bed(speeds=HALF, rates={(host, 0): 0.6 for host in HALF}).judged()
    assert judged.verdict.verdict != "pass"
    assert reported(judged)


def test_two_slow_hosts_are_no_kind() -> None:
    judged = Bed(speeds={3: 50, 11: 50}).judged()
    assert {name for _, name, _ in named(judged)} == {"n03", "n11"}


@pytest.mark.parametrize(("host", "rate"), [(1, 0.5), (4, 0.7), (2, 0.75)])
def test_a_faulty_host_is_named_among_two_kinds(host: int, rate: float) -> None:
    """Also one of the faster kind that is as slow as the slower kind: its pairs with that are not slower for it."""
    judged = Bed(speeds=HALF, rates={(host, 0): rate}).judged()
    assert {name for _, name, _ in named(judged)} == {f"n{host:02}"}


@pytest.mark.parametrize("rails_only", [True, False])
def test_nics_at_another_numa_node_are_compared_with_each_other(rails_only: bool) -> None:
    bed = Bed(nics=2, far=frozenset({1}), rails_only=rails_only)
    judged = bed.judged()
    assert reported(judged) == set()
    assert PINNED["18 NICs of 18 hosts"] in notes(judged)[0]
    judged = Bed(nics=2, far=frozenset({1}), rails_only=rails_only, rates={(5, 1): 0.75}).judged()
    assert named(judged) == {("nic", "n05/hsn1", "both")} or named(judged) == {("nic", "n05/hsn1", None)}


def test_a_kind_that_is_one_switch_is_not_distinguished_from_the_switch() -> None:
    """No declared speed explains the loss, and no other switch has NICs of this kind."""
    judged = Bed(nics=2, per_switch=18, far=frozenset({1}), rails_only=True).judged()
    assert judged.verdict.verdict != "pass"
    assert named(judged, State.FAULT) == set()
    assert notes(judged) == []
