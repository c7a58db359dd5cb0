"""Nothing outside of a database's folder asks which database a sink is: it asks the kit. The registry names the folders."""

import ast
import re
from pathlib import Path

import pytest

APPLIER = Path(__file__).parents[3] / "applier"
DATABASE = re.compile("mysql|mariadb|sqlite", re.IGNORECASE)
FOLDERS = ("sinks/mysql/", "sinks/sqlite/")
OF_UPSTREAM = ("mysql/", "sources/", "upstream/", "ddl/", "demo/")
"""The client of the MySQL family and what reads upstream, which is of that family; the demo's own oracles."""
EXCEPTIONS = {
    "sinks/registry.py": "names the databases",
    "check/primary.py": "examines upstream's server",
    "verify/mysql_reader.py": "the reader that MySQL's kit names",
    "verify/mysql_tables.py": "a part of that reader",
    "verify/sqlite_reader.py": "the reader that SQLite's kit names",
    "verify/sqlite_text.py": "a part of that reader",
    "verify/value.py": "the form of a FLOAT, which SQLite's reader shares with the repair",
    "dump/row_session.py": "the loader that MySQL's kit names",
    "dump/target_tables.py": "a part of that loader",
    "dump/file_rows.py": "the loader that SQLite's kit names",
    "dump/file_target.py": "a part of that loader",
    "dump/file_value.py": "a part of that loader",
}


def choices(tree):
    """Yield what a module knows of one database: imports of its folder, and comparisons with its name."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if re.match(r"applier\.sinks\.(mysql|sqlite)\b", module):
                yield module
            case ast.Attribute(attr="drivername" | "is_mysql" | "is_sqlite" as asked):
                yield asked
            case ast.Compare():
                yield from named(node)
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith" | "match" | "fullmatch")):
                yield from named(node)


def named(node):
    texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))
    return [text for text in texts if DATABASE.search(text)]


def found():
    for path in sorted(APPLIER.rglob("*.py")):
        name = str(path.relative_to(APPLIER))
        if not name.startswith((*FOLDERS, *OF_UPSTREAM)) and (what := list(choices(ast.parse(path.read_text(encoding="utf-8"))))):
            yield name, what


def test_no_module_asks_which_database_a_sink_is():
    assert {name: what for name, what in found() if name not in EXCEPTIONS} == {}


def test_every_exception_is_needed():
    assert set(EXCEPTIONS) - {name for name, _ in found()} == set()


@pytest.mark.parametrize("code", ["url.drivername", "x == 'sqlite'", "u.startswith('mysql+')", "from applier.sinks.sqlite import sink"])
def test_such_a_question_is_seen(code):
    assert list(choices(ast.parse(code)))
