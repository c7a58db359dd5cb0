"""One Chromium for all tests of the page."""

import pytest

from tests.rig.browser import browser_at, chromium
from tests.rig.server import unavailable


@pytest.fixture(scope="session")
def browser():
    path = chromium()
    if path is None:
        unavailable("no Chromium: install the package chromium, or set APPLIER_TEST_CHROMIUM")
    with browser_at(path) as started:
        yield started
