"""Hosts with NICs on several switches: slow pairs are counted by the switches of the ranks that were measured."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from fabric_cases import ROUND_TRIP, STREAM, checked, faulty

from fablint.analyse import diagnose
from fablint.analyse.detect.unexplained_pairs import _Strata
from fablint.model import State
from fablint.simulate import Fabric, fat_tree, multi_rail
from fablint.simulate.fault_syntax import parse_fault

PLANES = multi_rail(fat_tree(4, 2), 2)
UNKNOWN_PATHS = Fabric(
    replace(PLANES.topology, routing=replace(PLANES.topology.routing, kind="shortest")), nics=PLANES.nics
)
LARGER = multi_rail(fat_tree(6, 2), 2)


@pytest.mark.parametrize(
    ("fabric", "fault"),
    [
        (UNKNOWN_PATHS, "switch:p0.spine0:+2us"),
        (LARGER, "switch:p1.spine2:+2us"),
        (LARGER, "link:p1.leaf0>p1.spine0:-50%"),
        (multi_rail(fat_tree(4, 2), 3), "link:p2.leaf1>p2.spine0:-50%"),
    ],
)
def test_a_slow_spine_of_one_plane_is_judged_without_a_warning(fabric: Fabric, fault: str) -> None:
    run = checked(faulty(fabric, parse_fault(fault), seed=3), ROUND_TRIP, STREAM)
    for topology in (fabric.topology, replace(fabric.topology, cables=())):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            verdict = diagnose(run, topology).verdict
        planes = {name.split(".")[0] for name in fabric.topology.switches} - {fault.split(":")[1].split(".")[0]}
        named = [finding for finding in verdict.findings if finding.state is State.FAULT]
        assert not any(node.startswith(tuple(planes)) for finding in named for node in finding.nodes)


def test_a_pair_of_hosts_counts_once_in_each_pair_of_switches_that_its_nics_use() -> None:
    pair = np.array([1, 1, 1, 2, 2, 3])  # three pairs of hosts
    path = np.array([7, 7, 9, 7, 9, -1])  # two pairs of switches, and measurements on one switch
    slow = np.array([True, False, False, False, True, False])
    strata = _Strata.of(path, pair, slow, ends=1)
    assert strata.code.tolist() == [7, 9]
    assert strata.pairs.tolist() == [2, 2]
    assert strata.slow.tolist() == [1, 1]
    assert strata.elsewhere.tolist() == pytest.approx([(2 - 1 + 1) / (5 - 2 + 2)] * 2)
