"""Node sets of a verdict: a cable that many hosts share makes none of them affected."""

from __future__ import annotations

import pytest

from fablint.analyse import diagnose
from fablint.report import finding_order
from fablint.report.html.node_sets import node_sets
from fablint.report.survey.report_source import ReportSource
from fablint.simulate import Fault, fat_tree, simulate
from finding_cases import ref

FABRIC = fat_tree(4, 3)


@pytest.mark.parametrize(
    ("ends", "damage", "counts"),
    [
        (("agg05", "core05"), "4 hosts, 96 pairs", (0, 4, 60)),  # destinations 5, 21, 37 and 53
        (("leaf02", "agg03"), "4 hosts, 120 pairs", (0, 4, 60)),
    ],
)
def test_hosts_that_share_a_slow_cable_with_many_are_healthy(ends, damage, counts):
    run = simulate(FABRIC, faults=[Fault(ref("cable", *ends), bandwidth_factor=0.5)], seed=2)
    source = ReportSource(run, diagnose(run, FABRIC.topology))
    (found,) = [finding for finding in finding_order.faulty(source.found) if finding.component == "cable"]
    assert finding_order.damage(found) == damage
    assert tuple(nodes.count for nodes in node_sets(source)) == counts


def test_pairs_alone_are_the_damage_of_a_cable_behind_which_no_host_is():
    run = simulate(FABRIC, faults=[Fault(ref("cable", "agg05", "core05"), bandwidth_factor=0.5)], seed=2)
    (found,) = finding_order.faulty(ReportSource(run, diagnose(run, FABRIC.topology)).found)
    shared = found.model_copy(update={"damage": found.damage.model_copy(update={"hosts": 0})})
    assert finding_order.damage(shared) == "96 pairs"
