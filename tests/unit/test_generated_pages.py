"""The generated pages of ``docs/`` are those that the code makes now (``make docs-pages``)."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("pages", ROOT / ".ci" / "pages.py")
PAGES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(PAGES)


@pytest.mark.parametrize("name", PAGES.PAGES)
def test_a_page_is_what_the_code_makes(name):
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES.PAGES[name](), "run: make docs-pages"
