"""The PDF: its text read back by another library, its pages, its fonts."""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO

import numpy as np
import pypdf
import pytest
from PIL import Image
from report_cases import bench_run, diagnose, fault_case, healthy_case, incomplete_case

from fablint.analyse import diagnose as fabric_diagnosis
from fablint.errors import UsageError
from fablint.model import Placement, State
from fablint.report import finding_order, run_facts
from fablint.report.canvas.fonts import fitted
from fablint.report.drawings.matrix_drawing import axis_labels
from fablint.report.pdf.page_layout import WIDTH
from fablint.report.pdf.pdf_report import _Report, pdf_report
from fablint.report.pdf.png_pictures import picture
from fablint.report.survey.drawn_matrix import drawn_matrix
from fablint.report.survey.heatmap import topological_order
from fablint.simulate import Fault, SimulatedFabric, SimulatedRow, fat_tree
from fablint.simulate.rounds import all_rounds
from fablint.text import units
from fablint.workflows import analysis
from fact_cases import with_facts
from finding_cases import component, finding
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)


def pages(case) -> list[pypdf.PageObject]:
    return list(pypdf.PdfReader(BytesIO(pdf_report(*case))).pages)


def text_of(case) -> str:
    return " ".join(" ".join(page.extract_text() for page in pages(case)).split())


@pytest.mark.parametrize("case", [healthy_case, fault_case, incomplete_case])
def test_verdict_hosts_and_signatures_are_text(case):
    run, diagnosis = case()
    words, verdict = text_of((run, diagnosis)), diagnosis.verdict
    assert f"{finding_order.word(verdict)}: {finding_order.headline(verdict)}" in words
    assert f"exit code {verdict.exit_code}" in words
    for one in finding_order.faulty(finding_order.ordered(verdict)):
        assert f"{one.state} {finding_order.subject(one)}"[:40] in words
    listed = re.findall(r"h\[[\d, -]+\]|h\d+", words.partition(f"Hosts ({len(run.hosts)})")[2])
    assert sorted(host for names in listed for host in units.unfold(names.replace(" ", ""))) == sorted(run.hosts)
    assert all(word in words for word in ("Thresholds", "Configuration", "Distribution", "Slowest pairs", "signature"))


def test_the_gravest_findings_are_drawn_over_time_and_nothing_simulated_is_measured_again():
    words = text_of(fault_case())
    assert PINNED["The finding over time: host"] in words
    assert PINNED["64 of 64 hosts judged; 4,032"] in words
    assert "fablint retest" not in words


def test_a_state_of_a_finding_is_one_line() -> None:
    run, diagnosis = fault_case()
    states = [state for state in State if state is not State.OK]
    found = tuple(diagnosis.verdict.findings[0].model_copy(update={"state": state}) for state in states)
    verdict = diagnosis.verdict.model_copy(update={"findings": found})
    lines = pages((run, replace(diagnosis, verdict=verdict)))[0].extract_text().splitlines()
    assert all(any(line.strip() == state for line in lines) for state in states), lines


def test_hosts_are_folded_by_switch_and_a_faulty_one_keeps_its_line():
    words = text_of(fault_case()).partition("Hosts (64)")[2]
    assert re.search(r"h\[08-12, ?14-15\] s1 OK h13 s1 FAULT", words)


def test_every_font_is_embedded_and_text_stays_on_the_page():
    for page in pages(fault_case()):
        for font in page["/Resources"]["/Font"].values():
            assert "/FontFile2" in font.get_object()["/FontDescriptor"].get_object()
        right = float(page.mediabox.right)
        seen: list[float] = []
        page.extract_text(
            visitor_text=lambda text, page, matrix, *more, seen=seen: (
                text.strip() and seen.append(page[0] * matrix[4] + page[4])
            )
        )
        assert seen
        assert 0 <= min(seen) <= max(seen) < right


def test_names_that_are_too_long_are_shortened_to_their_room_and_markup_is_text():
    run, diagnosis = fault_case()
    long = tuple(f"<b>{'rack' * 30}&{number:03}" for number in range(len(run.hosts)))
    run = with_facts(run, hosts=list(long))
    words = text_of((run, diagnosis)).replace(" ", "")
    assert all(name in words for name in long[:3])
    assert re.fullmatch(r"<b>r.*\.\..*&000", fitted(long[0], WIDTH / 8, 6.0))


def test_a_pdf_without_its_library_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"reportlab: pip install 'fablint\[pdf\]'"):
        analysis.write_pdf(*healthy_case(), tmp_path / "x.pdf")


def test_the_picture_shows_the_slowest_pair_in_red_and_pairs_without_measurement_in_grey():
    run, diagnosis = fault_case()
    row = next(row for row in run.rows if row.quantity == "bandwidth")
    size = run_facts.informative_size(row)
    placement = Placement.of(run, diagnosis.topology)
    fit = run_facts.fit_of(diagnosis, row, size)
    deviation = drawn_matrix(row, size, fit, placement, topological_order(placement)).deviation
    pixels = np.asarray(Image.open(BytesIO(picture(run, diagnosis, "finding")))).astype(int)
    places = 200 + (np.arange(len(deviation)) + 0.5) * 960 / len(deviation)  # of lines; of columns 30 pixels less
    src, dst = np.unravel_index(np.nanargmax(deviation), deviation.shape)
    slowest, own = (pixels[int(places[at]), int(places[to] - 30)] for at, to in ((src, dst), (0, 0)))
    assert slowest[0] > slowest[1] + 100
    assert own.tolist() == [224, 224, 224]


def test_each_picture_has_a_name():
    run, diagnosis = fault_case()
    rows = [row.name for row in run.rows if row.purpose == "measure"]
    names = [f"{kind}:{row}" for row in rows for kind in ("deviation", "measured", "distribution")]
    pictures = {picture(run, diagnosis, name) for name in names}
    assert len(pictures) == len(names) > 2
    assert all(Image.open(BytesIO(one)).format == "PNG" for one in pictures)
    with pytest.raises(UsageError, match=r"no picture 'measurd:latency': did you mean measured:latency"):
        picture(run, diagnosis, "measurd:latency")


def test_drawings_of_the_page_are_pictures_too():
    """The faulty host is red in the topology; the measurements of the finding are red dots below the others."""
    run, diagnosis = fault_case()
    red = np.array([209, 36, 47])
    for name in ("topology", "strip:1", "time:latency"):
        pixels = np.asarray(Image.open(BytesIO(picture(run, diagnosis, name)))).astype(int)
        reds = (np.abs(pixels - red).max(axis=2) < 8).sum()
        assert (reds > 30) == (name != "time:latency")
    for name, why in (("curve:latency", "three message sizes"), ("strip:2", "no picture"), ("transports", "several")):
        with pytest.raises(UsageError, match=why):
            picture(run, diagnosis, name)


def test_cells_of_few_rounds_have_measured_pairs():
    """A run of 24 rounds measures a small share of the pairs: single pairs would be lost among empty cells."""
    tree = fat_tree(8, 3)
    ranks = np.arange(512)
    rounds = [np.stack([ranks, ranks ^ step], axis=1)[ranks < ranks ^ step] for step in range(1, 512, 22)]
    run = SimulatedFabric(tree, [], seed=1).measure(rounds, (SimulatedRow("bandwidth", (1 << 20,)),))
    placement = Placement.of(run, tree.topology)
    matrix = drawn_matrix(run.rows[0], 1 << 20, None, placement, topological_order(placement))
    assert (run.ranks, matrix.side) == (512, 5)
    assert np.isfinite(matrix.log_time).mean() > 0.4


def test_hosts_of_findings_are_named_at_the_axes_where_many_others_have_no_name():
    tree = fat_tree(8, 3)
    run = SimulatedFabric(tree, [], seed=1).measure([np.arange(512).reshape(-1, 2)])
    placement = Placement.of(run, tree.topology)
    matrix = drawn_matrix(run.rows[0], run.rows[0].sizes[0], None, placement, topological_order(placement))
    labels = axis_labels(placement, matrix, {"h333"})
    assert [label.name for label in labels if label.is_named] == ["h333"]
    assert 20 < len(labels) < 40


def small_case(*findings):
    """Four hosts on two switches, all pairs in three rounds."""
    tree = fat_tree(2, 2)
    run = SimulatedFabric(tree, [], seed=1).measure(all_rounds(4))
    return run, diagnose(run, tree.topology, "incomplete", findings)


def test_four_hosts_have_a_cell_for_each_pair_and_no_empty_columns() -> None:
    words = text_of(small_case())
    assert "ranks in a cell" not in words
    assert words.partition("Hosts (4)")[2].startswith(" hosts switch state h[00-01] leaf0")


def test_a_matrix_of_the_bisection_is_a_line_of_its_own() -> None:
    run, diagnosis = small_case()
    assert "No bisection was measured" in text_of((run, diagnosis))
    measured = run.row("bandwidth")
    crossing = replace(with_facts(measured, pattern="bisection"), name="across")
    words = text_of((replace(run, rows=(*run.rows, crossing)), diagnosis))
    assert PINNED["Figures by distance"] in words and "No bisection" not in words
    assert re.search(r"bisection bandwidth 1 MiB 12 ", words)


def test_one_pair_has_the_percentiles_of_its_messages_and_no_picture_of_one_cell() -> None:
    run = bench_run("latency", samples=np.repeat([1e-6, 3.8e-6], [97, 3]))
    row = run.rows[0]
    first = np.array([[[True]], [[False]]])
    arrays = {name: np.where(first, row.arrays[name], np.nan) for name in row.arrays if name.startswith("time_")}
    run = replace(run, rows=(replace(row, arrays={**row.arrays, **arrays, "count": 100 * first}),))
    words = text_of((run, diagnose(run, None)))
    assert re.search(r"size .*median of messages .*P99 of messages .*8 B .*1\.00 us .*3\.80 us", words)
    assert not any(title in words for title in ("Lines send", "Distribution", "Slowest pairs", "worst"))


def test_hosts_of_a_suspect_route_have_its_state() -> None:
    route = finding(State.SUSPECT, "route", "h00>h02", quantity="bandwidth", effect=-0.3)
    words = text_of(small_case(route)).partition("Hosts (4)")[2]
    assert re.findall(r"(h\d+) leaf\d SUSPECT route", words) == ["h00", "h02"]


def test_why_the_same_hosts_were_not_judged_is_said_in_full() -> None:
    reasons = ("measured with fewer than 3 other hosts", "too heterogeneous")
    words = text_of(small_case(*(finding(State.NOT_JUDGED, "host", "h[00-03]", evidence=one) for one in reasons)))
    assert all(reason in words for reason in reasons)


def test_a_run_in_rounds_has_its_topology_a_matrix_of_links_and_the_slowest_pairs_of_findings_first() -> None:
    tree = fat_tree(4, 2)
    faults = (Fault(component("link", "leaf1>spine2"), bandwidth_factor=0.7),)
    run = SimulatedFabric(tree, faults, seed=3).measure(all_rounds(16)[:12])
    report = _Report(run, fabric_diagnosis(run, tree.topology))
    words = text_of((run, report.diagnosis))
    assert PINNED["Topology Switches with hosts"] in words
    assert "bandwidth, 1 MiB: links between switches" in words
    survey = next(one for one in report.surveys["bandwidth"])
    slow = report._slowest_first_of_findings(survey)
    ((_, crossing),) = report.source.crossings.drawn()
    src, dst = (np.array([getattr(pair, end) for pair in slow]) for end in ("src", "dst"))
    uses = crossing.of(src, dst, report.placement.switch, "src")
    assert uses.any() and (np.diff(uses.astype(int)) <= 0).all()
    late = report._slowest_first_of_findings(report.surveys["latency"][0])
    assert late == report.surveys["latency"][0].worst[: len(late)]  # the link is slow in bandwidth only
