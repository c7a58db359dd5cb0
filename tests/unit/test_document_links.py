"""Links from the documents to files of the project lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKS = [
    pytest.param(document, link, id=f"{document.name}: {link}")
    for document in DOCUMENTS
    for link in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8"))
    if "://" not in link
]
NAMED = [
    pytest.param(name, id=f"{document.name}: {name}")
    for document in DOCUMENTS
    for name in sorted(set(re.findall(r"`((?:docs|sql|tests|docker)/[\w/.-]+)`", document.read_text(encoding="utf-8"))))
]


@pytest.mark.parametrize(("document", "link"), LINKS)
def test_a_link_leads_to_a_file(document, link):
    assert (document.parent / link).exists()


@pytest.mark.parametrize("name", NAMED)
def test_a_named_file_exists(name):
    assert (ROOT / name).exists()


def test_messages_name_only_sections_that_exist():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "applier").rglob("*.py"))
    text += (ROOT / "applier.example.toml").read_text(encoding="utf-8") + (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r'(README|docs/\w+)(?:\.md)?, "([^"]+)"', text))
    assert named
    for document, section in named:
        path = ROOT / (f"{document}.md" if document != "README" else "README.md")
        assert re.search(rf"^#+ {re.escape(section)}$", path.read_text(encoding="utf-8"), re.MULTILINE), (document, section)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150
