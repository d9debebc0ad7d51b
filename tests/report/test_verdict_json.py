"""The machine-readable verdict and its documentation."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from report_cases import fault_case, healthy_case, incomplete_case

from fablint.model import Verdict
from fablint.report import verdict_json, verdict_schema

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "verdict.md"
FINDING = ["state", "components", "direction", "quantity", "effect", "interval", "log10_e", "evidence"]
FINDING += ["ambiguity_group", "next_step", "damage", "suppressed", "text"]


def test_exactly_the_documented_keys():
    verdict = json.loads(verdict_json(fault_case()[1]))
    keys = ["format", "verdict", "exit_code", "findings", "coverage", "complete", "limits", "not_judged"]
    keys += ["notes", "network", "thresholds"]
    assert list(verdict) == keys
    assert list(verdict["findings"][0]) == FINDING
    assert verdict["findings"][0]["interval"] == [-0.33, -0.29]


def test_verdict_words_and_exit_codes():
    for case, word, code in ((healthy_case, "pass", 0), (fault_case, "fault", 1), (incomplete_case, "incomplete", 3)):
        verdict = json.loads(verdict_json(case()[1]))
        assert (verdict["format"], verdict["verdict"], verdict["exit_code"]) == (3, word, code)


def test_it_reads_back_as_the_same_verdict():
    _, diagnosis = incomplete_case()
    assert Verdict.model_validate_json(verdict_json(diagnosis)) == diagnosis.verdict


def test_figures_that_are_not_finite_become_null():
    _, diagnosis = fault_case()
    finding = diagnosis.verdict.findings[0].model_copy(update={"effect": float("nan")})
    odd = type(diagnosis)(diagnosis.verdict.model_copy(update={"findings": (finding,)}), diagnosis.fits)
    assert json.loads(verdict_json(odd), parse_constant=reject)["findings"][0]["effect"] is None


def reject(constant):
    raise AssertionError(f"{constant} is not JSON")


def test_the_schema_in_the_docs_is_that_of_the_model():
    """Refresh with `FABLINT_UPDATE_DOCS=1 pytest tests/report/test_verdict_json.py`."""
    block = re.compile(r"(?<=<!-- schema -->\n```json\n).*?(?=```\n)", re.DOTALL)
    page = PAGE.read_text()
    if os.environ.get("FABLINT_UPDATE_DOCS"):
        page = block.sub(lambda _: verdict_schema(), page)
        PAGE.write_text(page)
    assert block.search(page)[0] == verdict_schema(), "docs/reference/verdict.md is stale, see this test's docstring"


def test_the_example_in_the_docs_is_valid():
    example = re.search(r"<!-- example -->\n```json\n(.*?)```\n", PAGE.read_text(), re.DOTALL)[1]
    Verdict.model_validate_json(example)
    assert list(json.loads(example)["findings"][0]) == FINDING
