"""Loads the named statements of ``sql/`` for one database."""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from sqlalchemy import BindParameter, TextClause, bindparam, text

from applier.data import read_text

BOOKKEEPING = "sql/queries.sql"

_NAMED = re.compile(r"^-- (?P<name>\w+): .+\n(?P<body>[^;]+);", re.MULTILINE)
_LISTED = re.compile(r"\bIN :(\w+)")
# What SQLite writes differently. It has no schemas, no row locks, and its own words for the time.
_SQLITE = (
    (re.compile(r"\bapplier\.(\w+)"), r"applier_\1"),
    (re.compile(r"\s+FOR UPDATE$"), ""),
    (re.compile(r"UTC_TIMESTAMP\(6\)"), "STRFTIME('%Y-%m-%d %H:%M:%f', 'now')"),
)


@cache
def load_queries(dialect: str, file: str = BOOKKEEPING) -> Mapping[str, TextClause]:
    """Return the statements of ``file`` by name, for ``sqlite`` or for the MySQL family (any other word).

    Values are bound as ``:name``; one behind IN takes a list.
    """
    found = _NAMED.finditer(read_text(file))
    return MappingProxyType({match["name"]: _clause(_spell(match["body"].strip(), dialect)) for match in found})


def _clause(statement: str) -> TextClause:
    lists: list[BindParameter[Any]] = [bindparam(name, expanding=True) for name in _LISTED.findall(statement)]
    return text(statement).bindparams(*lists)


def _spell(statement: str, dialect: str) -> str:
    if dialect != "sqlite":
        return statement
    for pattern, replacement in _SQLITE:
        statement = pattern.sub(replacement, statement)
    return statement
