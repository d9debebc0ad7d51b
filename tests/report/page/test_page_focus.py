"""The page from a finding to the map and back, its node sets, the order of damage, and its two columns."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from browser import needs_chromium
from report_cases import readable

from fablint.analyse import diagnose
from fablint.report import write_html
from fablint.simulate import Fault, fat_tree, simulate
from finding_cases import ref

pytestmark = needs_chromium
FABRIC = fat_tree(8, 2)
FAULTS = (
    Fault(ref("cable", "leaf2", "spine5"), bandwidth_factor=0.8),
    Fault(ref("host", "h11"), bandwidth_factor=0.7),
    Fault(ref("switch", "leaf6"), bandwidth_factor=0.7),
)
NAMES = ["leaf6", "h11", "leaf2=spine5"]  # in the order of damage
OPAQUE = """([across, down]) => {
  const { view } = window, [sx, sy] = view.scale, context = byId("canvas").getContext("2d");
  const [x, y] = [view.left + (across + 0.5) * sx, view.top + (down + 0.5) * sy];
  return context.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data[3] === 255;
}"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    run = simulate(FABRIC, faults=FAULTS, seed=3)
    path = tmp_path_factory.mktemp("focus") / "index.html"
    write_html(run, diagnose(run, FABRIC.topology), path)
    return path


@pytest.fixture(scope="module")
def page(path, reader):
    return reader.open(path, viewport={"width": 1440, "height": 900})


@pytest.fixture(autouse=True)
def whole(request):
    """Each test begins with all findings."""
    if "page" in request.fixturenames:
        page = request.getfixturevalue("page")
        if page.locator("#all-findings").is_visible():
            page.click("#all-findings")


def article(page, name):
    return page.locator(".findings article", has=page.locator("h2 b", has_text=re.compile(f"^{name}$"))).first


def picture(page):
    return page.evaluate("byId('canvas').toDataURL()")


def test_findings_are_in_the_order_of_damage_with_hosts_pairs_and_figures(page):
    names = page.locator(".findings article.fault h2 > b").all_inner_texts()
    assert names == NAMES
    assert page.locator("article.fault .damage").all_inner_texts() == [
        "8 hosts, 952 pairs",
        "1 host, 126 pairs",
        "8 hosts, 112 pairs",
    ]
    size = page.locator("article.fault .size").nth(1).inner_text()
    assert re.match(r"17\.\d of 24\.\d GB/s \(-(30|29\.\d) %", readable(size))


def test_no_healthy_host_is_in_the_node_set_of_faulty_ones(page):
    buttons = page.locator(".node-sets button")
    assert buttons.all_inner_texts() == ["faulty 1", "affected 16", "healthy 47"]
    shown = []
    for button in buttons.all():
        button.click()
        shown.append(page.inner_text("#node-set"))
    assert shown == ["h11", "h[16-23,48-55]", "h[00-10,12-15,24-47,56-63]"]


def test_the_table_of_hosts_tells_hosts_of_findings_from_those_behind(page):
    page.click("#table-hosts summary")
    table = page.locator("#table-hosts")
    table.locator("select").select_option("marked")
    assert [line.locator("td").first.inner_text() for line in table.locator("tbody tr").all()] == ["h11"]
    table.locator("select").select_option("behind")
    table.get_by_role("button", name="Copy as node set").click()
    assert table.locator("output").inner_text() == "h[16-23,48-55]"
    page.click("#table-hosts summary")


def test_a_finding_under_the_pointer_is_alone_on_the_map_and_in_the_topology(page):
    before = picture(page)
    article(page, "leaf2=spine5").hover()
    assert picture(page) != before
    assert page.locator(".topology.dimmed .link.shown title").all_text_contents() == ["leaf2=spine5"]
    page.mouse.move(5, 5)
    assert picture(page) == before
    assert page.locator(".topology.dimmed").count() == 0


def test_a_click_on_a_finding_zooms_the_map_to_it_and_its_address_opens_the_same_view(page, path, reader):
    article(page, "h11").locator("summary").first.click()
    page.wait_for_function("location.hash === '#finding=2'")
    other = reader.open(path, "#finding=2", viewport={"width": 1440, "height": 900})
    assert other.locator("article.shown h2 b").inner_text() == "h11"
    assert other.locator("article.shown > details").get_attribute("open") is not None
    assert other.locator("#all-findings").is_visible()
    page.mouse.move(5, 5)
    assert picture(other) == picture(page)
    page.click("#all-findings")
    assert page.evaluate("location.hash") == ""


def test_a_component_of_the_topology_and_a_cell_of_the_map_lead_to_the_finding(page):
    page.locator(".topology .link", has=page.locator("title", has_text="leaf2=spine5")).dispatch_event("click")
    page.wait_for_function("location.hash === '#finding=3'")
    assert article(page, "leaf2=spine5").locator("details").first.get_attribute("open") is not None
    page.click("#all-findings")
    box = page.locator("#canvas").bounding_box()
    x, y = page.evaluate("[view.left + 11.5 * view.scale[0], view.top + 40.5 * view.scale[1]]")
    page.mouse.click(box["x"] + x, box["y"] + y)
    assert page.locator("article.pointed h2 b").all_inner_texts() == ["h11"]


def test_single_measurements_outside_of_the_frames_are_faint(page):
    assert page.evaluate(OPAQUE, [11, 40])
    assert not page.evaluate(OPAQUE, [30, 40])


def test_a_wide_window_has_the_map_and_what_belongs_to_it_side_by_side(page):
    canvas = page.locator("#canvas").bounding_box()
    for beside in ("#reading", "#legend", "svg.topology", ".findings"):
        box = page.locator(beside).bounding_box()
        assert box["x"] >= canvas["x"] + canvas["width"]
        assert box["y"] < 900
    assert page.locator("svg.topology").bounding_box()["y"] < page.locator(".findings").bounding_box()["y"]
    assert canvas["width"] > 680
    assert canvas["height"] <= 900


def test_a_small_drawing_has_readable_names_of_findings_only_and_no_two_overlap(page):
    page.set_viewport_size({"width": 1220, "height": 900})
    names = page.locator("svg.topology text").filter(visible=True)
    boxes = [box for name in names.all() if (box := name.bounding_box())]
    written = names.all_text_contents()
    page.set_viewport_size({"width": 1440, "height": 900})
    assert written and set(written) <= set(NAMES)
    assert all(box["height"] >= 12 for box in boxes)
    assert not any(
        a["x"] < b["x"] + b["width"]
        and b["x"] < a["x"] + a["width"]
        and a["y"] < b["y"] + b["height"]
        and b["y"] < a["y"] + a["height"]
        for a, b in combinations(boxes, 2)
    )


def test_a_narrow_window_has_one_column_and_with_several_faults_the_topology_first(page):
    page.set_viewport_size({"width": 390, "height": 844})
    tops = [page.locator(one).bounding_box()["y"] for one in ("svg.topology", ".findings", "#canvas", "#reading")]
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size({"width": 1440, "height": 900})
    assert tops == sorted(tops)
    assert wide <= 390
