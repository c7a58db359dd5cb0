"""What the sink's table shows of generated columns, for a DDL; and which DDLs stop because of them (``applier.ddl.generated``)."""

from typing import Any, Final

from sqlalchemy import Connection

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.generated import Known, defines_generated, keyed_virtual, makes_unique_of_expression, unknown_values
from applier.ddl.remedy import PLAIN_COLUMN
from applier.ddl.target import Target
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.remedy import Remedy
from applier.mysql.names import spellings
from applier.sinks.mysql.catalogue import holds_row
from applier.sinks.mysql.structure.generated import known_columns

NO_INDEX: Final = Remedy(
    "mysql.change-without-index",
    "Make the same change in the sink by hand, without the index or key. Then skip the DDL with `applier ddl skip --ts … --table …`",
)

_ALTERS: Final = frozenset({DdlKind.ALTER_TABLE, DdlKind.CREATE_INDEX})
"""Other statements define no column or index of an existing table, and need not wait for the catalogue (3 ms)."""


def known_to(connection: Connection, ddl: DdlEvent) -> Known:
    """Return the columns of the DDL's table, if the statement's text depends on them."""
    depends = defines_generated(ddl.query) or makes_unique_of_expression(ddl.query)
    return _known(connection, ddl)[0] if depends else {}


def refuse_generated(connection: Connection, ddl: DdlEvent, target: Target) -> None:
    """Raise NeedsOperator if the sink would have to compute values that only upstream knows."""
    known, actual = _known(connection, ddl)
    facts: dict[str, Any] = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
    if column := keyed_virtual(ddl.query, target, known):
        message = "an index or key depends on a VIRTUAL column, of which the sink would compute other values than upstream"
        raise NeedsOperator(message, remedy=NO_INDEX, column=column, **facts)
    column = unknown_values(ddl.query, target, known) if actual is not None else ""
    if column and actual is not None and holds_row(connection, actual):
        message = "the DDL gives old rows values of a STORED column, which only upstream can compute"
        raise NeedsOperator(message, remedy=PLAIN_COLUMN, column=column, **facts)


def _known(connection: Connection, ddl: DdlEvent) -> tuple[Known, TableName | None]:
    statement = parse_ddl(ddl)
    if statement is None or statement.kind not in _ALTERS or not statement.needs:
        return {}, None
    name = statement.needs[0]
    actual = spellings(connection, [name]).get(name.fold())
    return ({}, None) if actual is None else (known_columns(connection, [actual]).get(actual.fold(), {}), actual)
