"""Nothing outside of a database's folder names a database: a module asks the kit of the sink's. The registry names the folders.

The whole code is read: imports, names and texts. Docstrings and comments are for people.
"""

import ast
import re
from pathlib import Path

import pytest

APPLIER = Path(__file__).parents[3] / "applier"
DATABASE = re.compile("mysql|mariadb|sqlite", re.IGNORECASE)
FOLDERS = ("sinks/mysql/", "sinks/sqlite/")
OF_UPSTREAM = ("mysql/", "sources/", "upstream/", "ddl/", "demo/")
"""The client of the MySQL family and what reads upstream, which is of that family; the demo's own oracles."""
WIRE_TYPE = "mysql_type"
"""The number by which TiCDC and a binlog announce the type of a value."""

UPSTREAM = "names upstream's server, which is of the MySQL family"
HELP = "documentation for people, with the addresses of all databases"
FLOAT = "the numbers of upstream's type FLOAT"
ADVICE = "tells people what they can do in each database"
EXCEPTIONS = {
    "sinks/registry.py": "names the databases",
    "check/primary.py": UPSTREAM,
    "cli/grants.py": UPSTREAM,
    "cli/init.py": UPSTREAM,
    "cli/load.py": UPSTREAM,
    "cli/option.py": UPSTREAM,
    "cli/verify.py": UPSTREAM,
    "config/binlog_source.py": UPSTREAM,
    "config/draft.py": UPSTREAM,
    "config/value.py": UPSTREAM,
    "dataframe/binlog_source.py": UPSTREAM,
    "dataframe/options.py": f"{UPSTREAM}; and a configuration without a sink has an empty file",
    "verify/holding.py": FLOAT,
    "verify/value.py": FLOAT,
    "cli/command_group.py": HELP,
    "cli/main.py": HELP,
    "telemetry/log_event.py": HELP,
    "planner/table_check.py": ADVICE,
    "replica/sink_tables.py": ADVICE,
    "spark/python_check.py": "names the packages that an executor needs",
}


def named(tree):
    """Yield the names of databases that a module has in its code."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if text not in docstrings(tree):
                found = [text]
            case ast.ImportFrom(module=str(module), names=names):
                found = [module, *(each.name for each in names)]
            case ast.Import(names=names):
                found = [each.name for each in names]
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Attribute(attr=name):
                found = [name]
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                found = [name]
            case _:
                continue
        yield from (each for each in found if (DATABASE.search(each) and each != WIRE_TYPE) or each == "drivername")


def docstrings(tree):
    bodies = [node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list)]
    return {each.value.value for body in bodies for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)}


def modules():
    for path in sorted(APPLIER.rglob("*.py")):
        name = path.relative_to(APPLIER).as_posix()
        text = path.read_text(encoding="utf-8")
        if not name.startswith((*FOLDERS, *OF_UPSTREAM)) and (DATABASE.search(text) or "drivername" in text):
            yield name, list(named(ast.parse(text))) + DATABASE.findall(name)


FOUND = {name: what for name, what in modules() if what}


def test_no_module_names_a_database_and_each_exception_is_needed():
    assert {name: what for name, what in FOUND.items() if name not in EXCEPTIONS} == {}
    assert set(EXCEPTIONS) <= set(FOUND)


@pytest.mark.parametrize(
    "code",
    [
        "url.drivername",
        "x == 'sqlite'",
        "u.startswith('mysql+')",
        "from applier.sinks.sqlite import sink",
        "from applier.mysql import session",
        "import sqlite3",
        "is_mariadb = 1",
        "def open_sqlite(): ...",
        "f(mysql=1)",
        "KIND = 'MySQL'",
    ],
)
def test_such_a_name_is_seen(code):
    assert list(named(ast.parse(code)))
