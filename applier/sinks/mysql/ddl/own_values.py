"""Refuses a DDL that numbers existing rows, or gives them random values: each server would give them others."""

from sqlalchemy import Connection

from applier.ddl import parse_ddl
from applier.ddl.own_values import OWN_VALUES, own_values
from applier.ddl.remedy import BY_HAND
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.sinks.mysql.catalogue import holds_row
from applier.sinks.mysql.names import spellings


def refuse_own_values(connection: Connection, ddl: DdlEvent) -> None:
    """Raise NeedsOperator if the DDL's table holds rows, and the DDL gives them values that are not upstream's."""
    column, statement = own_values(ddl.query), parse_ddl(ddl)
    if not column or statement is None or not statement.needs:
        return
    actual = spellings(connection, statement.needs[:1]).get(statement.needs[0].fold())
    if actual is not None and holds_row(connection, actual):
        facts = {"column": column, "table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
        raise NeedsOperator(OWN_VALUES, remedy=BY_HAND, **facts)
