"""Chromium for the tests of the page: the one of the system, driven by Playwright, without a network of its own."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

AXE = Path(__file__).parents[1] / "data" / "axe" / "axe.min.js"
DESKTOP = {"width": 1180, "height": 900}
PHONE = {"width": 390, "height": 844}
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-proxy-server"]
PATIENCE_MS = 20_000


def chromium():
    """Where Chromium is; None if it is not installed."""
    return os.environ.get("APPLIER_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def browser_at(path):
    """Start one Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser, address, *, size=DESKTOP, dark=False, scale=1):
    """Open the page of ``address`` and wait until it shows a run; yield the tab and what went wrong in it."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", device_scale_factor=scale, bypass_csp=False)
    context.set_default_timeout(PATIENCE_MS)
    tab = context.new_page()
    tab.problems, tab.foreign = [], []
    tab.on("pageerror", lambda error: tab.problems.append(str(error)))
    tab.on("console", lambda message: tab.problems.append(message.text) if is_problem(message) else None)
    tab.on(
        "request", lambda request: tab.foreign.append(request.url) if not request.url.startswith((f"http://{address}/", "data:")) else None
    )
    try:
        tab.goto(f"http://{address}/")
        # The page's policy allows no eval, which Playwright's wait_for_function would use.
        tab.locator("#now:not([data-level=off]) #now-title, #now[data-level=off] #now-detail:not(:empty)").wait_for()
        tab.locator("#ddls li").first.wait_for()
        tab.locator(".uplot").nth(1).wait_for()
        yield tab
    finally:
        context.close()


def is_problem(message):
    """Whether the console says that something is wrong; a server that is away is no defect of the page."""
    return message.type in {"error", "warning"} and "Failed to load resource" not in message.text


def violations(tab):
    """Return what axe finds wrong with the page as it is now."""
    # Evaluated by the debugger: the page's policy allows no script but its own.
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [(each["id"], [node["html"][:200] + str(node["failureSummary"]) for node in each["nodes"]]) for each in found["violations"]]
