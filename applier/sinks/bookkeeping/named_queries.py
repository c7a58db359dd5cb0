"""Loads the named statements of the bookkeeping in the words of one database."""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from sqlalchemy import TextClause

from applier.database.named_statements import clause, read_statements
from applier.sinks.bookkeeping.dialect import BookkeepingDialect
from applier.sinks.settings import SCHEMA

BOOKKEEPING = "sql/queries.sql"

_TABLE = re.compile(r"\bapplier\.(\w+)")
_UPSERT = re.compile(r"UPSERT INTO (?P<table>\S+) \((?P<columns>[^)]+)\)\s+KEY \((?P<key>[^)]+)\)\s+VALUES \((?P<values>.+)\)", re.DOTALL)


@cache
def load_queries(dialect: BookkeepingDialect, schema: str = SCHEMA) -> Mapping[str, TextClause]:
    """Return the statements of the bookkeeping in ``schema`` by name. Values are bound as ``:name``; one after IN takes a list."""
    # Read from the file once per process: the statements are the same for every replica of a schema.
    return MappingProxyType({name: clause(_said(text, dialect, schema)) for name, text in read_statements(BOOKKEEPING).items()})


def table_name(dialect: BookkeepingDialect, schema: str, table: str) -> str:
    """Spell the name of a table of the bookkeeping. A schema of the configuration has letters, digits and _ only."""
    if not dialect.has_schemas:
        return f"{dialect.quote}{schema}_{table}{dialect.quote}"
    return f"{schema if schema == SCHEMA else f'{dialect.quote}{schema}{dialect.quote}'}.{table}"


def _said(statement: str, dialect: BookkeepingDialect, schema: str) -> str:
    """Return a statement of the file in the words of the database."""
    said = statement.format(now=dialect.now, for_update=dialect.for_update, for_share=dialect.for_share).rstrip()
    said = _UPSERT.sub(lambda found: _upsert(dialect, found), said)
    return _TABLE.sub(lambda found: table_name(dialect, schema, found[1]), said)


def _upsert(dialect: BookkeepingDialect, found: re.Match[str]) -> str:
    key = found["key"].split(", ")
    changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in found["columns"].replace("\n", " ").split(", ") if name not in key)
    return dialect.upsert.format(**found.groupdict(), changes=changes)
