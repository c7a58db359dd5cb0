"""docs/architecture.md and the code: the paths exist, the ladder is import-linter's; docs/glossary.md is in order."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`([a-z_]+/(?:[a-z_/]+)?(?:[a-z_]+\.py)?)`", TEXT)) - {"applier/"})
PICTURE = re.findall(r"\b([a-z]+/[a-z_]+)\b", TEXT.partition("## The way of a row")[2].partition("1. ")[0])


@pytest.mark.parametrize("path", PATHS)
def test_every_path_of_the_document_exists(path):
    assert (ROOT / "applier" / path).exists()


@pytest.mark.parametrize("module", PICTURE)
def test_every_module_of_the_picture_exists(module):
    assert (ROOT / "applier" / f"{module}.py").exists()


def test_the_ladder_is_that_of_import_linter():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    ladder = TEXT.partition("## The ladder")[2].split("```")[1]
    assert [re.split(r"\s{2,}", line.strip())[0] for line in ladder.strip().splitlines()] == [
        layer for layer in layers if layer != "submit"
    ]


def test_every_package_has_a_line():
    packages = {path.parent.name for path in (ROOT / "applier").glob("*/__init__.py")}
    assert packages == set(re.findall(r"^\| `([a-z_]+)/` \|", TEXT, re.MULTILINE))


def test_the_glossary_gives_each_word_once_in_alphabetical_order():
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = [row.replace("`", "").casefold() for row in rows[1:]]
    assert words == sorted(set(words))
    assert words[0] == "a, checkpoint, checkpoint_ts"
