"""Reads the named statements of a file of ``sql/``. One begins with ``-- name: purpose`` and ends with ``;``."""

import re
from typing import Any

from sqlalchemy import BindParameter, TextClause, bindparam, text

from applier.database.carried_files import read_text

_NAMED = re.compile(r"^-- (?P<name>\w+): .+\n(?P<body>[^;]+);", re.MULTILINE)
_LISTED = re.compile(r"\bIN :(\w+)")


def read_statements(file: str) -> dict[str, str]:
    """Return the statements of a carried file by name."""
    return {match["name"]: match["body"].strip() for match in _NAMED.finditer(read_text(file))}


def clause(statement: str) -> TextClause:
    """Return a statement for SQLAlchemy. Values are bound as ``:name``; one after IN takes a list."""
    lists: list[BindParameter[Any]] = [bindparam(name, expanding=True) for name in _LISTED.findall(statement)]
    return text(statement).bindparams(*lists)
