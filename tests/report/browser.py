"""A headless Chromium, for tests that ask what a page really does."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
    "--window-size=1280,2000",
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")


def acted(page: Path, script: str) -> Path:
    """A copy of the page in which a script acts as its reader does, once the page is ready.

    The body of an async function: what it returns is the attribute `data-said` of the document, as JSON. The copy
    has no policy, which would refuse the script.
    """
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    waits = """
const root = document.documentElement, later = () => new Promise((go) => setTimeout(go, 20));
const until = async (test) => { while (!test()) await later(); };
const said = async () => { await until(() => root.dataset.ready); %s };
said().then((value) => { root.dataset.said = JSON.stringify(value); })
  .catch((error) => { root.dataset.error = String(error); });
"""
    copy = page.with_name("acted.html")
    source = policy.sub("", page.read_text()).replace("</body>", f"<script>{waits % script}</script></body>")
    copy.write_text(source)
    return copy


def dom(page: Path, profile: Path, address: str = "") -> str:
    """The page's DOM after its script ran; `address` is what follows the file name."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri() + address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
