"""A check that was killed in a level: which levels its verdict lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_launches import (
    Done,
    FakeCluster,
)
from level_cases import CHECK, FABRIC, HOSTS

from fablint.cli import main
from fablint.errors import BrokenRunError
from fablint.model import Plan, Verdict
from fablint.store import read_run
from fablint.workflows import analysis, measurement, run_files
from fablint.workflows.context import Context
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)


class Killed(BaseException):
    """The front end is gone: nothing that it would do afterwards is done."""


KILLED = Callable[[str], Path]
LEVELS = ("intra-node", "reach", "edge", "local", "global")


@pytest.fixture
def killed(
    cluster: FakeCluster, check: CHECK, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """The run of a check that was killed when the rows of that level were measured, which is complete so far."""

    def run(level: str) -> Path:
        measure = cluster.measure

        def until_killed(context: Context, plan: Plan, *more: Any) -> measurement.MeasurementResult:
            done = measure(context, plan, *more)
            if f"--name {level}-" in plan.rows[-1].spec.text:
                raise Killed
            return done

        monkeypatch.setattr(measurement, "measure", until_killed)
        with pytest.raises(Killed):
            check()
        assert read_run(tmp_path / "a.run").state == "complete"
        return tmp_path / "a.run"

    return run


def judged(path: Path) -> Verdict:
    run = read_run(path)
    return analysis.diagnose(run, run_files.load_topology(None, run)).verdict


@pytest.mark.parametrize(("level", "missing"), [("reach", "edge, local, global"), ("local", "global")])
def test_levels_that_were_never_begun_are_no_pass(killed: KILLED, level: str, missing: str) -> None:
    path = killed(level)
    verdict = judged(path)
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 3)
    assert any(f"never begun: {missing}:" in note for note in note_texts(verdict))
    assert run_files.missing_levels(read_run(path)) == missing.split(", ")


def test_resume_and_show_name_the_levels(killed: KILLED, capsys: pytest.CaptureFixture[str]) -> None:
    path = killed("edge")
    for verb, code in (("resume", 3), ("analyse", 3), ("report", 3), ("show", 0)):
        with pytest.raises(SystemExit) as ended:
            main([verb, str(path), "--json"])
        assert ended.value.code in (code, None if code == 0 else code)
        said = json.loads(capsys.readouterr().out)
        missing = said["missing_levels"] if verb in ("resume", "show") else said["notes"][0]["text"]
        assert missing == ["local", "global"] or "local, global" in missing
    with pytest.raises(SystemExit):
        main(["show", str(path)])
    assert PINNED["levels planned and never"] in capsys.readouterr().out


def test_a_check_that_ended_lacks_no_level(healthy: Done) -> None:
    run = healthy.checked.run
    assert run_files.missing_levels(run) == []
    assert run.path is not None
    assert [one.name for one in run_files.load_levels(run)] == [*LEVELS]
    assert judged(run.path).exit_code == 0


def test_a_level_that_cannot_be_measured_is_not_missing(check: CHECK) -> None:
    """Every host of a group but one is lost, so that no two hosts of a switch of it are left."""
    checked, _ = check(lost=[host for host in HOSTS if FABRIC.host_switch[host] != FABRIC.host_switch[HOSTS[0]]])
    levels = {one.name: one for one in run_files.load_levels(checked.run)}
    assert levels["global"].skipped
    assert run_files.missing_levels(checked.run) == []


@pytest.mark.parametrize("text", ["", "[]", '{"levels": [{"name": "edge"}]}', '{"levels": [{"name": "e", "rows": 1}]}'])
def test_a_damaged_list_of_levels_is_one_line(check: CHECK, text: str) -> None:
    checked, _ = check("edge")
    assert checked.run.path is not None
    (checked.run.path / run_files.LEVELS).write_text(text)
    with pytest.raises(BrokenRunError, match="is not a list of planned levels"):
        run_files.missing_levels(checked.run)
