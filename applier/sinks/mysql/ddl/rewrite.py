"""Makes the statement that the sink runs from a DDL of upstream. Pure.

Everything that sends a DDL's text to a server, or looks for it there, takes it from here. So the text that runs, the text that a dead run's
session still executes, and the text that makes a scratch table are the same.
"""

from applier.ddl.clause_rewriting import without_ignored_clauses
from applier.ddl.collation import with_tidb_collations
from applier.ddl.comment import as_tidb_reads
from applier.model.events import DdlEvent
from applier.sinks.mysql.ddl.spelling import NOTHING, Spellings, respelled


def sink_statement(ddl: DdlEvent, spelled: Spellings = NOTHING) -> str:
    """Return the statement that the sink runs. ``spelled``: its names as the sink spells them, as far as they exist."""
    statement = with_tidb_collations(without_ignored_clauses(as_tidb_reads(ddl.query), ddl.ddl_type))
    return respelled(statement, ddl, spelled)
