"""Loads the named statements of ``sql/`` for one database."""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from sqlalchemy import TextClause

from applier.database.named_statements import clause, read_statements
from applier.sinks.settings import SCHEMA

BOOKKEEPING = "sql/queries.sql"

_TABLE = re.compile(r"\bapplier\.(\w+)")
_SCHEMA = re.compile(r"\bapplier\b")
# What SQLite writes differently. It has no schemas, no row locks (BEGIN IMMEDIATE locks the file), and other functions of time.
_SQLITE = (
    (re.compile(r"\s+(FOR UPDATE|LOCK IN SHARE MODE)$"), ""),
    (re.compile(r"UTC_TIMESTAMP\(6\)"), "STRFTIME('%Y-%m-%d %H:%M:%f', 'now')"),
)


@cache
def load_queries(dialect: str, file: str = BOOKKEEPING, schema: str = SCHEMA) -> Mapping[str, TextClause]:
    """Return the statements of ``file`` by name, for ``sqlite`` or for the MySQL family (any other name).

    ``schema`` is where the bookkeeping lies: the prefix of its tables in SQLite. Values are bound as ``:name``; one after IN takes a list.
    """
    # Read from the file once per process: the statements are the same for every replica of a schema.
    placed = {name: _placed(statement, dialect, schema) for name, statement in read_statements(file).items()}
    return MappingProxyType({name: clause(_spell(statement, dialect)) for name, statement in placed.items()})


def _placed(statement: str, dialect: str, schema: str) -> str:
    """Give the bookkeeping's tables their place. A schema of the configuration has letters, digits and _ only."""
    if dialect == "sqlite":
        return _TABLE.sub(rf'"{schema}_\1"', statement)
    return statement if schema == SCHEMA else _SCHEMA.sub(f"`{schema}`", statement)


def _spell(statement: str, dialect: str) -> str:
    if dialect != "sqlite":
        return statement
    for pattern, replacement in _SQLITE:
        statement = pattern.sub(replacement, statement)
    return statement
