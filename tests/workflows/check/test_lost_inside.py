"""Hosts that are lost between ranks of one host: they are not of the run, and no healthy host is named."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest
from fake_launches import FakeCluster
from level_cases import CHECK
from test_level_runs import faults, met

from fablint.errors import IncompleteError
from fablint.model import Finding, Plan, State
from fablint.store import read_run
from fablint.workflows import measurement
from fablint.workflows.context import Context


def test_a_host_that_is_lost_inside_is_not_of_the_run(cluster: FakeCluster, check: CHECK) -> None:
    """It prevents the very first launch."""
    cluster.unreached, cluster.silent = {"h07"}, {"h07"}
    checked, _ = check()
    assert "h07" not in checked.run.hosts
    assert ("host", "h07") in faults(checked)
    assert checked.run.state == "complete"


def test_a_host_that_was_lost_inside_beside_a_faulty_one_is_not_named_once_it_is_measured(
    cluster: FakeCluster, check: CHECK, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.dies["h12"] = "intra-node"
    look = cluster.look

    def fake_look(hosts: Collection[str]) -> Mapping[str, Finding]:
        cluster.dies.clear()  # h12 failed since the link of h07 went down
        cluster.silent = {"h07"}
        return look(hosts)

    monkeypatch.setattr(cluster, "look", fake_look)
    checked, level_runs = check()
    inner = read_run(cluster.launches[0].output)
    assert [entry.host for entry in inner.facts.lost] == ["h12"]
    assert "h12" in met(cluster, "global")
    assert faults(checked) == {("host", "h07")}
    assert "h07" not in checked.run.hosts  # a launch with it would not start
    assert level_runs.inside == []
    assert [one.name for one in checked.diagnosis.verdict.findings if one.state is State.SUSPECT] == []


def test_a_host_that_was_lost_inside_beside_a_faulty_one_is_not_named_where_the_next_launch_fails(
    cluster: FakeCluster, check: CHECK, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.dies["h12"], cluster.silent = "intra-node", {"h07"}
    measure = cluster.measure

    def fake_measure(
        context: Context, plan: Plan, output: Path, options: Sequence[str] = ()
    ) -> measurement.MeasurementResult:
        if len(cluster.launches) in (1, 2):  # the launch, and its repetition
            cluster.launches.append(cluster.launches[0])
            raise IncompleteError("the launcher is gone")
        return measure(context, plan, output, options)

    monkeypatch.setattr(measurement, "measure", fake_measure)
    checked, level_runs = check()
    inner = read_run(cluster.launches[0].output)
    assert ([entry.host for entry in inner.facts.lost], inner.state) == (["h12"], "interrupted")
    assert level_runs.inside == []
    assert faults(checked) == {("host", "h07")}
    assert [one.name for one in checked.diagnosis.verdict.findings if one.state is State.SUSPECT] == []
