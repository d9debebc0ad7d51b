"""Draws the pictures of docs/images that show fablint at work: `.venv/bin/python docs/pictures.py [NAME...]`.

Pages are photographed by a headless Chromium, terminal output is drawn as SVG by rich. All runs are simulated, with a
fixed seed, so that a picture changes only where fablint does. docs/pictures.sha256 has the digest of the page that each
photograph shows: tests/docs/test_pictures.py compares it with the digest of the page that fablint writes now.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from rich.console import Console
from rich.text import Text

IMAGES = Path(__file__).parent / "images"
DIGESTS = Path(__file__).with_suffix(".sha256")
FABLINT = Path(sys.executable).with_name("fablint")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMIUM_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=20000",
)
COLOURS = 128  # of a photograph, which halves its size at least
COLUMNS = 92
# As rich draws a terminal, with a font of the reader's machine instead of one from a server.
TERMINAL_SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font: {char_height}px/{line_height}px ui-monospace, "DejaVu Sans Mono", monospace;
}}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class PagePicture(NamedTuple):
    """Parts of a report page: CSS selectors of the sections that are shown, and of what in them is hidden."""

    run: str
    shown: str
    width: int
    height: int
    hidden: str = "nothing"


class TerminalPicture(NamedTuple):
    """What a command prints on a terminal."""

    run: str
    words: tuple[str, ...]


RUNS = {
    "demo-fabric.run": ("--fabric", "mesh", "--shape", "8x8", "--full", "--fault", "cable:s2=s5:-20%"),
    "night.run": (
        *("--host-count", "1024", "--seed", "3"),
        *("--fault", "host:h0012:tx:-20%", "--fault", "cable:leaf03=spine05:-30%"),
    ),
}
# What the first picture of a report leaves out, so that verdict, finding and map fit on one screen.
FOLDED = "article.ok, .slowest, #slow-pairs, #spikes"
PICTURES: dict[str, PagePicture | TerminalPicture] = {
    "report-page.png": PagePicture("demo-fabric.run", "nav, .verdict, .findings, #matrix-section", 1000, 1240, FOLDED),
    "report-findings.png": PagePicture("night.run", "nav, .verdict, .findings", 1100, 790, "article.ok"),
    "report-map.png": PagePicture("demo-fabric.run", "#matrix-section", 1200, 890),
    "report-rounds.png": PagePicture("night.run", "#matrix-section", 1200, 890),
    "report-topology.png": PagePicture("demo-fabric.run", "[aria-labelledby=topology]", 1200, 270),
    "terminal-analyse.svg": TerminalPicture("demo-fabric.run", ("analyse", "demo-fabric.run")),
}


def simulate(run: str) -> None:
    subprocess.run([FABLINT, "-q", "simulate", *RUNS[run], "-o", run], check=True, stdout=subprocess.DEVNULL)


class _LookOfPage(HTMLParser):
    """What decides how a page looks: style, scripts, kinds of elements, and texts without their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: set[str] = set()
        self._element = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        self._element = "data" if facts.get("id") == "data" else tag
        self.parts.add(f"<{tag} {facts.get('class')}>")

    def handle_endtag(self, tag: str) -> None:
        self._element = ""

    def handle_data(self, data: str) -> None:
        if self._element in ("style", "script"):
            self.parts.add(data)
        elif self._element != "data":
            self.parts.add(re.sub(r"[\d.,]+", "0", " ".join(data.split())))


def page_digest(page: str) -> str:
    """Digest of how a report page looks; another measurement, or one more row of a table, does not change it."""
    look = _LookOfPage()
    look.feed(page)
    return sha256("\n".join(sorted(look.parts)).encode()).hexdigest()


def read_digests() -> dict[str, str]:
    """Digest of the page that each photograph shows, by the name of the picture."""
    return {name: digest for digest, name in map(str.split, DIGESTS.read_text().splitlines())}


def report_page(run: str) -> Path:
    """The report of a run in this folder, written if it is missing."""
    page = Path(run, "report", "index.html")
    if not page.exists():
        subprocess.run([FABLINT, "-q", "report", run], check=False, stdout=subprocess.DEVNULL)
    return page


def draw_page(picture: PagePicture, target: Path) -> None:
    """Photograph a copy of the report that shows these parts only, and record its digest."""
    assert CHROMIUM is not None
    page = report_page(picture.run)
    digests = (read_digests() if DIGESTS.exists() else {}) | {target.name: page_digest(page.read_text())}
    source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    parts = f":not(:is({picture.shown})):not(:has({picture.shown})):not(:is({picture.shown}) *)"
    style = f"<style>main > *{parts}, main > div > *{parts}, {picture.hidden} {{ display: none !important }}</style>"
    copy = page.with_name("photographed.html")
    copy.write_text(source.replace("</head>", f"{style}</head>"))
    size = f"--window-size={picture.width},{picture.height}"
    with tempfile.TemporaryDirectory() as profile:
        options = [f"--user-data-dir={profile}", size, f"--screenshot={target}"]
        subprocess.run(
            [CHROMIUM, *CHROMIUM_OPTIONS, *options, copy.resolve().as_uri()], check=True, capture_output=True
        )
    Image.open(target).convert("RGB").quantize(COLOURS).save(target, optimize=True)
    DIGESTS.write_text("".join(f"{digests[name]}  {name}\n" for name in sorted(digests)))


def printed_on_terminal(words: tuple[str, ...]) -> str:
    """What a command prints on a terminal, with the escape sequences of colours; without progress, which is erased."""
    leader, follower = pty.openpty()
    environ = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    process = subprocess.Popen([FABLINT, "-q", *words], stdout=follower, stderr=follower, stdin=follower, env=environ)
    os.close(follower)
    text = io.BytesIO()
    while block := _read(leader):
        text.write(block)
    process.wait()
    return text.getvalue().decode().replace("\r\n", "\n").rstrip()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux: the last program that had the terminal open has ended
        return b""


def draw_terminal(picture: TerminalPicture, target: Path) -> None:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ fablint {' '.join(picture.words)}", style="bold"))
    console.print(Text.from_ansi(printed_on_terminal(picture.words)))
    svg = console.export_svg(title="fablint", code_format=TERMINAL_SVG, unique_id=target.stem)
    target.write_text(re.sub(r"[ \t]+$", "", svg, flags=re.M))


def main(names: list[str]) -> None:
    draw: dict[type, Callable] = {PagePicture: draw_page, TerminalPicture: draw_terminal}
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for name in names or PICTURES:
            picture = PICTURES[name]
            if not Path(picture.run).exists():
                simulate(picture.run)
            draw[type(picture)](picture, IMAGES / name)
            print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
