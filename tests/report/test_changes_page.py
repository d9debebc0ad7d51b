"""The page of a comparison: what it says, and that it needs nothing but itself."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import needs_chromium, started

from fablint.model import Run
from fablint.model.run_changes import ChangeState, RunChanges
from fablint.report import write_changes_page
from fablint.report.changes.changes_document import headline
from fablint.report.changes.changes_page import Axis, ChangeLine, render
from fablint.simulate import Fault, Noise, SimulatedRow, full_mesh, simulate
from fablint.store import write_run
from fablint.workflows.analysis import compare_runs
from fablint_command import Fablint
from fact_cases import with_facts
from finding_cases import ref
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

MESH = full_mesh(4, 8)
QUIET = Noise(scale=0.005, spike_share=0.0, host_spread=0.001, link_spread=0.0)
ROWS = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,)))


def measured(seed: int, *slow: tuple[int, float]) -> Run:
    faults = [Fault(ref("host", MESH.hosts[at]), "tx", bandwidth_factor=left) for at, left in slow]
    return simulate(MESH, faults=faults, noise=QUIET, seed=seed, rows=ROWS)


@pytest.fixture(scope="module")
def runs() -> tuple[Run, Run]:
    return measured(1, (3, 0.8)), measured(2, (3, 0.8), (5, 0.85), (9, 0.7))


@pytest.fixture(scope="module")
def changes(runs: tuple[Run, Run]) -> RunChanges:
    return compare_runs(*runs, None, 0.03)


class Text(HTMLParser):
    """The words of a page, without its style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.feed(re.sub(r"<style>.*?</style>", "", page, flags=re.S))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def line(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_the_page_says_what_the_text_says(runs: tuple[Run, Run], changes: RunChanges) -> None:
    words = Text(render(changes, *runs)).line
    assert PINNED["WORSE 2 hosts worse, 2 new"] in words
    for host in (5, 9):
        assert PINNED["WORSE host host tx bandwidth"].filled(host=MESH.hosts[host]) in words
    assert "New: 2 faults, 0 suspects" in words
    assert "Unchanged: 1 fault, 0 suspects" in words
    assert words.count("NOT WORSE all pairs,") == len(changes.scopes)


def test_an_interval_is_drawn_on_the_side_of_the_loss(runs: tuple[Run, Run], changes: RunChanges) -> None:
    axis = Axis.of(changes)
    lost = ChangeLine(changes.hosts[0])
    low, value, high = lost.losses
    assert low < value < high
    assert value == pytest.approx(0.3, abs=0.03)  # less bandwidth is a loss
    assert f'd="M{axis.at(low)} 12H{axis.at(high)}"' in render(changes, *runs)
    assert 500 < axis.limit < axis.at(low)
    assert axis.at(10.0) == 1000
    assert axis.at(-10.0) == 0


def test_a_page_needs_no_other_file(runs: tuple[Run, Run], changes: RunChanges) -> None:
    page = render(changes, *runs)
    assert "default-src 'none'; style-src 'sha256-" in page
    assert not re.search(r"<script|https?://|src=|\bstyle=|url\(", page)


def test_names_of_hosts_are_text(runs: tuple[Run, Run]) -> None:
    hosts = ["<b>x</b>" if name == MESH.hosts[5] else name for name in MESH.hosts]
    evil = [Run(None, with_facts(run, hosts=hosts).facts, run.rows) for run in runs]
    page = render(compare_runs(*evil, None, 0.03), *evil)
    assert "<b>x" not in page
    assert "&lt;b&gt;x" in page


@needs_chromium
def test_a_phone_shows_it_without_error_and_without_scrolling_sideways(
    runs: tuple[Run, Run], changes: RunChanges, tmp_path: Path
) -> None:
    path = tmp_path / "compare.html"
    write_changes_page(changes, *runs, path)
    with started() as reader:
        page = reader.browser.new_context(viewport={"width": 390, "height": 800}).new_page()
        errors: list[str] = []
        page.on("console", lambda message: errors.append(message.text))
        page.goto(path.as_uri())
        assert page.get_by_text(f"host {MESH.hosts[9]} tx", exact=True).count() == 1
        assert page.evaluate("getComputedStyle(document.querySelector('.interval .value')).strokeWidth") == "7px"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        changed = page.get_by_text(f"host {MESH.hosts[9]} tx", exact=True).locator("xpath=../td[@class='number']")
        assert [line.count("[") for line in changed.inner_text().split(", ")] == [1]  # an interval is on one line
    assert errors == []


def test_the_verb_writes_the_page_into_the_newer_run(
    runs: tuple[Run, Run], tmp_path: Path, fablint_in_process: Fablint
) -> None:
    old, new = tmp_path / "old.run", tmp_path / "new.run"
    for run, path in zip(runs, (old, new), strict=True):
        write_run(path, run)
    ended = fablint_in_process("compare", str(old), str(new), "--html", "--json")
    assert ended.returncode == 1, ended.stderr
    assert json.loads(ended.stdout)["verdict"] == "fault"
    assert "compared with old.run" in (new / "report" / "compare.html").read_text()
    refused = fablint_in_process("compare", str(old), str(new), "-o", "x.html")
    assert (refused.returncode, "it requires --html" in refused.stderr) == (2, True)


def test_the_headline_counts_a_host_or_scope_with_changes_at_several_sizes_once(changes: RunChanges) -> None:
    worse = tuple(replace(scope, state=ChangeState.WORSE) for scope in changes.scopes)
    twice = replace(changes, scopes=worse, hosts=changes.hosts * 2)
    assert headline(twice).startswith("2 hosts worse, 2 scopes worse, ")
    assert len(worse) == 4
