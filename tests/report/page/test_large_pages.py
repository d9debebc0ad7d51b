"""The page and the PDF of more ranks than are named one by one: what they leave out, and what they keep."""

from __future__ import annotations

import base64
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pypdf
import pytest
from browser import needs_chromium
from report_cases import fault_case

from fablint.analyse import diagnose
from fablint.model import State
from fablint.report import write_html
from fablint.report.html.maps import page_data
from fablint.report.html.node_sets import node_sets
from fablint.report.html.page import render
from fablint.report.pdf.pdf_report import pdf_report
from fablint.report.survey.report_source import ReportSource
from fablint.simulate import Fault, SimulatedFabric, fat_tree
from fablint.simulate.rounds import all_rounds
from finding_cases import component, finding

SLOWEST = 5


@pytest.fixture
def few_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of more than 32 ranks do not name all of them."""
    monkeypatch.setattr("fablint.report.survey.report_source.MOST_RANKS", 32)
    monkeypatch.setattr("fablint.report.html.shown_ranks.MOST_SLOWEST", SLOWEST)
    monkeypatch.setattr("fablint.report.survey.row_survey.WORST_PAIRS", SLOWEST)


def source(arity: int = 8) -> ReportSource:
    """Twelve rounds of a tree, with a host in the middle and a link that are slow."""
    fabric = fat_tree(arity, 2)
    last = len(str(arity - 1))
    faults = (
        Fault(component("host", fabric.hosts[arity * arity // 2 + 1]), "tx", bandwidth_factor=0.6),
        Fault(component("link", f"leaf{1:0{last}d}>spine{2:0{last}d}"), bandwidth_factor=0.6),
    )
    run = SimulatedFabric(fabric, faults, seed=3).measure(all_rounds(arity * arity)[:: max(1, arity * arity // 12)])
    return ReportSource(run, diagnose(run, fabric.topology))


def codes(text: str) -> list[int]:
    return np.frombuffer(base64.b64decode(text), dtype="<i4").tolist()


def names(data: dict[str, Any], ranks: Any) -> list[str]:
    host = codes(data["host"])
    return [data["hosts"][host[rank]] for rank in ranks]


def test_the_ranks_of_a_large_page_are_those_of_findings_the_slowest_and_those_of_the_slowest_pairs(few_named) -> None:
    large = source()
    data = page_data(large)
    assert {"h33", *_slowest_hosts(large)} <= set(data["hosts"])
    # For each of two rows: the slowest ranks, and two ends of the slowest pairs; of each mark two ends of a run.
    assert len(data["hosts"]) == data["ranks"] <= 2 * 3 * SLOWEST + 4 * len(data["marks"]) < large.run.ranks
    assert [large.run.rank_host[rank] for rank in codes(data["numbers"])] == names(data, range(data["ranks"]))
    ordered = [large.run.rank_host[rank] for rank in large.order if large.run.rank_host[rank] in set(data["hosts"])]
    assert names(data, codes(data["order"])) == ordered


def _slowest_hosts(large: ReportSource) -> set[str]:
    hosts = set()
    for fit in large.diagnosis.fits:
        order = np.argsort(-np.maximum(fit.tx, fit.rx), kind="stable")[:SLOWEST]
        hosts |= {large.run.rank_host[rank] for rank in order}
    return hosts


def test_pairs_and_marks_of_a_large_page_are_those_of_the_page_of_all_ranks(monkeypatch, request) -> None:
    whole = page_data(source())
    request.getfixturevalue("few_named")
    large = page_data(source())
    assert not [one for one in large["maps"] if "effects" in one]
    models = {(one["row"], one["size"]): one for one in large["models"]}
    for one in whole["maps"]:
        if "effects" in one:
            model = models.pop((one["row"], one["size"]))
            for lists in ("worst", "repeated"):
                for pair, other in zip(model[lists], one[lists], strict=False):
                    assert names(large, pair[:2]) == names(whole, other[:2]) and pair[2:] == other[2:]
    assert not models
    for mark, other in zip(large["marks"], whole["marks"], strict=True):
        assert _blocks(large, mark) == _blocks(whole, other) != []


def _blocks(data: dict[str, Any], mark: dict[str, Any]) -> list[str]:
    """Blocks of the first matrix of switches in which the ends of a mark begin and end."""
    matrix = next(one for one in data["maps"] if one.get("kind") == "switch")
    starts = np.array(codes(matrix["starts"]))
    places = [place for end in mark["ends"] for first, after in end["runs"] for place in (first, after - 1)]
    return [matrix["names"][np.searchsorted(starts, place, side="right") - 1] for place in places]


def test_the_page_of_many_ranks_does_not_grow_with_them(few_named) -> None:
    small, large = (len(str(page_data(source(arity)) | {"maps": []})) for arity in (8, 16))
    assert large < 1.5 * small


def test_more_switches_than_a_matrix_has_lines_are_divided_into_blocks_of_hosts(few_named, monkeypatch) -> None:
    monkeypatch.setattr("fablint.report.html.block_maps.MOST_BLOCKS", 6)
    kinds = {one["kind"]: len(one["names"]) for one in page_data(source())["maps"]}
    assert "switch" not in kinds and 3 <= kinds["block of hosts"] < 6


def test_the_gravest_of_very_many_findings_are_in_the_report_and_the_others_are_counted(monkeypatch) -> None:
    monkeypatch.setattr("fablint.report.survey.report_source.MOST_FINDINGS", 3)
    run, diagnosis = fault_case()
    hosts = [finding(State.FAULT, "host", f"h{host:02d}", quantity="bandwidth", effect=-0.3) for host in range(11)]
    verdict = diagnosis.verdict.model_copy(update={"findings": (*hosts, *diagnosis.verdict.findings[1:])})
    case = run, replace(diagnosis, verdict=verdict)
    page = render(*case)
    assert (page.count('<article class="fault"'), page.count('<article class="ok"')) == (3, 1)
    pdf = " ".join(one.extract_text() for one in pypdf.PdfReader(BytesIO(pdf_report(*case))).pages)
    for text in (page, pdf):
        assert "8 further findings" in " ".join(text.split())


def test_a_node_set_of_hosts_that_do_not_fold_is_left_out_of_the_page(monkeypatch) -> None:
    whole = node_sets(source())
    monkeypatch.setattr("fablint.report.html.node_sets.MOST_LETTERS", 5)
    for one, other in zip(node_sets(source()), whole, strict=True):
        assert (one.count, one.nodes) == (other.count, other.nodes if len(other.nodes) <= 5 else "")


def test_the_hosts_of_a_pdf_are_those_of_findings_first(monkeypatch) -> None:
    monkeypatch.setattr("fablint.report.pdf.pdf_report._MOST_LINES", 2)
    large = source()
    pages = pypdf.PdfReader(BytesIO(pdf_report(large.run, large.diagnosis))).pages
    words = " ".join(" ".join(one.extract_text() for one in pages).split()).partition("Hosts (64)")[2]
    assert "h33" in words and "hosts left out of this table" in words


@needs_chromium
def test_a_large_page_has_the_tables_of_what_it_names(few_named, tmp_path, reader) -> None:
    large = source()
    write_html(large.run, large.diagnosis, tmp_path / "index.html")
    page = reader.open(tmp_path / "index.html")
    assert "Of 64 ranks this page names" in page.locator("#matrix-section").inner_text()
    shown = {name: page.locator(f"#table-{name}").is_visible() for name in ("hosts", "switches", "links", "pairs")}
    assert shown == {"hosts": True, "switches": False, "links": True, "pairs": False}
    page.locator("#table-hosts summary").click()
    assert "h33" in page.locator("#table-hosts tbody tr").first.inner_text()
    page.locator("#spikes summary").click()
    page.locator("#worst tbody tr").first.click()
    assert page.locator("#readout").inner_text()
