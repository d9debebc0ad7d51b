"""The verdict as JUnit and Prometheus files: what their readers make of it, and odd names."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest
from prometheus_client.parser import text_string_to_metric_families
from report_cases import fault_case, healthy_case, incomplete_case

from fablint.cli.result_files import RESULT_FILES
from fablint.model import ComponentRef, Diagnosis, Finding, Run, State
from fablint.model.verdict import FormerState
from fablint.report.exports.formats import RESULT_FORMATS
from fablint.report.exports.verdict_junit import verdict_junit
from fablint.report.exports.verdict_metrics import verdict_metrics
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

ODD = 'h<1>&"\\\n\x01\ud800\u00e9'


def case_with(*findings: Finding) -> tuple[Run, Diagnosis]:
    run, diagnosis = healthy_case()
    return run, replace(diagnosis, verdict=diagnosis.verdict.model_copy(update={"findings": findings}))


def found(name: str, state: State, **more: object) -> Finding:
    known = FormerState(state=State.FAULT, until="2030-06-30", reason="x") if state is State.SUPPRESSED else None
    return Finding(state=state, components=(ComponentRef.of("host", name),), suppressed=known, **more)


def test_each_option_has_a_renderer() -> None:
    assert tuple(RESULT_FILES) == tuple(RESULT_FORMATS)


@pytest.mark.parametrize("case", [fault_case, healthy_case, incomplete_case])
def test_a_ci_server_fails_exactly_where_the_exit_code_does(case) -> None:
    run, diagnosis = case()
    root = Tree.fromstring(verdict_junit(run, diagnosis))
    red = int(root.get("failures")) + int(root.get("errors"))
    assert bool(red) == bool(diagnosis.verdict.exit_code)
    assert int(root.get("tests")) == sum(len(suite) for suite in root)


def test_the_state_of_a_component_is_the_outcome_of_its_test() -> None:
    root = Tree.fromstring(verdict_junit(*case_with(*(found(f"h{at}", state) for at, state in enumerate(State)))))
    children = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    expected = ["failure", "error", "error", "skipped", "skipped", "system-out"]
    assert [children[f"h{at}"] for at in range(len(State))] == [[tag] for tag in expected]


def test_the_worst_of_several_findings_counts() -> None:
    case = case_with(found("h1", State.OK), found("h1", State.FAULT, effect=-0.2, quantity="bandwidth", direction="tx"))
    (test,) = [one for one in Tree.fromstring(verdict_junit(*case)).iter("testcase") if one.get("name") == "h1"]
    assert (test[0].get("message"), test[0].text) == ("FAULT tx bandwidth -20 %", "OK")
    values = metrics(*case)
    assert values["fablint_check_result", (("component", "host"), ("name", "h1"))] == 3
    labels = (("component", "host"), ("direction", "tx"), ("name", "h1"), ("quantity", "bandwidth"))
    assert values["fablint_check_effect_ratio", labels] == -0.2


def test_of_a_healthy_component_all_bounds_are_in_the_output() -> None:
    fine = [
        found("h1", State.OK, effect=effect, quantity=of) for of, effect in (("latency", 0.04), ("bandwidth", -0.03))
    ]
    (test,) = [
        one for one in Tree.fromstring(verdict_junit(*case_with(*fine))).iter("testcase") if one.get("name") == "h1"
    ]
    assert (test[0].text or "").splitlines() == ["OK added latency below 4.0 %", "OK lost bandwidth below 3.0 %"]


def metrics(run: Run, diagnosis: Diagnosis) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(verdict_metrics(run, diagnosis))
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def test_a_known_fault_is_a_metric_and_not_counted() -> None:
    values = metrics(*case_with(found("h1", State.SUPPRESSED)))
    subject = (("component", "host"), ("name", "h1"))
    assert (values["fablint_check_suppressed", subject], values["fablint_check_result", subject]) == (1, 0)


def test_the_hosts_of_a_set_are_one_by_one_and_numbers_are_left_out() -> None:
    folded = Finding(state=State.OK, components=(ComponentRef.of("host", ("h1", "h2")),))
    counted = Finding(state=State.OK, components=(ComponentRef(kind="link", count=56),))
    names = [dict(labels).get("name") for _, labels in metrics(*case_with(folded, counted))]
    assert [name for name in names if name] == ["h1", "h2"]


def test_odd_names_do_not_break_a_file() -> None:
    case = case_with(found(ODD, State.FAULT))
    names = [one.get("name") for one in Tree.fromstring(verdict_junit(*case)).iter("testcase")]
    assert names[1] == 'h<1>&"\\ ??\u00e9'.replace(" ", "\n")
    (name,) = [dict(labels)["name"] for _, labels in metrics(*case) if "name" in dict(labels)]
    assert name == 'h<1>&"\\\n\x01?\u00e9'


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize("case", [fault_case(), healthy_case(), incomplete_case(), case_with(found(ODD, State.FAULT))])
def test_promtool_accepts_the_metrics(case: tuple[Run, Diagnosis]) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=verdict_metrics(*case), text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_verb_writes_both_and_refuses_first(fablint_in_process, tmp_path: Path) -> None:
    fablint_in_process("simulate", "--host-count", "8", "-o", "x.run")
    done = fablint_in_process("analyse", "x.run", "--junit", "a.xml", "--prometheus", "a.prom")
    root = Tree.parse(tmp_path / "a.xml").getroot()
    assert bool(done.returncode) == bool(int(root.get("failures")) + int(root.get("errors")))
    assert f"fablint_check_exit_code {done.returncode}.0\n" in (tmp_path / "a.prom").read_text()
    refused = fablint_in_process("check", "--local", "2", "-o", "y.run", "--junit", "nope/a.xml")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert not (tmp_path / "y.run").exists()
    detached = fablint_in_process("check", "-w", "n[1-2]", "--submit", "--detach", "--junit", "a.xml")
    assert PINNED["--junit and --detach contradict"] in detached.stderr
    table = fablint_in_process("report", "x.run", "--table", "pairs", "--junit", "b.xml")
    assert (table.returncode, (tmp_path / "b.xml").exists()) == (2, False)
