"""The page as a reader uses it, in a real browser: tables, map, keyboard, fingers, dark mode; and without barriers."""

from __future__ import annotations

import csv
import functools
import itertools
from dataclasses import replace
from io import BytesIO

import numpy as np
import pypdf
import pytest
import report_cases
from axe_playwright_python.sync_playwright import Axe
from browser import needs_chromium
from PIL import Image
from playwright.sync_api import Page, expect
from report_cases import fault_case, incomplete_case

from fablint.analyse import diagnose
from fablint.model import Run, State
from fablint.plan.schedule.stratified import stratified_rounds
from fablint.report import write_html
from fablint.simulate import Fault, SimulatedFabric, SimulatedRow, dragonfly, fat_tree
from fablint.simulate.rounds import all_rounds
from fablint.topology.routed_placement import RoutedPlacement
from finding_cases import component, finding
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

pytestmark = needs_chromium
OPACITIES = """() => {
  const { width, height } = byId('canvas'), at = Math.round(0.3 * width);
  const { data } = byId('canvas').getContext('2d').getImageData(at, at, width - at, height - at);
  return [...new Set(data.filter((_, index) => index % 4 === 3))];
}"""
PICTURE = "() => document.getElementById('canvas').toDataURL()"


@functools.cache
def tree(hosts: int) -> tuple[Run, object]:
    """A fabric with a slow host and a slow link; more than 64 hosts in rounds."""
    arity = round(hosts**0.5)
    fabric = fat_tree(arity, 2)
    host, link = f"h{hosts // 2:0{max(2, len(str(hosts - 1)))}d}", "leaf0>spine1" if arity < 11 else "leaf00>spine01"
    faults = (
        Fault(component("host", host), bandwidth_factor=0.6),
        Fault(component("link", link), bandwidth_factor=0.6),
    )
    fabric_run = SimulatedFabric(fabric, faults, seed=3)
    run = fabric_run.measure(all_rounds(hosts)[:: hosts // 12] if hosts > 64 else None)
    return run, diagnose(run, fabric.topology)


def opacities(page: Page) -> set[int]:
    """Opacities of the points of the map, away from its axes."""
    return set(page.evaluate(OPACITIES))


@pytest.fixture
def page(tmp_path, reader):
    """The page of a run of 64 hosts that lacks the pairs of h05."""
    write_html(*incomplete_case(), tmp_path / "index.html")
    return reader.open(tmp_path / "index.html", "#row=latency&size=8&src=5&dst=9")


@pytest.fixture(scope="module")
def many(tmp_path_factory, reader):
    """The page of a run of 64 hosts with eleven findings; tests leave it as they found it."""
    run, diagnosis = fault_case()
    found = [finding(State.FAULT, "host", f"h{host:02d}", quantity="bandwidth", effect=-0.3) for host in range(11)]
    path = tmp_path_factory.mktemp("many") / "index.html"
    write_html(run, report_cases.diagnose(run, diagnosis.topology, "fault", found), path)
    return reader.open(path, viewport={"width": 1280, "height": 900})


def test_of_many_findings_few_are_open_and_the_map_is_one_click_away(many):
    assert many.locator(".findings article").count() == 11
    assert many.locator(".findings article > details[open]").count() == 1
    assert many.locator(".findings > article").count() == 8
    assert many.inner_text(".further > summary") == "3 further findings"
    assert many.locator("#canvas").bounding_box()["y"] < 1400
    shown = many.input_value("#map")
    many.get_by_role("link", name="Pairs and links").click()
    assert many.locator("#matrix").bounding_box()["y"] < 100
    assert many.input_value("#map") == shown
    for address in many.locator("nav a").evaluate_all("all => all.map((one) => one.hash)"):
        assert many.locator(address).is_visible()


def test_all_findings_are_open_on_paper_and_as_before_afterwards(many):
    folded = many.locator(".findings details:not(.slowest):not([open])")
    before = folded.count()
    assert before == 11 - 1 + 1
    many.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folded.count() == 0
    many.evaluate("dispatchEvent(new Event('afterprint'))")
    assert folded.count() == before


def test_a_map_on_paper_says_what_it_shows_and_folded_facts_take_no_line(many):
    many.emulate_media(media="print")
    shown, axes = many.locator("#shown").inner_text(), many.locator("#axes").inner_text()
    hidden = many.locator("#moving, summary:has-text('Every fact')")
    are_hidden = not any(one.is_visible() for one in hidden.all())
    many.emulate_media(media="screen")
    assert shown == f"{many.locator('#map option:checked').inner_text()}; deviation from the model"
    assert PINNED["Down: sending rank; across"].begins(axes)
    assert (hidden.count(), are_hidden) == (2, True)
    assert not many.locator("#shown").is_visible() and many.locator("#moving").is_visible()


def test_the_footer_is_not_alone_on_a_sheet(tmp_path, reader):
    write_html(*tree(4), tmp_path / "index.html")
    page = reader.open(tmp_path / "index.html")
    page.evaluate("document.querySelectorAll('main > :not(section:last-child)').forEach((one) => one.remove())")
    heights = range(320, 520, 10)
    last = [pypdf.PdfReader(BytesIO(page.pdf(width="800px", height=f"{px}px"))).pages[-1] for px in heights]
    assert not any(sheet.extract_text().strip().startswith("MB/s is 10") for sheet in last)


def test_a_cell_of_one_measurement_is_explained_in_a_matrix_of_switches(tmp_path, reader):
    fabric = dragonfly(5, 3, 2)
    rounds = stratified_rounds(RoutedPlacement.on_routes(fabric.hosts, fabric.topology))
    run = SimulatedFabric(fabric, (), seed=3).measure(rounds[:4], (SimulatedRow("latency", (8,), histogram=True),))
    write_html(run, diagnose(run, fabric.topology), tmp_path / "index.html")
    page = reader.open(tmp_path / "index.html", "#row=latency&size=8&kind=switch&mode=residual&x=0&y=1")
    assert PINNED["A single red cell of one"] in page.inner_text("#axes")
    assert 100 not in opacities(page)
    page.select_option("#map", label="latency, 8 B: late messages, switch x switch")
    assert PINNED["Faint: cells of a single"] in page.inner_text("#axes")
    assert 100 in opacities(page)
    page.locator("#canvas").click(position={"x": 100, "y": 130})
    assert "kind=late-switch" in page.url  # the address leads to this map, not to the medians


def test_the_map_is_saved_as_a_picture(many, tmp_path):
    with many.expect_download() as download:
        many.get_by_role("button", name="Save the map as a PNG picture").click()
    assert download.value.suggested_filename == "bandwidth-1-MiB-every-pair.png"
    download.value.save_as(tmp_path / "map.png")
    saved = Image.open(tmp_path / "map.png")
    assert saved.format == "PNG"
    assert list(saved.size) == many.evaluate("(({ width, height }) => [width, height])(byId('canvas'))")
    assert saved.convert("RGB").getpixel((1, 1)) == (255, 255, 255)


def test_hundreds_of_frames_do_not_hide_thin_cells(many):
    marks = """(isThin) => {
        const marks = new Marks([], null);
        marks.list = [1000, 30, 990, 2].map((frames) => ({ frames }));
        marks.frames = (map, mark) => Array(mark.frames);
        return marks.drawn({}, isThin).map((mark) => mark.frames);
    }"""
    assert many.evaluate(marks, True) == [1000, 30, 2]  # the gravest, and those of few frames
    assert many.evaluate(marks, False) == [1000, 30, 990, 2]


def test_frames_join_cells_along_lines_and_below_each_other(many):
    frames = many.evaluate("new Marks([], null).joined({ width: 4 }, new Set([15, 5, 0, 1, 4, 7, 12]))")
    assert sorted(frames) == [[0, 0, 2, 2], [0, 3, 1, 4], [3, 1, 4, 2], [3, 3, 4, 4]]


def test_a_change_of_nothing_has_no_minus_sign(many):
    changes = many.evaluate("[-0.0002, -0.001, 0.3].map((effect) => changeOf({ rate: false }, effect))")
    assert changes == ["0.0 %", "-0.1 %", "+35 %"]


def table(page, name):
    """A complete table, opened: its heads, its lines, its buttons."""
    page.click(f"#table-{name} summary")
    page.wait_for_selector(f"#table-{name} tbody tr")
    return page.locator(f"#table-{name}")


def column(found, index):
    return [line.locator("td").nth(index).inner_text() for line in found.locator("tbody tr").all()]


def test_a_table_is_sorted_by_a_click_on_a_head(page):
    found = table(page, "hosts")
    found.get_by_role("button", name="host", exact=True).click()
    assert found.locator("th").first.get_attribute("aria-sort") == "ascending"
    names = column(found, 0)
    assert names == sorted(names)
    found.get_by_role("button", name="host", exact=True).click()
    assert column(found, 0) == names[::-1]


def test_one_search_finds_lines_in_all_tables_and_their_hosts_are_copied_as_a_node_set(page):
    found = table(page, "hosts")
    page.get_by_role("searchbox").fill("s3")
    expect(page.locator("#table-switches tbody tr")).to_have_count(1)
    assert column(page.locator("#table-switches"), 1) == ["s3"]
    assert sorted(column(found, 0)) == [f"h{host}" for host in range(24, 32)]
    found.get_by_role("button", name="Copy as node set").click()
    assert found.locator("output").inner_text() == "h[24-31]"


def test_a_table_is_saved_as_csv_with_all_lines(page, tmp_path):
    found = table(page, "pairs")
    assert PINNED["100 shown of 2,542 selected"].begins(found.get_by_role("status").inner_text())
    with page.expect_download() as download:
        found.get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "pairs.csv")
    head, *lines = csv.reader((tmp_path / "pairs.csv").read_text().splitlines())
    assert head[:3] == ["from", "to", "measured (seconds)"] and len(lines) == 2542
    assert all(1e-7 < float(line[2]) < 1e-4 for line in lines)


def test_switches_are_ranked_by_their_hosts(tmp_path, reader):
    write_html(*tree(64), tmp_path / "index.html")
    page = reader.open(tmp_path / "index.html")
    found = table(page, "switches")
    found.get_by_role("button", name="its effect").click()
    assert column(found, 1)[0] == "leaf4" and column(found, 5)[0] == "h32"
    assert column(found, 2)[0] == "8" and "FAULT h32" in column(found, 7)[0]


def test_arrow_keys_move_along_a_list_and_enter_points_at_the_map(page):
    found = table(page, "pairs")
    lines = found.locator("tbody tr")
    lines.nth(0).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    assert lines.nth(1).evaluate("line => line === document.activeElement && line.tabIndex === 0")
    assert lines.evaluate_all("lines => lines.filter((line) => line.tabIndex === 0).length") == 1
    page.keyboard.press("Enter")
    src, dst = column(found, 0)[1], column(found, 1)[1]
    page.wait_for_function("words => byId('readout').textContent.startsWith(words)", arg=f"{src} \u2192 {dst}: ")


def test_keys_move_and_zoom_the_map(page):
    assert page.inner_text("#readout") == "h05 \u2192 h09: not measured"
    page.focus("#canvas")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#readout") == "h05 \u2192 h10: not measured"
    before = page.evaluate(PICTURE)
    page.keyboard.press("+")
    assert page.evaluate(PICTURE) != before
    page.keyboard.press("0")
    assert page.evaluate(PICTURE) == before


def fingers(session, kind, *points):
    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})


def test_two_fingers_zoom_the_map_and_one_moves_it(tmp_path, reader):
    write_html(*fault_case(), tmp_path / "index.html")
    page = reader.open(tmp_path / "index.html", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.locator("#canvas").scroll_into_view_if_needed()
    box, session = page.locator("#canvas").bounding_box(), page.context.new_cdp_session(page)
    x, y = box["x"] + 230, box["y"] + 200
    whole = page.evaluate(PICTURE)
    fingers(session, "touchStart", (x - 20, y), (x + 20, y))
    for apart in range(30, 90, 10):
        fingers(session, "touchMove", (x - apart, y), (x + apart, y))
    fingers(session, "touchEnd")
    assert page.evaluate("document.getElementById('canvas').style.touchAction") == "none"
    zoomed, scrolled = page.evaluate(PICTURE), page.evaluate("[scrollY, visualViewport.scale]")
    assert zoomed != whole
    fingers(session, "touchStart", (x, y))
    for step in range(10, 60, 10):
        fingers(session, "touchMove", (x - step, y - step))
    fingers(session, "touchEnd")
    page.evaluate("new Promise(requestAnimationFrame)")
    assert page.evaluate(PICTURE) != zoomed
    assert page.evaluate("[scrollY, visualViewport.scale]") == scrolled


@pytest.mark.parametrize("hosts", [4, 64, pytest.param(1024, marks=pytest.mark.long)])
def test_no_barriers_for_readers_in_light_and_in_dark(hosts, tmp_path, reader):
    write_html(*tree(hosts), tmp_path / "index.html")
    page = reader.open(tmp_path / "index.html", color_scheme="light")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.wait_for_selector("#table-pairs tbody tr")
    for choice in page.locator(".tools select").all():
        choice.select_option("marked")  # fewer lines of the same kind
    page.locator("#facts ~ details dd").evaluate_all("all => all.slice(20).forEach((one) => one.remove())")
    assert barriers(page) == []
    page.emulate_media(color_scheme="dark")
    assert barriers(page, runOnly=["color-contrast"]) == []


def barriers(page, **options):
    """What axe says against a page: rules, and the first elements that break them."""
    found = Axe().run(page, options=options).response["violations"]
    return [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found]


@pytest.mark.parametrize("hosts", [4, 64])
def test_a_phone_needs_no_sideways_scrolling(hosts, tmp_path, reader):
    write_html(*tree(hosts), tmp_path / "index.html")
    page = reader.open(tmp_path / "index.html", viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_table_of_percentiles_fits_on_a_phone(tmp_path, reader):
    samples = np.repeat([1e-6, 3.8e-6], [97, 3])
    run = report_cases.bench_run("latency", samples=samples)
    arrays = {name: array for name, array in run.rows[0].arrays.items() if name not in ("time_min", "time_max")}
    run = replace(run, rows=(replace(run.rows[0], arrays=arrays),))
    write_html(run, report_cases.diagnose(run, None), tmp_path / "index.html")
    page = reader.open(tmp_path / "index.html", viewport={"width": 390, "height": 844})
    assert page.evaluate("[...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth)")


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_labels_of_histograms_do_not_run_into_each_other(many, width):
    """On paper three histograms stand beside each other."""
    many.set_viewport_size({"width": width, "height": 900})
    many.emulate_media(media="print" if width == 800 else "screen")
    boxes = many.evaluate(
        "[...document.querySelectorAll('.histogram .xs')].map((axis) => [...axis.children].map((one) => "
        "one.getBoundingClientRect()).filter((box) => box.width).map((box) => [box.left, box.right, box.height]))"
    )
    many.emulate_media(media="screen")
    many.set_viewport_size({"width": 1280, "height": 900})
    assert len(boxes) > 1
    for axis in boxes:
        assert len(axis) > 2
        assert all(left[1] < right[0] for left, right in itertools.pairwise(axis))
        assert max(box[2] for box in axis) < 20  # a line each
