"""The register of remedies equals the code, and names tests that are there."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.remedies.finder import remedies
from tests.remedies.register import NOT_WALKED, read_register

ROOT = Path(__file__).parents[2]


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


AREA_AND_NAME = re.compile(r"[a-z]+(-[a-z]+)*\.[a-z0-9]+(-[a-z0-9]+)*")


def test_every_remedy_has_a_literal_identifier():
    assert [found for found in remedies() if not AREA_AND_NAME.fullmatch(found.id) or not found.text] == []


def test_an_identifier_names_one_remedy():
    seen = Counter(found.id for found in remedies())
    assert [name for name, times in seen.items() if times > 1] == []


def test_every_remedy_of_the_code_is_in_the_register():
    registered = {entry.id for entry in read_register()}
    assert [f'{found.id} = {{ walk = "tests/remedies/…::test_…" }}' for found in remedies() if found.id not in registered] == []


def test_the_register_names_no_remedy_that_the_code_does_not_have():
    known = {found.id for found in remedies()}
    assert [entry.id for entry in read_register() if entry.id not in known] == []


DROPPED = re.compile(r"\bdrop (?!the (?:index|view|check|foreign keys)|TRIGGER|INDEX)", re.IGNORECASE)
"""Advice to drop something that is not named as one of the objects that hold no rows."""
COMMANDS = re.compile(r"`[^`]*`")


def test_no_remedy_advises_to_drop_a_table_or_a_column():
    assert [found for found in remedies() if DROPPED.search(COMMANDS.sub("", found.text))] == []


def test_every_test_that_the_register_names_is_there():
    named = [entry.text.partition("[")[0].split("::") for entry in read_register() if entry.kind != NOT_WALKED]
    assert [name for name in named if len(name) != 2 or name[1] not in functions_of(name[0])] == []
