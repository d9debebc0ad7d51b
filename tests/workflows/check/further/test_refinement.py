"""`--until`: the levels are measured again until the losses that the user asked for would be named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_launches import FakeCluster, launches_of, request_of
from level_cases import FABRIC, HOSTS

from fablint.errors import UsageError
from fablint.model import Coverage, Limits, State, Verdict
from fablint.model.verdict import NamedLoss
from fablint.plan.check.suites import find_suite
from fablint.text.notes import note_text
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.level_runs import LevelRuns
from fablint.workflows.check.refinement import Refinement
from fablint.workflows.check.request import CheckRequest
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)


def checked(cluster: FakeCluster, output: Path, until: float | None, budget_s: float | None = None) -> CheckOutcome:
    request = replace(request_of(HOSTS, FABRIC), budget_s=budget_s)
    launches, _ = launches_of(cluster, request, output)
    level_runs = LevelRuns(launches, find_suite("quick"), refinement=Refinement(until))
    return level_runs.check()


def losses(outcome: CheckOutcome) -> list[float]:
    limits = outcome.diagnosis.verdict.limits
    assert limits is not None
    return [item.loss for item in limits.named]


def passes(outcome: CheckOutcome) -> int:
    """Return how often the last level was measured again."""
    return sum(re.fullmatch(r"global-\d+-bandwidth", row.name) is not None for row in outcome.run.rows)


def notes_of(outcome: CheckOutcome) -> list[str]:
    return [note_text(note) for note in outcome.diagnosis.verdict.notes if note.kind == "loss_not_reached"]


def test_levels_are_measured_again_until_the_loss_would_be_named(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.noise = 0.06
    once = checked(cluster, tmp_path / "once.run", None)
    asked = 0.85 * max(losses(once))
    again = checked(cluster, tmp_path / "again.run", asked)
    assert passes(once) == 0 < passes(again)
    assert max(losses(again)) <= asked
    assert (again.diagnosis.verdict.exit_code, notes_of(again)) == (0, [])


def test_nothing_is_measured_again_where_the_loss_would_be_named_already(cluster: FakeCluster, tmp_path: Path) -> None:
    outcome = checked(cluster, tmp_path / "a.run", 0.2)
    assert (passes(outcome), outcome.diagnosis.verdict.exit_code) == (0, 0)


def test_a_budget_that_is_too_small_ends_incomplete(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.noise = 0.1
    outcome = checked(cluster, tmp_path / "a.run", 0.08, budget_s=20.0)
    assert outcome.diagnosis.verdict.exit_code == 3
    (note,) = notes_of(outcome)
    assert note.startswith("--until 8 % is not reached: ")
    assert note.endswith("; the budget ended")
    assert sum(row.facts.result.wall_s for row in outcome.run.rows) <= 2 * 20.0


def test_a_fault_of_the_size_asked_for_is_named(cluster: FakeCluster, tmp_path: Path) -> None:
    """The host is slow when it sends and when it receives, and is not measured again for the loss of the others."""
    cluster.noise = 0.03
    cluster.slow["h05"] = 1 / (1 - 0.12)
    outcome = checked(cluster, tmp_path / "a.run", 0.12)
    faults = [finding.name for finding in outcome.diagnosis.verdict.findings if finding.state is State.FAULT]
    assert faults == ["h05"]


def verdict(*named: float) -> Verdict:
    items = tuple(NamedLoss(component="host", quantity="bandwidth", loss=loss) for loss in named)
    limits = Limits(reported=0.05, passed=0.1, named=items)
    coverage = Coverage(pairs_planned=2, pairs_measured=2, hosts=2, hosts_judged=2)
    return Verdict(verdict="pass", exit_code=0, findings=(), coverage=coverage, limits=limits)


def test_passes_that_do_not_help_end() -> None:
    refinement = Refinement(0.08)
    needed = [refinement.needs_pass(verdict(0.07, loss), is_time_over=False) for loss in (0.2, 0.15, 0.149)]
    assert needed == [True, True, False]
    (note,) = refinement.notes
    assert note_text(note) == PINNED["further rounds do not lower it"]


def test_a_run_that_judges_nothing_does_not_reach_it() -> None:
    refinement = Refinement(0.08)
    assert not refinement.needs_pass(verdict(), is_time_over=True)
    assert not refinement.is_reached
    assert note_text(refinement.notes[0]) == PINNED["none is named"]


@pytest.mark.parametrize("until", [0.01, 0.05])
def test_a_loss_within_what_healthy_hosts_differ_by_is_refused(until: float) -> None:
    with pytest.raises(UsageError, match="healthy components differ by up to 5 %"):
        CheckRequest(until=until)


def test_it_is_kept_with_the_request_and_is_for_clusters_only() -> None:
    assert CheckRequest(until=0.08).in_any_folder().until == 0.08
    with pytest.raises(UsageError, match="--until does not apply to --local"):
        CheckRequest(ranks=4, until=0.08)
