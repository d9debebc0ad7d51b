"""What is left of a run becomes a plan."""

from __future__ import annotations

import numpy as np
import pytest

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.plan import resume_plan
from fablint.plan.rows.row_text import parse_row
from fact_cases import attributes_of, row_facts, run_facts
from pinned import pinned_by

PINNED = pinned_by("plan.toml", __file__)


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
    return Row(name, row_facts({**facts, **attributes}), {"size": np.array([8])})


def a_run(*rows: Row) -> Run:
    """Eight ranks on three hosts, one of them in two places."""
    where = {"hosts": ["b", "a", "c"], "rank_host": [0, 0, 1, 1, 1, 2, 2, 0]}
    return Run(None, run_facts({"ranks": 8, "state": "interrupted", "rows": [row.name for row in rows], **where}), rows)


def test_the_ranks_go_where_they_were():
    plan = resume_plan(a_run(a_row("half")), {"half": [1]})
    assert [(slot.host, slot.ranks) for slot in plan.slots] == [("b", 2), ("a", 3), ("c", 2), ("b", 1)]


def test_only_the_missing_rounds_of_the_unfinished_rows():
    run = a_run(a_row("done"), a_row("half"), a_row("serial", order="serial"))
    plan = resume_plan(run, {"done": [], "half": [5, 2, 3], "serial": [6]})
    assert plan.ranks == 8
    done, half, serial = plan.rows
    assert done.spec.text == PINNED["latency --name done --pattern"]
    assert (done.rounds, done.predicted_s) == (0, 0)
    assert half.spec.text == PINNED["latency --name half --pattern"]
    assert half.rounds == 3
    assert half.predicted_s == pytest.approx(3 * 0.5 * 1.1)
    assert serial.predicted_s == pytest.approx(1 * 4 * 0.5 * 1.1)
    assert half.spec.only_rounds == (2, 3, 5)


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
    facts = {**attributes_of(run), "rows": ["done", "listed"]}
    line = "latency --name listed --pattern rounds --rounds-file r.txt --budget 2"
    plan = resume_plan(
        Run(None, run_facts({**facts, "plan": ["", line]}), run.rows), {}, {"r.txt": "0-1\n1-2 3-4"}.__getitem__
    )
    assert [row.rounds for row in plan.rows] == [0, 2]
    assert plan.rows[1].spec.text == line
    assert plan.predicted_s == pytest.approx(2 * 2 * 1.1)
    with pytest.raises(UsageError, match="row listed was not started"):
        resume_plan(Run(None, run_facts(facts), run.rows), {})


RETESTED = "latency --name half --pattern all-pairs --order parallel --budget 0.5 --retest 2"
RETEST = "latency --name half-retest --pattern rounds --order serial --budget 0.5 --rounds 0-1;2-3"


def a_retest() -> Row:
    facts = {"options": RETEST, "rounds": 2, "cells_per_round": 2, "retest_of": "half"}
    return a_row("half-retest", order="serial", **facts)


def test_a_retest_goes_on_with_its_own_pairs():
    run = a_run(a_row("half", options=RETESTED), a_retest())
    half, retest = resume_plan(run, {"half-retest": [1]}).rows
    assert half.spec == parse_row(RETESTED.replace(" --retest 2", " --only-rounds none").split())
    assert (half.rounds, half.predicted_s) == (0, 0)
    assert retest.spec == parse_row(f"{RETEST} --only-rounds 1".split())
    assert retest.predicted_s == pytest.approx(0.5 * 1.1)


def test_a_retest_that_was_not_begun_comes_after_its_row():
    (half,) = resume_plan(a_run(a_row("half", options=RETESTED)), {"half": [6]}).rows
    assert half.spec.retest == 2
    assert half.predicted_s == pytest.approx((1 + 2) * 0.5 * 1.1)


def test_a_retest_that_was_announced_and_not_begun_is_planned_whole():
    run = a_run(a_row("half", options=RETESTED))
    facts = {**attributes_of(run), "rows": ["half", "half-retest"], "plan": [RETESTED, RETEST]}
    half, retest = resume_plan(Run(None, run_facts(facts), run.rows), {}).rows
    assert "--retest" not in half.spec.text
    assert (retest.spec, retest.rounds) == (parse_row(RETEST.split()), 2)


def test_counts_and_threads_are_those_of_the_row():
    line = "latency_mt --name mt --pattern all-pairs --iterations 1000,10 --warmup 100,1 --sizes 8,64K --budget 3600"
    (few,) = resume_plan(a_run(a_row("mt", options=line)), {"mt": [3]}).rows
    (many,) = resume_plan(a_run(a_row("mt", options=line)), {"mt": [3, 4]}).rows
    assert few.spec.needs_threads
    assert many.predicted_s == pytest.approx(2 * few.predicted_s)
    assert few.predicted_s < 1


@pytest.mark.parametrize(
    ("line", "cells", "groups"),
    [
        ("latency --directions single", 3, 3),
        ("latency", 6, 3),
        ("exchange", 6, 3),
        ("bandwidth --pattern fan-in", 3, 3),
    ],
)
def test_groups_of_a_round_in_serial_order(line, cells, groups):
    row = a_row("x", options=f"{line} --name x --order serial --budget 0.5", rounds=1, cells_per_round=cells)
    (rest,) = resume_plan(a_run(row), {"x": [0]}).rows
    assert rest.predicted_s == pytest.approx(groups * 0.5 * 1.1)
