"""What the program says names nothing that a user of the wheel does not have: pages are commands, and exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from applier.cli.docs import anchor_of, page_files, sections_of
from applier.database.carried_files import read_text

ROOT = Path(__file__).parents[2]
FILES = re.compile(r"\b(?:docs|sql|tests|docker|migrations)/\w|\.ci/|README|CHANGELOG|applier\.example\.toml|`make [a-z]")
"""Files of a checkout, and its commands."""
PAGE = re.compile(r"`?applier docs (\w+(?:\.py)?)(?: --section \"([^\"]+)\")?")


def sentences() -> Iterator[tuple[str, str]]:
    """Yield file and text of each string of the package that has words, but docstrings: those are for developers."""
    for path in sorted((ROOT / "applier").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        quiet = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and id(node) not in quiet:
                yield str(path.relative_to(ROOT)), node.value


def test_no_message_names_a_file_that_only_a_checkout_has():
    assert [found for found in sentences() if FILES.search(found[1])] == []


def test_the_pages_and_sections_of_messages_exist():
    named = {match.groups() for _, text in sentences() for match in PAGE.finditer(text)}
    assert named, "remedies lead to pages"
    for page, section in named:
        assert page in page_files(), page
        text = read_text(page_files()[page])
        assert section is None or anchor_of(section) in {anchor_of(found.title) for found in sections_of(text)}, (page, section)
