"""The history of runs: what is kept of a run, writers at the same time, killed writers, baselines."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fablint.analyse import diagnose
from fablint.cli import cli
from fablint.cli.session import Session
from fablint.errors import IncompleteError, UsageError
from fablint.history import database as of_database
from fablint.history.baselines import baseline_text, baseline_thresholds, with_baseline
from fablint.history.database import Database, add
from fablint.history.queries import kept_runs, repeated_findings, trends
from fablint.history.records import FACTS, RunRecord, record_of
from fablint.history.table import write_table
from fablint.model import ComponentRef, Run
from fablint.plan.check.site_thresholds import parse_thresholds
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, fat_tree
from fablint.store import write_run
from fablint.workflows.analysis import diagnose as diagnose_with_files
from fablint.workflows.run_history import add_runs

TREE = fat_tree(4, 2)
ROWS = (SimulatedRow("bandwidth", (1 << 20,)),)


def measured(seed: int, *faults: Fault, slower: float = 1.0) -> Run:
    """A run of all pairs; `slower` multiplies all times."""
    run = SimulatedFabric(TREE, faults, Noise(spike_share=0.0), seed=seed).measure(None, ROWS)
    if slower == 1.0:
        return run
    arrays = [
        {
            name: np.asarray(values[:]) * (slower if name.startswith("time_") else 1)
            for name, values in row.arrays.items()
        }
        for row in run.rows
    ]
    rows = (replace(row, arrays=own) for row, own in zip(run.rows, arrays, strict=True))
    return replace(run, rows=tuple(rows))


def record(seed: int, *faults: Fault) -> RunRecord:
    run = measured(seed, *faults)
    return replace(record_of(run, diagnose(run, TREE.topology), f"{seed}.run"), moment=1e9 + 86400 * seed)


@pytest.fixture(scope="module")
def records() -> list[RunRecord]:
    slow = Fault(ComponentRef.of("host", "h03"), bandwidth_factor=0.7)
    return [*(record(seed) for seed in range(1, 5)), *(record(seed, slow) for seed in range(5, 7))]


def test_a_record_has_the_program_the_mpi_and_the_command_of_its_run(database: Database) -> None:
    attributes = (Path(__file__).parents[2] / "docs/reference/run-format.md").read_text()
    assert all(f"| `{name}` |" in attributes for name in FACTS)
    assert all(str(run.facts["creator"]).startswith("fablint") for run in kept_runs(database))


@pytest.fixture
def database(tmp_path: Path, records: list[RunRecord]) -> Database:
    kept = Database(tmp_path / "a.sqlite", create=True)
    for one in records:
        assert add(kept, one)
    return kept


def test_figures_are_those_of_the_pairs(database: Database) -> None:
    run = measured(1)
    times = run.rows[0].observations(1 << 20).sent
    of_host = np.concatenate([times[3], times[:, 3]])
    (trend,) = trends(database, "h03", "bandwidth", 1 << 20)
    assert trend.points[0].median == pytest.approx(float(np.nanmedian((1 << 20) / of_host)), rel=0.01)
    assert trend.points[0].pairs == 2 * (len(run.hosts) - 1)
    assert trend.points[-1].median == pytest.approx(0.7 * trend.points[0].median, rel=0.05)


def test_a_run_is_kept_once(database: Database, records: list[RunRecord]) -> None:
    assert not add(database, replace(records[0], path="moved.run"))
    assert next(run.path for run in kept_runs(database)) == "moved.run"
    assert len(kept_runs(database)) == len(records)


def test_components_with_findings_in_several_runs_are_listed(database: Database) -> None:
    (one,) = repeated_findings(database)
    assert (one.component, one.runs, one.worst) == ("h03", 2, "FAULT")
    assert one.effect == pytest.approx(-0.3, abs=0.03)


def test_a_killed_writer_leaves_no_half_of_a_run(database: Database, records: list[RunRecord]) -> None:
    """The process is killed between the figures and the findings."""

    def write() -> None:
        other = Database(database.path)
        own = replace(records[0], key="killed", findings=_Killing())  # type: ignore[arg-type]
        add(other, own)

    process = multiprocessing.get_context("fork").Process(target=write)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert len(kept_runs(database)) == len(records)
    assert add(database, replace(records[0], key="next"))


class _Killing(tuple):  # type: ignore[type-arg]
    def __iter__(self):  # type: ignore[no-untyped-def]
        os.kill(os.getpid(), signal.SIGKILL)


def test_processes_write_at_the_same_time(tmp_path: Path, records: list[RunRecord]) -> None:
    path = tmp_path / "new.sqlite"

    def write(number: int) -> None:
        for index in range(5):
            assert add(Database(path, create=True), replace(records[0], key=f"{number}-{index}"))

    processes = [multiprocessing.get_context("fork").Process(target=write, args=(number,)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(kept_runs(Database(path))) == 20


def test_a_file_that_another_process_holds_is_incomplete(
    database: Database, records: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_database, "_WAIT_S", 0.1)
    holder = sqlite3.connect(database.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(IncompleteError, match=r"another process writes it|cannot be written"):
        add(Database(database.path), replace(records[0], key="late"))


@pytest.mark.parametrize("content", [b"no database, but long enough for one" * 99, b"x"])
def test_other_files_are_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not a history of fablint"):
        Database(path)
    assert path.read_bytes() == content


def test_a_fabric_that_is_slower_as_a_whole_is_named_by_its_baseline(database: Database, tmp_path: Path) -> None:
    healthy = [run.id for run in kept_runs(database)][:4]
    thresholds = baseline_thresholds(database, "spring", healthy)
    assert parse_thresholds(baseline_text("spring", thresholds), "spring")[0].single_pairs is False
    site = tmp_path / "spring.toml"
    site.write_text(baseline_text("spring", thresholds))
    assert diagnose_with_files(measured(9), TREE.topology, site=site).verdict.verdict == "pass"
    slow = diagnose_with_files(measured(9, slower=1.25), TREE.topology, site=site).verdict
    assert slow.verdict == "fault"
    assert {finding.name for finding in slow.findings if finding.state == "FAULT"} == {
        "edge bandwidth 1 MiB",
        "global bandwidth 1 MiB",
    }
    assert diagnose_with_files(measured(9, slower=1.25), TREE.topology).verdict.verdict == "pass"


def test_thresholds_of_the_site_precede_those_of_the_baseline(database: Database) -> None:
    thresholds = baseline_thresholds(database, "spring", [1, 2, 3])
    own = baseline_text("own", [replace(thresholds[0], value=1e9, lowest=1e8)])
    both = parse_thresholds(with_baseline(own, parse_thresholds(own, "own"), thresholds), "both")
    assert [one.value for one in both] == pytest.approx([1e9, *(one.value for one in thresholds[1:])])


def test_the_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FABLINT_HOME", str(tmp_path / "home"))

    def fablint(*words: object) -> tuple[int, str]:
        result = CliRunner().invoke(cli, [str(word) for word in words], obj=Session(), standalone_mode=False)
        if result.exception:
            raise result.exception
        return result.return_value or 0, result.stdout

    for seed in (1, 2, 3):
        write_run(tmp_path / f"{seed}.run", measured(seed))
    code, _ = fablint("history", "add", *(tmp_path / f"{seed}.run" for seed in (1, 2, 3)), tmp_path / "none.run")
    assert code == 3
    assert fablint("history", "add", tmp_path / "1.run") == (0, f"{tmp_path / '1.run'}: known\n")
    assert len(fablint("history", "list", "--last", 2)[1].splitlines()) == 2
    facts = json.loads(fablint("--json", "history", "trend", "h03", "--size", "1M")[1])
    assert [len(series["points"]) for series in facts["trends"]] == [3]
    with pytest.raises(UsageError, match="did you mean h03"):
        fablint("history", "trend", "h003")
    fablint("history", "baseline", "spring")
    write_run(tmp_path / "slow.run", measured(9, slower=1.25))
    assert fablint("analyse", tmp_path / "slow.run", "--baseline", "spring")[0] == 1
    with pytest.raises(UsageError, match="there are spring"):
        fablint("analyse", tmp_path / "slow.run", "--baseline", "autumn")
    code, _ = fablint("history", "export", "-o", tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert len(lines) > 3 * 16
    assert lines[0].startswith("run,started,verdict,kind,component")


def test_a_baseline_leaves_out_the_runs_of_one_machine(database: Database, tmp_path: Path) -> None:
    local = [replace(record(seed), key=f"local {seed}", verdict="local", moment=2e9 + seed) for seed in range(3)]
    for one in local:
        add(database, one)
    assert "of 4 runs" in of_verb("history", "baseline", "spring", "--db", database.path, home=tmp_path)
    assert "of 3 runs" in of_verb("history", "baseline", "spring", "--last", 3, "--db", database.path, home=tmp_path)
    only = Database(tmp_path / "local.sqlite", create=True)
    for one in local:
        add(only, one)
    assert "of 3 runs" in of_verb("history", "baseline", "spring", "--db", only.path, home=tmp_path)


def test_a_trend_without_figures_is_an_error(database: Database) -> None:
    with pytest.raises(UsageError, match="no figures of a kernel bandwith: did you mean bandwidth"):
        trends(database, None, "bandwith", None)
    with pytest.raises(UsageError, match="no figures at 64 KiB"):
        trends(database, "h03", "bandwidth", 1 << 16)


def test_a_run_whose_name_is_not_utf8_is_kept(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff.run")
    write_run(path, measured(1))
    history = Database(tmp_path / "a.sqlite", create=True)
    assert [one.is_new for one in add_runs(history, [path], None)] == [True]
    assert kept_runs(history)[0].path == f"{tmp_path}/bad\\xff.run"


def test_an_export_that_cannot_be_written_is_an_error(database: Database, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        of_verb("history", "export", "-o", tmp_path / "none" / "a.csv", "--db", database.path, home=tmp_path)
    (tmp_path / "full.csv").symlink_to("/dev/none/full.csv")
    with pytest.raises(UsageError, match="the directory /dev/none does not exist"):
        write_table(database, tmp_path / "full.csv")


def of_verb(*words: object, home: Path) -> str:
    """The stdout of a verb whose FABLINT_HOME is a folder."""
    environ = {"FABLINT_HOME": str(home / "home")}
    result = CliRunner().invoke(cli, [str(word) for word in words], obj=Session(), standalone_mode=False, env=environ)
    if result.exception:
        raise result.exception
    return result.stdout
