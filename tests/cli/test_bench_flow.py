"""What `flow` makes of a benchmark that was measured: the placement is read from the run, damage is reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fablint import measure, report, store
from fablint.cli import main
from fablint.errors import IncompleteError
from fablint.measure import EngineOutcome, NoProgress
from fablint.model import Plan, PlanRow, Row, RowSpec, Run, Slots
from fablint.workflows import measurement
from fablint.workflows.context import Context
from fact_cases import row_facts, run_facts
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

DAMAGED = {"src": 0, "dst": 2, "size": 64, "message": 4, "offset": 17}


def a_run(hosts: list[str], rank_host: list[int], **row) -> Run:
    attributes = {"state": "complete", "ranks": len(rank_host), "hosts": hosts, "rank_host": rank_host, "rank_pid": []}
    return Run(
        None,
        run_facts(attributes),
        (Row("osu_bw", row_facts({"kernel": "bandwidth", "state": "complete", **row}), {}),),
    )


@pytest.fixture
def measured(monkeypatch, tmp_path, staged):
    """Measure a plan with an engine that leaves the given run; returns what came of it, and its options."""

    def call(
        plan: Plan, run: Run, status: int = 0, error: str = "", *, is_written: bool = True
    ) -> tuple[measurement.MeasurementResult, list[str]]:
        reported: list[str] = []

        def run_on_first(system, progress, launchers, engine, plan, output, *, options):
            reported.extend(options.words)
            output.mkdir(exist_ok=True)  # with the record of the launch
            (output / "zarr.json").touch()
            return EngineOutcome(status, error, is_written=is_written, launcher=Path("mpiexec"))

        monkeypatch.setattr(
            measure, "build_engine", lambda *_, **__: measure.Engine("", Path(), Path(), "", (), "", "")
        )
        monkeypatch.setattr(measure, "find_launchers", lambda *_, **__: measure.Choice(()))
        monkeypatch.setattr(measure, "run_on_first", run_on_first)
        monkeypatch.setattr(store, "read_run", lambda _: run)
        context = Context(staged, NoProgress())
        return measurement.measure(context, plan, tmp_path / "x.run", ["--counters"]), reported

    return call


def test_ranks_are_where_they_were_wanted(measured):
    plan = Plan(3, (), (Slots("server2", 2), Slots("client1.site.org", 1)))
    found, _ = measured(plan, a_run(["server2.site.org", "client1"], [0, 0, 1]))
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("rank_host", "rank", "found", "wanted"),
    [([0, 1, 1], 1, "client1", "server2"), ([0, 0, 0], 2, "server2", "client1"), ([1, 0, 0], 0, "client1", "server2")],
)
def test_a_launcher_that_places_ranks_elsewhere_is_found_out(measured, rank_host, rank, found, wanted):
    plan = Plan(3, (), (Slots("server2", 2), Slots("client1", 1)))
    with pytest.raises(IncompleteError) as caught:
        measured(plan, a_run(["server2", "client1"], rank_host))
    assert str(caught.value).startswith(f"rank {rank} ran on {found} and not on {wanted}: ")


def test_without_hosts_the_launcher_places_the_ranks(measured):
    found, _ = measured(Plan(2, ()), a_run(["a", "b"], [0, 1]))
    assert found.exit_code == 0


@pytest.mark.parametrize("is_written", [True, False])
def test_a_run_that_was_not_written_to_its_end_is_not_one_without_the_refused_rows(measured, is_written):
    """As on a disk that is full after the last round: all rows are complete, and the run is resumed."""
    found, _ = measured(Plan(2, ()), a_run(["a", "b"], [0, 1]), 3, "No space left on device", is_written=is_written)
    assert (found.exit_code, found.is_refused) == (3, is_written)
    assert ("fablint resume" in found.next_step) is not is_written


@pytest.mark.parametrize(
    ("kernel", "expected"), [("latency_mt", ["--counters", "--threads"]), ("latency", ["--counters"])]
)
def test_the_engine_gets_the_option_for_threads(measured, kernel, expected):
    _, options = measured(Plan(2, (PlanRow(RowSpec(kernel), 1, 1.0),)), a_run(["a"], [0, 0]))
    assert options == expected


class RecordedTable:
    text = "# a table\n"

    def as_dict(self) -> dict[str, str]:
        return {"table": "recorded"}


@pytest.fixture
def benched(monkeypatch, capsys):
    """Call `fablint bench` with a measurement that leaves the given run; returns status, stdout and stderr."""

    def call(run: Run, exit_code: int = 0, error: str = "", *words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(measurement, "measure", lambda *_: measurement.MeasurementResult(run, exit_code, error))
        monkeypatch.setattr(report, "benchmark_table", lambda *_, **__: RecordedTable())
        with pytest.raises(SystemExit) as caught:
            main(["-q", "bench", "osu_bw", "-c", *words])
        return caught.value.code, *capsys.readouterr()

    return call


def test_a_table_is_printed(benched):
    assert benched(a_run(["a"], [0, 0])) == (0, "# a table\n", "")


def test_damaged_payloads_are_reported_and_end_with_1(benched):
    run = a_run(["a", "b"], [0, 0, 1], corrupt=[DAMAGED, DAMAGED | {"message": 5}])
    status, shown, reported = benched(run, 1)
    assert (status, shown) == (1, "# a table\n")
    assert reported == PINNED["2 payloads were damaged"]


def test_an_interrupted_benchmark_has_no_table(benched):
    assert benched(a_run(["a"], [0, 0]), 3, "rank 1 failed") == (3, "", "fablint: rank 1 failed\n")


def test_an_interrupted_benchmark_with_a_run_is_to_be_resumed(benched, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = replace(a_run(["a"], [0, 0]), path=Path("x.run"))
    line = "fablint: rank 1 failed: measured rounds are kept: fablint resume x.run\n"
    assert benched(run, 3, "rank 1 failed", "-o", "x.run") == (3, "", line)
