"""The register of remedies equals the code, and names tests that are there."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.remedies.finder import remedies
from tests.remedies.register import NOT_WALKED, line_of, read_register

ROOT = Path(__file__).parents[2]


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_remedy_of_the_code_is_in_the_register():
    registered = {entry.remedy for entry in read_register()}
    assert [line_of(remedy) for remedy in sorted(remedies() - registered)] == []


def test_the_register_names_no_remedy_that_the_code_does_not_have():
    assert sorted(entry.remedy for entry in read_register() if entry.remedy not in remedies()) == []


DROPPED = re.compile(r"\bdrop (?!the (?:index|view|check|foreign keys)|TRIGGER|INDEX)", re.IGNORECASE)
"""Advice to drop something that is not named as one of the objects that hold no rows."""
COMMANDS = re.compile(r"`[^`]*`")


def test_no_remedy_advises_to_drop_a_table_or_a_column():
    advised = {remedy.text for remedy in remedies()} | {entry.remedy.text for entry in read_register()}
    assert sorted(text for text in advised if DROPPED.search(COMMANDS.sub("", text))) == []


def test_every_test_that_the_register_names_is_there():
    named = [entry.text.partition("[")[0].split("::") for entry in read_register() if entry.kind != NOT_WALKED]
    assert [name for name in named if len(name) != 2 or name[1] not in functions_of(name[0])] == []
