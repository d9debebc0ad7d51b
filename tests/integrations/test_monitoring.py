"""Prometheus rules and the Grafana dashboard: promtool, and the metrics that fablint writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from host_tree import host_with_link_down
from prometheus_client.parser import text_string_to_metric_families

INTEGRATIONS = Path(__file__).parents[2] / "integrations"
RULES = INTEGRATIONS / "prometheus" / "fablint.rules.yml"
DASHBOARD = INTEGRATIONS / "grafana" / "fablint.json"
_METRIC = re.compile(r"\bfablint_\w+")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize("words", [("check", "rules", RULES.name), ("test", "rules", "fablint.test.yml")])
def test_promtool_accepts_the_rules(words: tuple[str, ...]) -> None:
    done = subprocess.run(["promtool", *words], cwd=RULES.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_test() -> None:
    rules = yaml.safe_load(RULES.read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    tests = yaml.safe_load((RULES.parent / "fablint.test.yml").read_text())["tests"]
    raised = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert alerts == raised


@pytest.fixture
def metrics(fablint_in_process, tmp_path: Path) -> dict[str, set[str]]:
    """Labels of each metric that preflight and the analysis of a run with a faulty host write."""
    tree = host_with_link_down(tmp_path / "tree")
    (tmp_path / "site.toml").write_text(
        'format = 1\n[[suppress]]\ncheck = "net.link.up"\nhosts = "*"\nuntil = 2099-01-01\nreason = "spare"\n'
    )
    words = ("--sysroot", tree, "--site", tmp_path / "site.toml")
    fablint_in_process("preflight", "-q", *words, "--prometheus", tmp_path / "unfit.prom")
    fault = ("--host-count", "16", "--full", "--fault", "host:h03:tx:-30%")
    fablint_in_process("simulate", "-q", *fault, "-o", tmp_path / "a.run")
    fablint_in_process("analyse", "-q", tmp_path / "a.run", "--prometheus", tmp_path / "verdict.prom")
    text = (tmp_path / "unfit.prom").read_text() + (tmp_path / "verdict.prom").read_text()
    return {
        family.name: {label for sample in family.samples for label in sample.labels}
        for family in text_string_to_metric_families(text)
    }


def test_rules_and_dashboard_use_metrics_that_exist(metrics: dict[str, set[str]]) -> None:
    rules = yaml.safe_load(RULES.read_text())
    used = {rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    used |= {target["expr"] for panel in panels for target in panel["targets"]}
    names = {name for text in used for name in _METRIC.findall(text)}
    assert len(names) >= 4
    assert names <= set(metrics)
    labels = set().union(*metrics.values())
    templates = re.findall(r"\$labels\.(\w+)", RULES.read_text()) + re.findall(r"\{\{(\w+)\}\}", DASHBOARD.read_text())
    assert set(templates) - {"instance"} <= labels


def test_panels_of_the_dashboard_have_a_place_each() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells
