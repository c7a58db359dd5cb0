"""Runs a definition of a dump as the DDL of a stream runs: the same reader, the same rewriting, the same refusals. It has no intent.

A load that fails is begun again from nothing, so an unknown outcome needs no comparison.
"""

from sqlalchemy import Connection, text

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.adaptation import refuse_inexpressible
from applier.model.events import DdlEvent
from applier.mysql.errors import is_database_error, translate
from applier.sinks.bookkeeping.past_ddls import PastDdls
from applier.sinks.mysql.ddl.server import target_of
from applier.sinks.mysql.ddl.statement import run_statement
from applier.sinks.mysql.ddl.upstream_names import with_upstream_names
from applier.sinks.settings import Collations

_HAS_SCHEMA = text("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = :name")


def run_loaded(connection: Connection, past: PastDdls, ddl: DdlEvent, collations: Collations) -> DdlEvent:
    """Run the statement with upstream's names, and return the DDL with them.

    NeedsOperator: the server cannot have what it makes; FatalSinkError: the server refused it, with its words.
    """
    statement, target = parse_ddl(ddl), target_of(connection, collations)
    ddl = with_upstream_names(connection, past, ddl, target)
    refuse_inexpressible(ddl, target)
    # A schema that is there may hold tables of others. Its definition stays, and the tables of a dump name their own.
    is_schema = statement is not None and statement.kind is DdlKind.CREATE_SCHEMA
    if is_schema and statement is not None and connection.execute(_HAS_SCHEMA, {"name": statement.schema}).scalar_one():
        return ddl
    connection.commit()
    try:
        run_statement(connection, ddl, collations)
    except Exception as error:
        if not is_database_error(error):
            raise
        facts = {"table": str(ddl.name), "query": ddl.query}
        raise translate(error, "making what a dump defines", shows_text=True, **facts) from error
    return ddl
