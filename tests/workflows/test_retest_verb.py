"""The verb retest: what it refuses, and what it says of the findings."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_check import SimulatedCheck, retested

from fablint.cli.retest import print_outcome
from fablint.cli.session import Session
from fablint.measure import NoProgress
from fablint.model import Run
from fablint.simulate import Fault, Noise, SimulatedFabric, fat_tree
from fablint.store import write_run
from fablint.system import System
from fablint.workflows import measurement, retest_run, run_formats
from fablint.workflows.context import Context
from fact_cases import attributes_of, run_facts, with_facts
from finding_cases import ref
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

FABRIC = fat_tree(4, 3)
HOST = Fault(ref("host", "h05"), bandwidth_factor=0.7)


def a_run(path: Path, *faults: Fault, measured: bool = True, transport: str = "mpi") -> Path:
    """A run of 64 hosts; `measured` hides that it was simulated, and names the transport."""
    run = SimulatedFabric(FABRIC, faults, Noise()).measure(None)
    write_run(path, as_measured(run, transport) if measured else run)
    return path


def as_measured(run: Run, transport: str = "mpi") -> Run:
    attributes = {name: value for name, value in attributes_of(run).items() if name != "simulated"}
    rows = []
    for row in run.rows:
        options = row.facts.options.replace("--transport null", f"--transport {transport}")
        rows.append(with_facts(row, transport=transport, options=options))
    return replace(run, facts=run_facts(attributes), rows=tuple(rows))


def test_a_simulated_run_is_refused(fablint, tmp_path):
    a_run(tmp_path / "x.run", HOST, measured=False)
    done = fablint("retest", "x.run")
    assert done.returncode == 2
    assert done.stderr == PINNED["x.run was simulated: there"]


def test_files_of_other_tools_are_refused(fablint, tmp_path):
    (tmp_path / "x.csv").write_text("src,dst,size,time\na,b,8,1e-6\nb,a,8,1e-6\n")
    done = fablint("retest", "x.csv")
    assert done.returncode == 2
    assert PINNED["x.csv was imported: there"] in done.stderr


def test_without_findings_nothing_is_measured(fablint, tmp_path):
    a_run(tmp_path / "x.run")
    done = fablint("retest", "x.run", "-o", "y.run")
    assert (done.returncode, done.stdout) == (0, PINNED["x.run: no faults, suspects"])
    assert json.loads(fablint("retest", "x.run", "--json").stdout)["retested"] == []
    assert not (tmp_path / "y.run").exists()


@pytest.fixture
def again(tmp_path, monkeypatch):
    """Retest a run in which h05 is slow; `left` is what still is, in the place of the engine a simulator."""
    path = a_run(tmp_path / "x.run", HOST)

    def measure_again(*left: Fault) -> retest_run.RetestOutcome:
        from fablint.plan.check import retest as planning

        planned = []
        plan_retest = planning.plan_retest
        monkeypatch.setattr(planning, "plan_retest", lambda *a: planned.append(plan_retest(*a)) or planned[-1])

        def simulated(context, stage, output, run=None, options=()) -> measurement.MeasurementResult:
            made: Run = retested(SimulatedCheck(FABRIC, left, seed=4), planned[-1])
            write_run(output, as_measured(made))
            return measurement.MeasurementResult(run_formats.read(output), 0)

        monkeypatch.setattr(measurement, "measure_stage", simulated)
        found = retest_run.retest(Context(System(), NoProgress()), path, tmp_path / "y.run", None, None)
        assert found is not None
        return found

    return measure_again


@pytest.mark.parametrize(("left", "state", "code"), [((HOST,), "still there", 1), ((), "gone", 0)])
def test_every_finding_is_gone_or_still_there(again, capsys, left, state, code):
    found = again(*left)
    assert print_outcome(Session(quiet=True), found) == code
    line, _, verdict = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{state:<12}host h05: ")
    assert re.search(r": [+-]\d+(\.\d)? % bandwidth, was -(29|30|31)(\.\d)? %$", line)
    assert "y.run: " in verdict
    print_outcome(Session(quiet=True, json=True), found)
    facts = json.loads(capsys.readouterr().out)
    assert [
        (one["was"]["text"]["component"], one["was"]["text"]["name"], one["state"]) for one in facts["retested"]
    ] == [("host", "h05", state)]
    assert facts["exit_code"] == code
    assert (found.outcome.page).is_file()
