"""A check level after level: a host that fails a level is in no later one, and what the run says of it at the end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_launches import (
    Done,
    FakeCluster,
    Launch,
    every_pair,
    fabric,
    launches_of,
    request_of,
)
from level_cases import CHECK, FABRIC, HOSTS

import finding_cases
from fablint.analyse import with_additional
from fablint.model import ComponentKind, Diagnosis, Run, State, Topology
from fablint.plan.check.levels import several_each
from fablint.plan.check.suites import find_suite
from fablint.plan.rows.row_text import parse_row
from fablint.store import read_run
from fablint.text import notes as noted
from fablint.text.evidence_sentences import sentences
from fablint.text.notes import note_text
from fablint.workflows import analysis, run_files
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.launches import same_hosts
from fablint.workflows.check.level_runs import LevelRuns
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)


def said(level_runs: LevelRuns) -> list[str]:
    return level_runs.context.progress.said  # type: ignore[attr-defined, no-any-return]


def of_level(cluster: FakeCluster, level: str) -> list[Launch]:
    """Launches that measure something of a level."""
    return [one for one in cluster.launches if any(row.startswith(level) and got for row, got in one.rows.items())]


def met(cluster: FakeCluster, level: str) -> set[str]:
    """Hosts that a level was to measure."""
    return {
        host
        for launch in of_level(cluster, level)
        for row, rounds in launch.rows.items()
        if row.startswith(level)
        for pairs in rounds.values()
        for pair in pairs
        for host in pair
    }


def faults(checked: CheckOutcome) -> set[tuple[str, str]]:
    return {(one.component, one.name) for one in checked.diagnosis.verdict.findings if one.state is State.FAULT}


# ------------------------------------------------------------------------------------------------ healthy


def test_a_healthy_cluster_passes_in_five_launches(healthy: Done) -> None:
    cluster, verdict = healthy.cluster, healthy.checked.diagnosis.verdict
    assert (verdict.verdict, verdict.exit_code) == ("pass", 0)
    assert [met(cluster, level) for level in ("intra-node", "reach", "edge", "local", "global")] == [
        *[set(HOSTS)] * 3,
        set(HOSTS[:16]),  # group gb has one switch
        set(HOSTS),
    ]
    assert healthy.level_runs.launches.count == len(cluster.launches) == 5
    assert (healthy.level_runs.exclusions.levels, healthy.checked.error, said(healthy.level_runs)) == ({}, "", [])
    assert not any(note.startswith("excluded") for note in note_texts(verdict))


def test_ranks_of_a_host_are_a_run_of_their_own(healthy: Done) -> None:
    inner, run = read_run(healthy.cluster.launches[0].output), healthy.checked.run
    assert inner.path == healthy.checked.page.parents[1] / "launches" / "intra-node.run"
    assert [row.name for row in inner.rows] == ["intra-node-latency", "intra-node-bandwidth"]
    assert inner.ranks == 2 * len(HOSTS)
    assert {row.name.partition("-")[0] for row in run.rows} == {"reach", "edge", "local", "global"}
    assert run.ranks == len(HOSTS)


SITE = """format = 1
[[threshold]]
scope = "edge"
kernel = "latency"
size = 8
value = "9 us"
"""


def test_the_run_keeps_what_every_diagnosis_needs(check: CHECK, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(SITE)
    checked, _ = check("edge", site=site)
    path = checked.run.path
    assert path is not None
    known = run_files.load_topology(None, checked.run)
    assert known is not None
    assert known.host_switch == FABRIC.host_switch
    assert (path / run_files.SITE).read_text() == SITE
    assert len(checked.diagnosis.verdict.thresholds) == 1
    assert not (path / run_files.FINDINGS).exists()
    assert json.loads(checked.page.with_name("verdict.json").read_text())["verdict"] == "pass"


def test_thresholds_hold_inside_hosts_as_well(cluster: FakeCluster, check: CHECK, tmp_path: Path) -> None:
    cluster.slow_inside = dict.fromkeys(HOSTS, 9.0)
    site = tmp_path / "site.toml"
    site.write_text(SITE.replace("edge", "intra-node"))
    checked, _ = check(site=site)
    assert checked.diagnosis.verdict.verdict == "fault"


@pytest.mark.parametrize(("upper", "failed"), [("1 %", {"h05": "intra-node"}), ("10 %", {})])
def test_a_host_below_its_own_threshold_is_in_no_later_level(
    cluster: FakeCluster, check: CHECK, tmp_path: Path, upper: str, failed: dict[str, str]
) -> None:
    """It is 4 % slower inside: too little for the diagnosis to name it."""
    cluster.slow_inside = {"h05": 1.04}
    site = tmp_path / "site.toml"
    site.write_text(SITE.replace("edge", "intra-node").replace("9 us", "2 us") + f'upper = "{upper}"\n')
    _, level_runs = check(site=site)
    assert level_runs.exclusions.levels == failed


# ------------------------------------------------------------------------------------------------ a host fails


def test_a_host_that_fails_a_level_is_in_no_later_one(faulty: Done) -> None:
    assert faults(faulty.checked) == {("host", "h03"), ("host", "h09")}
    assert faulty.level_runs.exclusions.levels == {"h03": "edge", "h09": "edge"}
    assert {"h03", "h09"} < met(faulty.cluster, "edge")
    assert met(faulty.cluster, "local") == set(HOSTS[:16]) - {"h03", "h09"}
    assert met(faulty.cluster, "global") == set(HOSTS) - {"h03", "h09"}
    run = faulty.checked.run
    assert run.ranks == len(HOSTS)  # the run is of all
    for row in run.rows:
        hosts = {host for _, pair in every_pair(run, row.name) for host in pair}
        assert ("h03" in hosts) == (not row.name.startswith(("local", "global")))


def test_it_is_noted_at_once_and_in_the_verdict(faulty: Done) -> None:
    assert sorted(said(faulty.level_runs)) == [
        PINNED["host fails edge and is excluded"].filled(host=host) for host in ("h03", "h09")
    ]
    notes = [note for note in note_texts(faulty.checked.diagnosis.verdict) if note.startswith("excluded")]
    assert notes in (["excluded after edge: h03, h09"], ["excluded after edge: h09, h03"])
    assert faulty.checked.diagnosis.verdict.exit_code == 1


def test_hosts_that_fail_are_measured_alone_at_the_end(faulty: Done) -> None:
    assert {"h03", "h09"} < met(faulty.cluster, "latency-follow-up")
    last = faulty.cluster.launches[-1]
    assert all("--order serial" in line for line in last.lines if "follow-up" in line)


def test_a_host_that_is_slow_between_hosts_is_not_slow_inside(faulty: Done) -> None:
    assert faulty.level_runs.inside == []


def test_a_host_that_is_slow_inside_is_found(cluster: FakeCluster, check: CHECK) -> None:
    cluster.slow_inside["h05"] = 10.0
    _, level_runs = check()
    assert level_runs.exclusions.levels == {"h05": "intra-node"}


def test_a_host_that_fails_inside_is_in_no_round_between_hosts(
    cluster: FakeCluster, check: CHECK, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = analysis.diagnose
    slow = finding_cases.finding(State.FAULT, "host", "h05", evidence="sends at half the rate")

    def fake_diagnose(run: Run, topology: Topology | None = None, **more: Any) -> Diagnosis:
        """Report h05 as faulty in the run between ranks of one host."""
        found = judge(run, topology, **more)
        inner = run.path is not None and run.path.name == "intra-node.run"
        return with_additional(found, [slow]) if inner else found

    monkeypatch.setattr(analysis, "diagnose", fake_diagnose)
    checked, level_runs = check()
    assert level_runs.exclusions.levels == {"h05": "intra-node"}
    assert "h05" in checked.run.rank_host
    for level in ("reach", "edge", "local", "global"):
        assert "h05" not in met(cluster, level)
    (finding,) = (one for one in checked.diagnosis.verdict.findings if one.state is State.FAULT)
    assert (finding.name, sentences(finding.evidence)) == (
        "h05",
        f"between ranks of the host itself: {sentences(slow.evidence)}",
    )
    assert "excluded after intra-node: h05" in note_texts(checked.diagnosis.verdict)


def test_an_additional_finding_excludes_no_host(cluster: FakeCluster, check: CHECK) -> None:
    """A host with another MTU than the others is at fault, and measured."""
    known = finding_cases.finding(State.FAULT, "nic", "h02/hsn0", evidence="MTU 1500, others 9000")
    checked, level_runs = check("edge", [known])
    assert level_runs.exclusions.levels == {}
    assert "h02" in met(cluster, "edge")
    assert checked.diagnosis.verdict.exit_code == 1


# ------------------------------------------------------------------------------------------------ hosts that are lost


def test_a_host_that_dies_in_a_level_is_in_no_later_one(cluster: FakeCluster, check: CHECK) -> None:
    cluster.dies["h12"] = "edge"
    checked, level_runs = check()
    assert "h12" not in met(cluster, "local") | met(cluster, "global")
    assert (checked.run.state, level_runs.exclusions.levels) == ("complete", {})  # it is lost, which is another matter
    verdict = checked.diagnosis.verdict
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 3)
    assert [one.name for one in verdict.findings if one.state is State.SUSPECT] == ["h12"]
    path = checked.run.path
    assert path is not None
    assert [one.name for one in run_files.load_findings(path / run_files.FINDINGS)] == ["h12"]
    assert verdict.notes[-1].values["launches"] == len(cluster.measuring)
    assert len(cluster.measuring) == 7  # one of them repeated


def test_what_is_known_is_written_and_counted_by_every_diagnosis(check: CHECK) -> None:
    known = finding_cases.finding(State.SUSPECT, "nic", "h02/hsn0", evidence="MTU 1500, others 9000")
    checked, _ = check("edge", [known], lost=["h20"])
    path = checked.run.path
    assert path is not None
    kept = run_files.load_findings(path / run_files.FINDINGS)
    assert [(one.component, one.name) for one in kept] == [("nic", "h02/hsn0"), ("host", "h20")]
    run = read_run(path)
    again = analysis.diagnose(run, run_files.load_topology(None, run)).verdict
    assert again.findings == checked.diagnosis.verdict.findings
    assert (
        (again.verdict, again.exit_code)
        == ("fault", 1)
        == (
            checked.diagnosis.verdict.verdict,
            checked.diagnosis.verdict.exit_code,
        )
    )
    assert all(finding in again.findings for finding in kept)


def test_a_host_that_was_lost_before_is_in_no_level(cluster: FakeCluster, check: CHECK) -> None:
    checked, _ = check(lost=["h20", "h00"])
    assert all(not {"h20", "h00"} & set(launch.hosts) for launch in cluster.launches)
    assert checked.run.state == "complete"
    assert faults(checked) == {("host", "h20"), ("host", "h00")}
    assert checked.diagnosis.verdict.coverage.hosts == len(HOSTS) - 2


def test_where_no_host_is_found_the_check_says_why(cluster: FakeCluster, check: CHECK) -> None:
    cluster.mute, cluster.wordless = {"h04"}, True
    checked, _ = check("edge")
    assert checked.error.startswith("it stalls")
    assert checked.diagnosis.verdict.exit_code == 3
    assert checked.page.exists()


# ------------------------------------------------------------------------------------------------ how it is measured


def sizes(launch: Launch, row: str) -> tuple[int, ...]:
    return next(one.sizes for one in map(parse_row, map(str.split, launch.lines)) if one.name == row)


def test_the_rate_of_the_network_is_passed_on(healthy: Done, faulty: Done) -> None:
    for done, size in ((healthy, 1 << 20), (faulty, 1 << 16)):
        for level in ("edge", "local", "global"):
            (launch,) = of_level(done.cluster, level)
            assert sizes(launch, f"{level}-bandwidth") == (size,)


def test_follow_ups_use_the_stream_of_the_network(faulty: Done) -> None:
    assert sizes(faulty.cluster.launches[-1], "bandwidth-follow-up-1") == (1 << 16,)


@pytest.mark.parametrize(("oversubscribed", "orders"), [(False, ["parallel"] * 2), (True, ["serial", "parallel"])])
def test_where_hosts_share_cpus_small_messages_go_pair_by_pair(
    cluster: FakeCluster, check: CHECK, oversubscribed: bool, orders: list[str]
) -> None:
    """As the run tells: the first level between hosts goes side by side."""
    cluster.attributes = {"machines": 1, "instrument": {"oversubscribed": oversubscribed}}
    check()
    rows = {row.name: row.order for launch in cluster.launches for row in map(parse_row, map(str.split, launch.lines))}
    assert rows["reach-latency"] == "parallel"
    for level in ("edge", "local", "global"):
        assert [rows[f"{level}-latency"], rows[f"{level}-bandwidth"]] == orders


def test_a_level_without_pairs_is_left_out(cluster: FakeCluster, tmp_path: Path) -> None:
    scattered = fabric(switches=12, hosts=1)
    launches, _ = launches_of(cluster, request_of(list(scattered.host_switch), scattered), tmp_path / "b.run")
    checked = LevelRuns(launches, find_suite("edge")).check()
    assert {row.name for row in checked.run.rows} == {"reach-latency", "reach-bandwidth"}
    assert checked.diagnosis.verdict.verdict == "incomplete"


# ------------------------------------------------------------------------------------------------ what it took


def test_the_time_is_reported_with_what_it_went_into(healthy: Done) -> None:
    note = healthy.checked.diagnosis.verdict.notes[-1]
    assert note.kind == "duration"
    seconds = {name: value for name, value in note.values.items() if name.endswith("_s")}
    whole_s = seconds.pop("total_s")
    assert whole_s == pytest.approx(healthy.cluster.system.now_s, abs=1)
    assert sum(seconds.values()) <= whole_s + 0.1
    rows = [*read_run(healthy.cluster.launches[0].output).rows, *healthy.checked.run.rows]
    assert seconds["measuring_s"] == pytest.approx(sum(row.facts.result.wall_s for row in rows), abs=1)
    assert note.values["launches"] == len(healthy.cluster.launches)


def test_stages_of_less_than_half_a_second_are_not_listed() -> None:
    note = noted.duration(
        **{"total_s": 38.2, "measuring_s": 23.1, "asking_s": 6.0, "planning_s": 0.4, "starting_s": 4.4},
        **{"early_s": 0.4, "judging_s": 2.6, "launches": 2},
    )
    shown = "38 s in all: 23 s measuring, 6 s asking hosts, 4 s for 2 launches, 3 s judging, 2 s between"
    assert note_text(note) == shown


def test_a_launch_that_began_beside_other_stages_says_so() -> None:
    note = noted.duration(
        **{"total_s": 34.0, "measuring_s": 23.0, "asking_s": 6.0, "planning_s": 0.0, "starting_s": 0.1},
        **{"early_s": 6.2, "judging_s": 4.9, "launches": 1},
    )
    assert PINNED["6 s more beside asking"] == note_text(note)


@pytest.mark.parametrize("budget_s", [10.0, 60.0])
def test_a_budget_is_kept(cluster: FakeCluster, tmp_path: Path, budget_s: float) -> None:
    """Launches and `reach` are additional: how long these take is not known before."""
    asked = replace(request_of(HOSTS, FABRIC), budget_s=budget_s)
    launches, _ = launches_of(cluster, asked, tmp_path / "b.run")
    cluster.slow["h03"] = 1.5
    checked = LevelRuns(launches, find_suite("quick")).check()
    walls = {row.name: row.facts.result.wall_s for row in checked.run.rows}
    levels = sum(seconds for name, seconds in walls.items() if name.startswith(("edge", "local", "global")))
    assert levels <= budget_s / 2
    assert sum(walls.values()) <= budget_s


# ------------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("component", "name", "host"),
    [
        ("host", "h03", "h03"),
        ("host", "h03:1", "h03"),
        ("host", "nid-1.site.org", "nid-1.site.org"),
        ("nic", "h03/hsn0", "h03"),
        ("cable", "h03=s1", "h03"),
        ("config", "h03/MTU", "h03"),
        ("config", "more ranks than CPUs", ""),
        ("switch", "h03", ""),
        ("route", "h03=h04", ""),
        ("link", "s0>s1", ""),
    ],
)
def test_the_host_of_a_finding(component: ComponentKind, name: str, host: str) -> None:
    assert next(iter(finding_cases.finding(State.FAULT, component, name).hosts), "") == host


def test_the_same_hosts_have_the_ranks_that_they_had() -> None:
    asked = request_of(["a", "b", "c"], each=3)
    inner = replace(several_each(asked), slots=several_each(asked).slots[1:])
    again = same_hosts(asked, inner)
    assert ([slot.host for slot in again.slots], again.ranks) == (["b", "c"], 6)
