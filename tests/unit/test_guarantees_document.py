"""docs/guarantees.md: every number has its line, and every test that it names exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([SD]\d+) \| (.+) \|$", TEXT, re.MULTILINE)
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", TEXT)))
WITHOUT_TEST = re.compile(r"\bdoes not apply: \w+", re.IGNORECASE)


@cache
def functions_of(path):
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_named_test_exists(path, name):
    assert (name in functions_of(path)) if name else functions_of(path)


@pytest.mark.parametrize(("letter", "count"), [("S", 24), ("D", 42)])
def test_every_number_has_its_line_in_order(letter, count):
    assert [number for number, _ in ROWS if number.startswith(letter)] == [f"{letter}{place}" for place in range(1, count + 1)]


@pytest.mark.parametrize(("number", "line"), ROWS, ids=[number for number, _ in ROWS])
def test_a_line_names_a_test_or_says_why_there_is_none(number, line):
    assert ".py" in line or WITHOUT_TEST.search(line)


@pytest.mark.parametrize("number", range(1, 25))
def test_a_scenario_has_its_number_in_the_name_of_a_test_that_its_line_names(number):
    line = dict(ROWS)[f"S{number}"]
    names = [name for path, one in re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", line) for name in ([one] if one else functions_of(path))]
    assert any(f"_s{number}_" in name for name in names)


@pytest.mark.parametrize("line", re.findall(r"^\| [^|]+ \| [^|]+ \|$", TEXT.partition("## Founding documents")[2], re.MULTILINE))
def test_a_sentence_of_the_documents_names_a_test_or_says_why_there_is_none(line):
    if not line.startswith(("| sentence", "|---")):
        assert ".py" in line or WITHOUT_TEST.search(line)
