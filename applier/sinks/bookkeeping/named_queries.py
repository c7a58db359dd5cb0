"""Loads the named statements of ``sql/`` for one database."""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from sqlalchemy import BindParameter, TextClause, bindparam, text

from applier.sinks.bookkeeping.carried_files import read_text
from applier.sinks.settings import SCHEMA

BOOKKEEPING = "sql/queries.sql"

_TABLE = re.compile(r"\bapplier\.(\w+)")
_SCHEMA = re.compile(r"\bapplier\b")
_NAMED = re.compile(r"^-- (?P<name>\w+): .+\n(?P<body>[^;]+);", re.MULTILINE)
_LISTED = re.compile(r"\bIN :(\w+)")
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
    found = _NAMED.finditer(read_text(file))
    return MappingProxyType({match["name"]: _clause(_spell(_placed(match["body"].strip(), dialect, schema), dialect)) for match in found})


def _placed(statement: str, dialect: str, schema: str) -> str:
    """Give the bookkeeping's tables their place. A schema of the configuration has letters, digits and _ only."""
    if dialect == "sqlite":
        return _TABLE.sub(rf'"{schema}_\1"', statement)
    return statement if schema == SCHEMA else _SCHEMA.sub(f"`{schema}`", statement)


def _clause(statement: str) -> TextClause:
    lists: list[BindParameter[Any]] = [bindparam(name, expanding=True) for name in _LISTED.findall(statement)]
    return text(statement).bindparams(*lists)


def _spell(statement: str, dialect: str) -> str:
    if dialect != "sqlite":
        return statement
    for pattern, replacement in _SQLITE:
        statement = pattern.sub(replacement, statement)
    return statement
