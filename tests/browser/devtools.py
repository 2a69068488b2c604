"""The system's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Error, Page, sync_playwright

PATIENCE = 60.0
"""Seconds until the client gives up on a page that does not come to a state."""


def find_browser() -> str | None:
    """Return the path of a Chromium on this machine, or None; ``ONNXSPEC_BROWSER`` overrides the search."""
    names = (os.environ.get("ONNXSPEC_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def started(path: str) -> Iterator[Browser]:
    """Start the browser at a path, and close it at the end."""
    # In a container, root cannot start Chromium's sandbox; the pages are our own.
    options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=path, args=options) as chromium:
        yield Browser(chromium)


class Browser:
    """Browser with one page; ``complaints`` and ``requests`` are those since the page was opened."""

    page: Page

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Open an empty window of this size in pixels, with the light theme."""
        for context in self._chromium.contexts:
            context.close()
        viewport: Any = {"width": width, "height": height}
        self.page = self._chromium.new_context(viewport=viewport, is_mobile=phone, color_scheme="light").new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def js(self, expression: str) -> Any:
        """Evaluate an expression in the page and return its awaited value."""
        return self.page.evaluate(expression)

    def open(self, url: str) -> float:
        """Open an address in an empty window and return the seconds until the page is drawn. Clear earlier events."""
        self.page.goto("about:blank")
        self.complaints.clear()
        self.requests.clear()
        start = time.monotonic()
        self.page.goto(url)
        self.settle()
        return time.monotonic() - start

    def settle(self, condition: str = "true") -> None:
        """Wait until a condition holds in the page and its effects are drawn."""
        # Playwright's own waiting evaluates a string in the page, which the page's policy forbids.
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(Error):  # no page exists between two pages
                if self.js(condition):
                    break
            assert time.monotonic() < deadline, f"never came true: {condition}"
            self.page.wait_for_timeout(20)
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def key(self, name: str) -> None:
        """Press a key."""
        self.page.keyboard.press(name)

    def click(self, selector: str) -> None:
        """Click with the mouse on the first element that matches a selector."""
        self.page.locator(selector).first.click()
        self.settle()
