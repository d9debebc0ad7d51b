"""A headless Chromium, driven by Playwright, for tests that ask what a page really does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-component-update", "--disable-sync")


@dataclass(frozen=True)
class Reader:
    """Opens pages as a reader does, each in a window of its own."""

    browser: Browser

    def open(self, path: Path, address: str = "", **window: Any) -> Page:
        """The page after its script ran, without an error and without a request; `address` follows the file name."""
        page = self.browser.new_context(**{"viewport": {"width": 1280, "height": 2000}, **window}).new_page()
        errors: list[str] = []
        requests: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri() + address)
        page.wait_for_selector("html[data-ready], html[data-error]", state="attached")
        assert not errors and page.evaluate("document.documentElement.dataset.error") is None, errors
        assert len(requests) == 1
        return page


@contextmanager
def started() -> Iterator[Reader]:
    """A browser for the tests of a module: starting one takes a second."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield Reader(browser)
        browser.close()
