"""Size of the report's page, how soon a reader sees its verdict and its map, and frames per second while the map moves.

    python benchmarks/pages/page_opening.py --pages FOLDER [--case 64,1024] [--repetitions 7]

Pages of simulated runs are written to FOLDER by the command line, as a user writes them, and used again by the next
start of this program; so is the page of all pairs of 16,384 hosts that `analyse_scale.py --case matrix --pages
FOLDER` has written (`--case matrix`). Each repetition starts a browser with a new profile, as in a reader's first
visit. Times count from the start of the navigation: to the load event, to the first frame that shows the verdict, and
to the first frame that shows the map (the task after the `requestAnimationFrame` after the change). The map is then
dragged for a second as a mouse does, at twice its size and zoomed until cells have figures; frames are those in which
the browser called back, late ones those without one at the display's next turn. On a machine that other programs use,
`chrt -r 10` before `python` gives the browser its turn first; write FOLDER before, without it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

sys.path.append(str(Path(__file__).parents[2] / "tests" / "report"))
import itertools

from browser import CHROMIUM, OPTIONS

FABLINT = Path(sys.executable).with_name("fablint")
# Faults as random:K: a page with findings has more to show than a healthy one.
CASES = {
    "4": ("--host-count", "4", "--full"),
    "64": ("--host-count", "64", "--full", "--fault", "random:5"),
    "1024": ("--host-count", "1024", "--full", "--fault", "random:5"),
    "4096": ("--host-count", "4096", "--fault", "random:5"),
    "16384": ("--host-count", "16384", "--fault", "random:5"),
    "65536": ("--host-count", "65536", "--fault", "random:5"),
}
MEASURE = """
(() => {
  const seen = window.seen = {};
  const painted = (name) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { seen[name] = performance.now(); };
    port2.postMessage("after the frame");
  });
  const observer = new MutationObserver(() => {
    if (!("verdict" in seen) && document.querySelector(".verdict .note, nav")) { seen.verdict = 0; painted("verdict"); }
    if (document.documentElement?.dataset.ready) { observer.disconnect(); painted("map"); }
  });
  observer.observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-ready"] });
})();
"""
COUNT_FRAMES = """
() => {
  const frames = window.frames_seen = [];
  const next = (now) => { frames.push(now); if (window.frames_seen === frames) requestAnimationFrame(next); };
  requestAnimationFrame(next);
}
"""
PAN_SECONDS = 1.0
ZOOMS = {"at twice its size": 1, "with figures": 12}  # clicks on "Zoom in"
LATE_MS = 25.0  # between two frames: one of 60 per second was left out


@dataclass(frozen=True)
class Opening:
    """One visit to a page: milliseconds since its navigation started, and milliseconds between frames while panning."""

    load: float
    verdict: float
    drawn: float
    frames: dict[str, list[float]]


def written(name: str, folder: Path) -> Path:
    """The page of a case; its run is simulated and judged where the page is missing."""
    page, run = folder / f"{name}.html", folder / f"{name}.run"
    if not page.exists():
        if name not in CASES:
            sys.exit(f"{page} does not exist, and only pages of {', '.join(CASES)} are made here")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([FABLINT, "-q", "simulate", *CASES[name], "-o", run], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run([FABLINT, "-q", "report", run, "-o", page], stdout=subprocess.DEVNULL)
        if not page.exists():
            sys.exit(f"no page of {name} hosts: fablint report ended with {done.returncode}")
    return page


def visited(path: Path) -> Opening:
    """Open a page in a browser of its own, and move its map."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.add_init_script(MEASURE)
        page.goto(path.as_uri())
        page.wait_for_function("() => window.seen.map > 0 || document.documentElement.dataset.error")
        error = page.evaluate("document.documentElement.dataset.error")
        if error:
            sys.exit(f"{path}: {error}")
        seen = page.evaluate("({ ...seen, load: performance.getEntriesByType('navigation')[0].loadEventEnd })")
        page.locator("#canvas").scroll_into_view_if_needed()
        frames = {zoom: panned(page, clicks) for zoom, clicks in ZOOMS.items()}
        browser.close()
        return Opening(seen["load"], seen["verdict"], seen["map"], frames)


def panned(page: Page, clicks: int) -> list[float]:
    """Milliseconds between the frames of a second in which the map is dragged to and fro, after zooming in."""
    page.click("#zoom-fit")
    for _ in range(clicks):
        page.click("#zoom-in")
    page.locator("#canvas").scroll_into_view_if_needed()
    box: Any = page.locator("#canvas").bounding_box()
    x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(COUNT_FRAMES)
    end, step = time.monotonic() + PAN_SECONDS, 0
    while time.monotonic() < end:
        offset = 4 * abs(step % 80 - 40)
        page.mouse.move(x - offset, y - offset)
        step += 1
    stamps: list[float] = page.evaluate(
        "(() => { const seen = frames_seen; window.frames_seen = null; return seen; })()"
    )
    page.mouse.up()
    return [after - before for before, after in itertools.pairwise(stamps)]


def spread(values: Sequence[float]) -> str:
    """Median, fastest and slowest."""
    return f"{statistics.median(values):6.0f} [{min(values):4.0f}, {max(values):5.0f}]"


def line_of(name: str, page: Path, visits: Sequence[Opening]) -> str:
    """The figures of a case."""
    columns = [f"{name:>6}", f"{page.stat().st_size / 1e6:6.2f} MB"]
    columns += [spread([getattr(one, which) for one in visits]) for which in ("load", "verdict", "drawn")]
    for zoom in ZOOMS:
        gaps = [gap for one in visits for gap in one.frames[zoom]]
        late = sum(gap > LATE_MS for gap in gaps) / len(gaps)
        columns.append(f"{1000 / statistics.mean(gaps):5.1f}/s, {100 * late:2.0f} % late, {max(gaps):4.0f} ms")
    return "  ".join(columns)


def main(arguments: Sequence[str] | None = None) -> None:
    """Pages first, then visits in turns, so that a disturbance of the machine affects all pages equally."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--case", default=",".join(CASES), help=f"of {', '.join(CASES)}")
    options.add_argument("--repetitions", type=int, default=7)
    options.add_argument("--pages", type=Path, required=True, help="folder of the runs and pages")
    chosen = options.parse_args(arguments)
    names = chosen.case.split(",")
    pages = {name: written(name, chosen.pages) for name in names}
    visits: dict[str, list[Opening]] = {name: [] for name in names}
    for _ in range(chosen.repetitions):
        for name, page in pages.items():
            visits[name].append(visited(page))
    print(
        f"{'hosts':>6}  {'page':>9}  " + "  ".join(f"{what:<21}" for what in ("load (ms)", "verdict (ms)", "map (ms)")),
        end="",
    )
    print("  " + "  ".join(f"{'frames ' + zoom:<27}" for zoom in ZOOMS))
    for name, page in pages.items():
        print(line_of(name, page, visits[name]), flush=True)


if __name__ == "__main__":
    main()
