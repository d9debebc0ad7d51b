"""A check that was killed goes on with `fablint resume`: rounds, levels, verdict and report."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_launches import FakeCluster, FakeSystem, Notes, every_pair, fabric, launches_of, request_of

from fablint.discover import write_topology
from fablint.errors import BrokenRunError, IncompleteError, StoppedError, UsageError
from fablint.model import Allocation, Finding, Medium, Plan, Run, State
from fablint.model.facts.failed_rank import FailedRank
from fablint.model.preflight_results import Fitness, Outcome, Result, Rule, Severity
from fablint.plan.check.suites import find_suite
from fablint.snapshot import CollectedSnapshots
from fablint.store import missing_rounds, read_run
from fablint.system import System
from fablint.text import notes as noted
from fablint.workflows import fabric_discovery, host_preflight, measurement, programs, run_files, run_formats
from fablint.workflows.check.check_record import CHECK, CheckRecord, load_check, save_check
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.cluster_check import resume_check
from fablint.workflows.check.level_runs import LevelRuns
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.context import Context
from finding_cases import finding, note_texts
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

FABRIC = fabric()
HOSTS = list(FABRIC.host_switch)
BEFORE = [
    *(Result("cpu.governor", host, "", Outcome.WARN, "governor powersave") for host in HOSTS[:4]),
    Result("mem.free", "h07", "", Outcome.WARN, "2 GiB free"),
    Result("thp", "h01", "numa0", Outcome.ERROR, "'maybe' is not a setting"),
]
LEVELS = ("reach", "edge", "local", "global")
RULES = {
    name: Rule(name, "", "", "", Severity.WARN, "config", False, "") for name in ("cpu.governor", "mem.free", "thp")
}
DRAINED = finding(State.NOT_JUDGED, "host", "h99", evidence="excluded: drained (cable)")


class Killed(BaseException):
    """The front end is gone: nothing that it would do afterwards is done."""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """Hosts that all answer."""
    fake = FakeCluster(FakeSystem(tmp_path / "home"))
    monkeypatch.setattr(measurement, "measure", fake.measure)
    monkeypatch.setattr(programs, "with_programs", lambda context, _: context)  # the fake hosts have none

    def fake_hosts(_: System, request: fabric_discovery.FabricRequest, **__: bool) -> tuple[Allocation, list[Finding]]:
        assert request.hosts is not None
        return Allocation(tuple(request.hosts.split(",")), "test"), []

    def fake_look(_: System, allocation: Allocation, **__: bool) -> host_preflight.PreflightResult:
        silent = {host: "no answer within 20 s" for host in allocation.hosts if host in fake.silent}
        return host_preflight.PreflightResult(
            CollectedSnapshots({}, {}, silent), Fitness(allocation.hosts, fake.warnings, RULES, silent)
        )

    monkeypatch.setattr(fabric_discovery, "usable_hosts", fake_hosts)
    monkeypatch.setattr(host_preflight, "preflight_hosts", fake_look)
    monkeypatch.setattr(fabric_discovery, "collect_snapshots", lambda *_: CollectedSnapshots())
    return fake


KILL = Callable[..., Path]


@pytest.fixture
def kill(cluster: FakeCluster, tmp_path: Path) -> KILL:
    """The run of a check that was killed when a row of a level was measured, or in the middle of it."""

    def run(row: str, after_rounds: int | None = None, suite: str = "quick", **more: Any) -> Path:
        launches, _ = launches_of(cluster, request_of(HOSTS, FABRIC), tmp_path / "a.run")
        request, notes = CheckRequest(suite=suite), (noted.message("preflight: x (suppressed)"),)
        kept = CheckRecord(request, topology=write_topology(FABRIC), notes=notes, warnings=tuple(BEFORE))
        level_runs = LevelRuns(launches, find_suite(suite), [DRAINED], record=kept, **more)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measurement, "measure", killing(cluster, row, after_rounds))
            with pytest.raises(Killed):
                level_runs.check()
        return tmp_path / "a.run"

    return run


def killing(cluster: FakeCluster, row: str, after_rounds: int | None) -> Callable[..., measurement.MeasurementResult]:
    """`measurement.measure` that kills after a launch that has the row, of which only some rounds are measured."""

    def measure(context: Context, plan: Plan, output: Path, options: Any = ()) -> measurement.MeasurementResult:
        if f"--name {row}" not in plan.rows[-1].spec.text:
            return cluster.measure(context, plan, output, options)
        cluster.stop_after = after_rounds
        cluster.measure(context, plan, output, options)
        cluster.stop_after = None
        raise Killed

    return measure


def resumed(cluster: FakeCluster, path: Path) -> CheckOutcome | None:
    kept = load_check(path)
    assert kept is not None
    return resume_check(Context(cluster.system, Notes()), path, kept)


def pairs_of(run: Run, row: str) -> set[frozenset[str]]:
    return {pair for _, pair in every_pair(run, row)}


@pytest.mark.parametrize("row", ["reach-bandwidth", "edge-bandwidth", "local-bandwidth"])
def test_the_levels_that_a_killed_check_lacks_are_measured(cluster: FakeCluster, kill: KILL, row: str) -> None:
    path = kill(row)
    before = len(cluster.launches)
    assert run_files.missing_levels(read_run(path))
    done = resumed(cluster, path)
    assert done is not None
    level = LEVELS.index(row.partition("-")[0])
    assert len(cluster.launches) - before == len(LEVELS) - level - 1  # nothing is measured twice
    run = read_run(path)
    assert {one.name.partition("-")[0] for one in run.rows} == {*LEVELS}
    assert (run.state, run_files.missing_levels(run), done.error) == ("complete", [], "")
    assert all(not missing_rounds(one) for one in run.rows)
    verdict = done.diagnosis.verdict
    assert [one for one in verdict.findings if one.state is not State.OK] == [DRAINED]
    assert verdict.coverage.hosts_judged == len(HOSTS)
    assert "preflight: x (suppressed)" in note_texts(verdict)
    assert json.loads((path / "report" / "verdict.json").read_text())["exit_code"] == 3
    assert (path / "topology.yaml").exists()


def test_warnings_of_both_times_at_which_hosts_were_asked_reach_the_verdict(cluster: FakeCluster, kill: KILL) -> None:
    """The later one where a check says two things of the same part."""
    path = kill("edge-bandwidth")
    cluster.warnings = [
        *(Result("cpu.governor", host, "", Outcome.WARN, "governor powersave") for host in HOSTS[2:6]),
        Result("mem.free", "h07", "", Outcome.WARN, "1 GiB free"),
    ]
    for _ in range(2):  # what is kept of both times is kept again
        done = resumed(cluster, path)
        assert done is not None
        notes = [note for note in note_texts(done.diagnosis.verdict) if note.startswith("preflight ")]
        assert notes == [
            PINNED["preflight warns: cpu.governor"],
            PINNED["preflight warns: mem.free"],
            PINNED["preflight does not understand"],
        ]
        document = json.loads((path / "report" / "verdict.json").read_text())
        assert [note["text"] for note in document["notes"]] == note_texts(done.diagnosis.verdict)
        cluster.warnings = []
        (path / CHECK).write_text(json.dumps(json.loads((path / CHECK).read_text()) | {"ended": False}))


def test_a_check_that_was_killed_within_its_hosts_begins_with_that_level(cluster: FakeCluster, kill: KILL) -> None:
    path = kill("intra-node-bandwidth")
    assert not (path / "zarr.json").exists()
    done = resumed(cluster, path)
    assert done is not None
    assert done.diagnosis.verdict.coverage.hosts_judged == len(HOSTS)
    assert len(read_run(path / "launches" / "intra-node.run").rows) == 2


def test_a_check_that_measured_nothing_goes_on_without_a_host_that_is_gone(cluster: FakeCluster, kill: KILL) -> None:
    path = kill("intra-node-bandwidth")
    cluster.silent = cluster.unreached = {"h20"}
    done = resumed(cluster, path)
    assert done is not None
    assert "h20" not in read_run(path).hosts
    assert [one.name for one in done.diagnosis.verdict.findings if one.state is State.FAULT] == ["h20"]


def test_rounds_that_a_level_lacks_are_measured_first(cluster: FakeCluster, kill: KILL) -> None:
    path = kill("edge-bandwidth", after_rounds=3)
    lacking = {row.name: missing_rounds(row) for row in read_run(path).rows}
    assert any(lacking.values())
    before = len(cluster.launches)
    assert resumed(cluster, path) is not None
    first = cluster.launches[before]
    assert {row: sorted(rounds) for row, rounds in first.rows.items() if rounds}.keys() >= {"edge-bandwidth"}
    assert all(not missing_rounds(one) for one in read_run(path).rows)
    assert read_run(path).state == "complete"


def test_a_host_that_is_slow_in_what_was_measured_is_in_no_later_level(cluster: FakeCluster, kill: KILL) -> None:
    cluster.slow = {"h03": 2.0}
    path = kill("edge-bandwidth")
    done = resumed(cluster, path)
    assert done is not None
    run = read_run(path)
    assert not any("h03" in pair for pair in pairs_of(run, "global-latency"))
    assert "excluded after edge: h03" in note_texts(done.diagnosis.verdict)
    assert ("host", "h03") in {
        (one.component, one.name) for one in done.diagnosis.verdict.findings if one.state is State.FAULT
    }


def test_a_host_that_failed_before_the_kill_stays_excluded(cluster: FakeCluster, kill: KILL) -> None:
    cluster.slow = {"h03": 2.0}
    path = kill("local-bandwidth")
    excluded = json.loads((path / CHECK).read_text())["exclusions"]
    assert {host: entry["level"] for host, entry in excluded.items()} == {"h03": "edge"}
    done = resumed(cluster, path)
    assert done is not None
    assert "excluded after edge: h03" in note_texts(done.diagnosis.verdict)
    assert not any("h03" in pair for pair in pairs_of(read_run(path), "global-latency"))


def test_a_host_that_is_gone_is_named_and_costs_its_own_pairs(cluster: FakeCluster, kill: KILL) -> None:
    path = kill("edge-bandwidth", after_rounds=3)
    cluster.silent = {"h20"}
    cluster.unreached = {"h20"}
    done = resumed(cluster, path)
    assert done is not None
    assert done.error == ""
    faults = [one for one in done.diagnosis.verdict.findings if one.state is State.FAULT]
    assert [(one.component, one.name) for one in faults] == [("host", "h20")]
    others = {frozenset((a, b)) for a in HOSTS for b in HOSTS if a < b and "h20" not in (a, b)}
    assert pairs_of(read_run(path), "global-latency") <= others
    assert pairs_of(read_run(path), "edge-bandwidth")


def test_follow_ups_are_counted_on(cluster: FakeCluster, kill: KILL) -> None:
    cluster.slow = {"h03": 2.0}
    path = kill("bandwidth-follow-up-1")
    done = resumed(cluster, path)
    assert done is not None
    names = read_run(path).facts.rows
    assert len(names) == len(set(names))
    assert (path / "report" / "index.html").exists()


def test_the_time_of_a_resumed_check_is_that_of_the_call(cluster: FakeCluster, kill: KILL) -> None:
    path = kill("local-bandwidth")
    before = {row.name: row.facts.result.wall_s for row in read_run(path).rows}
    cluster.system.now_s = 0.0
    done = resumed(cluster, path)
    assert done is not None
    (note,) = [note for note in note_texts(done.diagnosis.verdict) if " s in all: " in note]
    whole, measuring, rest = (float(part.split()[0]) for part in re.split(": |, ", note)[:3])
    later = sum(row.facts.result.wall_s for row in done.run.rows if row.name not in before)
    assert sum(before.values()) > 1, "nothing was measured before"
    assert measuring == pytest.approx(later, abs=1)
    assert whole >= measuring and rest >= 0


def test_of_a_check_that_ended_nothing_is_missing(cluster: FakeCluster, kill: KILL) -> None:
    path = kill("edge-bandwidth")
    assert resumed(cluster, path) is not None
    before = len(cluster.launches)
    assert resumed(cluster, path) is None
    assert len(cluster.launches) == before


def test_thresholds_are_compared_with_at_the_end(cluster: FakeCluster, kill: KILL, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text('format = 1\n[[threshold]]\nscope = "global"\nkernel = "latency"\nsize = 8\nvalue = "1 us"\n')
    path = kill("edge-bandwidth", site=site)
    document = json.loads((path / CHECK).read_text()) | {"site": site.read_text()}
    (path / CHECK).write_text(json.dumps(document))
    site.unlink()
    done = resumed(cluster, path)
    assert done is not None
    assert [one["verdict"] for one in done.diagnosis.verdict.thresholds] == ["missed"]


DAMAGED: Mapping[str, str] = {"no JSON": "{", "a list": "[]", "nothing": "{}", "odd": '{"unfit": "drain"}'}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_check_is_one_line(cluster: FakeCluster, kill: KILL, case: str) -> None:
    path = kill("edge-bandwidth")
    (path / CHECK).write_text(DAMAGED[case])
    with pytest.raises(BrokenRunError, match=r"check\.json: is not a check that can be resumed: run the check again"):
        load_check(path)


def test_a_suite_of_another_version_is_refused(cluster: FakeCluster, kill: KILL) -> None:
    path = kill("edge-bandwidth")
    document = json.loads((path / CHECK).read_text())
    document["request"]["suite"] = "slow"
    (path / CHECK).write_text(json.dumps(document))
    with pytest.raises(UsageError, match="there is no suite 'slow'"):
        resumed(cluster, path)


def test_a_signal_ends_a_check_at_once_and_names_the_run_that_goes_on(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a scheduler ends a job: hosts are neither asked nor tried, no host is reported, and `resume` has the rest."""
    notes = Notes()

    def stopped(context: Context, plan: Plan, output: Path, options: Any = ()) -> measurement.MeasurementResult:
        cluster.stop_after = 1
        cluster.measure(context, plan, output, options)
        cluster.stop_after = None
        raise StoppedError("interrupted by SIGTERM", f"fablint resume {run_files.whole_run(output)}")

    launches, _ = launches_of(cluster, request_of(HOSTS, FABRIC), tmp_path / "a.run")
    launches.context = Context(cluster.system, notes)
    monkeypatch.setattr(launches.recovery.triage, "find_failed", lambda *_: pytest.fail("hosts are looked for"))
    kept = CheckRecord(CheckRequest(), topology=write_topology(FABRIC))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "measure", stopped)
        with pytest.raises(StoppedError, match=r"SIGTERM: fablint resume \S+/a\.run$"):
            LevelRuns(launches, find_suite("quick"), [DRAINED], record=kept).check()
    with pytest.raises(IncompleteError, match=r"ended before anything was measured between hosts: fablint resume \S+"):
        run_formats.read(tmp_path / "a.run")
    done = resumed(cluster, tmp_path / "a.run")
    assert done is not None
    assert run_formats.read(tmp_path / "a.run").state == "complete"


@pytest.mark.parametrize(
    ("error", "why", "said", "code"),
    [
        (KeyboardInterrupt(), "interrupted", "", 130),
        (StoppedError("interrupted by SIGTERM"), "interrupted by SIGTERM", "go on with fablint resume {path}", 3),
        (StoppedError("Slurm job 8 has ended", "rounds are kept"), "Slurm job 8 has ended", "rounds are kept", 3),
    ],
)
def test_an_interrupted_check_ends_with_verdict_and_report(
    cluster: FakeCluster, tmp_path: Path, error: BaseException, why: str, said: str, code: int
) -> None:
    """The signal, or the end of the job, comes while the first level between hosts is measured."""
    path = tmp_path / "a.run"

    def stopped(context: Context, plan: Plan, output: Path, options: Any = ()) -> measurement.MeasurementResult:
        result = cluster.measure(context, plan, output, options)
        if output == path:
            raise error
        return result

    launches, _ = launches_of(cluster, request_of(HOSTS, FABRIC), path)
    kept = CheckRecord(CheckRequest(), topology=write_topology(FABRIC))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "measure", stopped)
        outcome = LevelRuns(launches, find_suite("quick"), [DRAINED], record=kept).check()
    assert (outcome.exit_code, outcome.diagnosis.verdict.verdict, outcome.page.exists()) == (code, "incomplete", True)
    assert f"not all was measured: {why}" in note_texts(outcome.diagnosis.verdict)
    assert outcome.error == (f"{why}: {said.format(path=path)}" if said else "")
    done = resumed(cluster, path)
    assert done is not None
    assert done.exit_code is None


def test_a_signal_while_two_hosts_are_tried_reports_neither(cluster: FakeCluster, tmp_path: Path) -> None:
    launches, _ = launches_of(cluster, request_of(HOSTS, FABRIC), tmp_path / "a.run")

    def stopped(*_: Any) -> measurement.MeasurementResult:
        raise StoppedError("interrupted by SIGTERM")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "measure", stopped)
        with pytest.raises(StoppedError):
            launches.recovery.triage.find_failed(HOSTS, [FailedRank(None, "h03", 1, None, "")], ["h04"], "it stalls")
    assert launches.recovery.triage.findings == []


def test_a_resumed_check_measures_the_same_transports(tmp_path: Path) -> None:
    media = (Medium("tcp", device="hsn0"), Medium("ucx"))
    save_check(CheckRecord(CheckRequest(media=media)), tmp_path)
    record = load_check(tmp_path)
    assert record is not None
    assert record.request.media == media
