"""The HTML page: it runs in a real browser, loads nothing, and escapes all texts of the run."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from browser import needs_chromium
from report_cases import (
    bench_run,
    diagnose,
    fault_case,
    healthy_case,
    incomplete_case,
    large_case,
    readable,
    sparse_case,
)

import finding_cases
from fablint.errors import UsageError
from fablint.model import ComponentRef, Finding, State
from fablint.report import write_html
from fablint.report.coverage_words import links_judged, pairs_words
from fablint.report.html.packing import embeddable
from fablint.report.survey import heatmap
from fablint.text import actions as advise, evidence as seen, units
from fact_cases import attributes_of, run_facts
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

ATTACK = "</script><img src=x onerror=alert(1)>"


def written(case, tmp_path):
    path = tmp_path / "report" / "index.html"
    write_html(*case, path)
    return path


def readout(case, tmp_path, reader, address):
    """What the page of a case says about the cell that the address points at."""
    return reader.open(written(case, tmp_path), address).inner_text("#readout")


def hostile_case():
    run, diagnosis = fault_case()
    hosts = [ATTACK if host == "h13" else host for host in run.hosts]
    attributes = {**attributes_of(run), "hosts": hosts, "environment": {"UCX_TLS": ATTACK}, "command": [ATTACK]}
    finding = Finding(
        state=State.FAULT,
        components=(ComponentRef.of("host", ATTACK),),
        evidence=finding_cases.evidence_of(ATTACK),
        next_step=advise.remedy(ATTACK),
    )
    run = replace(run, facts=run_facts(attributes), notes=[ATTACK])
    return run, diagnose(run, diagnosis.topology, "fault", (finding,))


@needs_chromium
def test_the_address_points_at_a_cell_and_the_page_says_what_it_is(tmp_path, reader):
    run, diagnosis = fault_case()
    address = "#row=bandwidth&size=1048576&mode=residual&src=13&dst=20"
    said = readout((run, diagnosis), tmp_path, reader, address)
    seconds = float(run.row("bandwidth").arrays["time_median"][0, 13, 20, 0])
    fit = next(fit for fit in diagnosis.fits if fit.row == "bandwidth")
    model = fit.class_time["local"] * np.exp(fit.tx[13] + fit.rx[20])
    match = re.fullmatch(r"h13 \u2192 h20: ([.\d]+) GB/s, ([-+.\d]+) % against the model, local", said)
    assert float(match[1]) == pytest.approx((1 << 20) / seconds / 1e9, rel=5e-3)
    assert float(match[2]) == pytest.approx(100 * (model / seconds - 1), abs=0.15)


@needs_chromium
def test_a_list_run_shows_rounds_and_names_the_pair(tmp_path, reader):
    run, diagnosis = sparse_case()
    row = run.row("latency")
    dst = int(row.arrays["dst"][3, 2])
    said = readout((run, diagnosis), tmp_path, reader, f"#row=latency&size=8&src=3&dst={dst}")
    seconds = float(row.arrays["time_median"][3, 2, 0])
    assert said.startswith(f"h03 \u2192 h{dst:02d}: {1e6 * seconds:.2f} us")
    assert said.endswith("round 2")


@needs_chromium
def test_in_a_thinned_out_map_the_worst_pair_of_a_block_is_named(tmp_path, reader, monkeypatch):
    monkeypatch.setattr(heatmap, "EDGE", 150)
    said = readout(large_case(151), tmp_path, reader, "#row=latency&size=8&src=10&dst=6")
    assert said == PINNED["nid000011 → nid000007: 6.25"]


@needs_chromium
def test_a_hostile_host_name_stays_text(tmp_path, reader):
    page = reader.open(written(hostile_case(), tmp_path))
    assert page.locator("img").count() == 0
    assert ATTACK in page.inner_text(".findings")


def test_a_hostile_host_name_cannot_leave_the_embedded_data(tmp_path):
    source = written(hostile_case(), tmp_path).read_text()
    assert "<img" not in source
    assert source.count("</script>") == 2
    data = re.search(r'id="data">(.*?)</script>', source, re.DOTALL)[1]
    assert ATTACK in json.loads(data)["hosts"]
    assert json.loads(embeddable("<>&\u2028\u2029")) == "<>&\u2028\u2029"


@pytest.mark.parametrize("case", [fault_case, sparse_case, hostile_case])
def test_nothing_is_fetched_from_anywhere(case, tmp_path):
    source = written(case(), tmp_path).read_text()
    assert "default-src 'none'" in source
    assert re.findall(r"(?:https?:|wss?:|ftp:)?//[\w.-]+\.\w+", re.sub(r"base64,[\w+/=]*", "", source)) == []
    assert re.findall(r"\s(?:src|href)=(?!\"#)", re.sub(r"\\u003c.*?\\u003e|&lt;.*?&gt;", "", source)) == []


def test_the_verdict_and_the_findings_come_before_everything_else(tmp_path):
    source = readable(written(fault_case(), tmp_path).read_text())
    body = source[source.index("<body>") :]
    places = [
        body.index(words)
        for words in (
            "<b>FAULT</b>",
            "<b>h13</b>",
            "63 of 63 partners",
            ">Pairs and links</h2>",
            ">How this was measured</h2>",
        )
    ]
    assert places == sorted(places)


def test_the_facts_of_the_run_are_printed(tmp_path):
    source = readable(written(incomplete_case(), tmp_path).read_text())
    for words in ("rank 5 (h05), round 20", "resolution 1.00 ns", "latency --pattern all-pairs", "2,542 of 4,032"):
        assert words in source


def test_figures_of_the_row_are_those_of_its_pairs(tmp_path):
    run, diagnosis = healthy_case()
    source = readable(written((run, diagnosis), tmp_path).read_text())
    times = run.row("latency").arrays["time_median"]
    times = times[np.isfinite(times)].astype(float)
    for seconds in (times.min(), np.median(times), np.quantile(times, 0.99), times.max()):
        assert f">{units.duration(seconds)}<" in source


def test_a_row_without_times_and_a_run_without_facts_still_make_a_page(tmp_path):
    run = bench_run("latency", samples=np.full(10, 1e-6))
    bare = {name: array for name, array in run.rows[0].arrays.items() if not name.startswith("time_")}
    run = replace(run, rows=(replace(run.rows[0], arrays=bare),))
    assert "How this was measured" in written((run, diagnose(run, None)), tmp_path).read_text()


def test_a_page_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "report").write_text("a file where the folder should be")
    with pytest.raises(UsageError, match=r"cannot write the report .*index\.html"):
        written(healthy_case(), tmp_path)


def test_forty_sizes_share_the_room_of_one_page(tmp_path):
    """The maps share one budget of pixels: more of them are thinned out, not added up."""
    run, _ = large_case(300)
    row = run.rows[0]
    many = np.repeat(row.arrays["time_median"], 40, axis=3)
    arrays = {"time_median": many, "count": np.isfinite(many), "size": 2 ** np.arange(40)}
    run = replace(run, rows=(replace(row, arrays=arrays),))
    path = written((run, diagnose(replace(run, rows=()), None)), tmp_path)
    assert path.stat().st_size < 25e6


def test_percentiles_of_one_pair_are_those_of_its_messages(tmp_path):
    """Of an imported file with one pair there is no distribution over pairs, and so no picture of it."""
    run = bench_run("latency", samples=np.repeat([1e-6, 3.8e-6], [97, 3]))
    row = run.rows[0]
    arrays = {**row.arrays, "count": np.array([[[100]], [[0]]], np.uint32)}
    arrays |= {name: np.where(arrays["count"], arrays[name], np.nan) for name in arrays if name.startswith("time_")}
    run = replace(run, rows=(replace(row, arrays=arrays),))
    source = readable(written((run, diagnose(run, None)), tmp_path).read_text())
    assert ">P99 of messages<" in source and ">3.80 us<" in source
    assert "Distribution over" not in source and ">worst<" not in source


def test_a_simulated_run_has_no_date_no_retest_and_no_dictionaries(tmp_path):
    source = readable(written(fault_case(), tmp_path).read_text())
    assert PINNED["host h13 tx: bandwidth -31"] in source
    for words in ("1970", "fablint retest", "bandwidth_factor"):
        assert words not in source.partition('id="data"')[0]


def test_coverage_counts_all_pairs_of_the_fabric(tmp_path):
    assert pairs_words(98_304, 4096) == PINNED["98,304 of 16,773,120 ordered"]
    source = readable(written(sparse_case(), tmp_path).read_text())
    assert "of 4,032 ordered pairs (" in source


def test_links_that_are_not_judged_in_one_measure_are_counted_beside_it():
    _, diagnosis = healthy_case()
    hidden = seen.hidden_loss(bound=1.0, quantity="bandwidth", limit=0.1)
    found = finding_cases.finding(State.NOT_JUDGED, "link", "s3>s1").model_copy(update={"evidence": (hidden,)})
    verdict = diagnosis.verdict
    coverage = verdict.coverage.model_copy(update={"links": 56, "links_judged": 56})
    verdict = verdict.model_copy(update={"findings": (found,), "coverage": coverage})
    assert links_judged(verdict) == PINNED["56 of 56 links, 1 of them"]
    assert links_judged(verdict.model_copy(update={"findings": ()})) == "56 of 56 links"
    assert links_judged(diagnosis.verdict) == ""


def test_a_figure_and_its_unit_stay_on_one_line(tmp_path):
    source = html.unescape(written(fault_case(), tmp_path).read_text())
    body = source[source.index("<body") : source.index("<script")]
    assert re.search(r"\d\N{NO-BREAK SPACE}GB/s", body)
    assert re.search(r"\d\N{NO-BREAK SPACE}%", body)
    assert not re.findall(r"\d (?:%|GB/s|us)(?!\w)", re.sub(r"<svg.*?</svg>", "", body, flags=re.DOTALL))
