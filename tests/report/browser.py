"""A headless Chromium, for tests that ask what a page really does."""

from __future__ import annotations

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


def dom(page: Path, profile: Path, address: str = "") -> str:
    """The page's DOM after its script ran; `address` is what follows the file name."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri() + address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
