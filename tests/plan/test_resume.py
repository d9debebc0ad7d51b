"""What is left of a run becomes a plan."""

from __future__ import annotations

import numpy as np
import pytest

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.plan import resume_plan
from fablint.plan.grammar import parse_row


def a_row(name: str, order: str = "parallel", **attributes) -> Row:
    facts = {
        "kernel": "latency",
        "order": order,
        "options": f"latency --name {name} --pattern all-pairs --order {order} --budget 0.5",
        "rounds": 7,
        "cells_per_round": 8,
        "warmup": 10,
        "stop": {"samples": None, "budget_s": 0.5, "precision": None},
    }
    return Row(name, {**facts, **attributes}, {"size": np.array([8])})


def a_run(*rows: Row) -> Run:
    return Run(None, {"ranks": 8, "state": "interrupted", "rows": [row.name for row in rows]}, rows)


def test_only_the_missing_rounds_of_the_unfinished_rows():
    run = a_run(a_row("done"), a_row("half"), a_row("serial", order="serial"))
    plan = resume_plan(run, {"done": [], "half": [5, 2, 3], "serial": [6]})
    assert plan.ranks == 8
    done, half, serial = plan.rows
    assert done.options.endswith("--name done --pattern all-pairs --order parallel --budget 0.5 --only-rounds none")
    assert (done.rounds, done.predicted_s) == (0, 0)
    assert half.options == "latency --name half --pattern all-pairs --order parallel --budget 0.5 --only-rounds 2-3,5"
    assert half.rounds == 3
    assert half.predicted_s == pytest.approx(3 * 0.5 * 1.1)
    assert serial.predicted_s == pytest.approx(1 * 4 * 0.5 * 1.1)
    assert parse_row(half.options.split()).only_rounds == (2, 3, 5)


def test_a_row_with_rounds_of_different_sizes():
    row = a_row("mixed", order="serial", cells_per_round=[4, 2], rounds=2)
    (rest,) = resume_plan(a_run(row), {"mixed": [0, 1]}).rows
    assert rest.predicted_s == pytest.approx(3 * 0.5 * 1.1)


def test_the_name_is_always_said():
    row = a_row("latency-2", options="latency --sizes 8")
    assert "--name latency-2" in resume_plan(a_run(row), {"latency-2": [0]}).text


def test_nothing_missing():
    assert resume_plan(a_run(a_row("done")), {}).rows == ()


def test_a_row_that_was_never_started_is_planned_whole():
    run = a_run(a_row("done"))
    facts = {**run.attributes, "rows": ["done", "listed"]}
    line = "latency --name listed --pattern rounds --rounds-file r.txt --budget 2"
    plan = resume_plan(Run(None, {**facts, "plan": ["", line]}, run.rows), {}, {"r.txt": "0-1\n1-2 3-4"}.__getitem__)
    assert [row.rounds for row in plan.rows] == [0, 2]
    assert plan.rows[1].options == line
    assert plan.predicted_s == pytest.approx(2 * 2 * 1.1)
    with pytest.raises(UsageError, match="row listed was not started"):
        resume_plan(Run(None, facts, run.rows), {})
