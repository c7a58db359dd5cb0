"""Makes the statement that the sink runs from a DDL of upstream. Pure.

Everything that sends a DDL's text to a server, or looks for it there, takes it from here. So the text that runs, the text that a dead run's
session still executes, and the text that makes a scratch table are the same.
"""

from types import MappingProxyType
from typing import Final

from applier.ddl.adaptation import adapted
from applier.ddl.charset import with_latin1_as_utf8, with_tidb_collations
from applier.ddl.clause import in_words_of, without_ignored_clauses
from applier.ddl.generated import Known, in_generated_words_of, without_unportable_uniqueness
from applier.ddl.old_values import with_json_defaults
from applier.ddl.target import UPSTREAM, Target
from applier.ddl.tokens import as_tidb_reads
from applier.model.events import DdlEvent
from applier.sinks.mysql.ddl.spelling import NOTHING, Spellings, respelled

NO_COLUMNS: Final[Known] = MappingProxyType({})


def sink_statement(ddl: DdlEvent, spelled: Spellings = NOTHING, target: Target = UPSTREAM, known: Known = NO_COLUMNS) -> str:
    """Return the statement that the sink runs; '' if it runs none, because it does without what the statement makes.

    ``spelled``: its names as the sink spells them, as far as they exist. ``target``: what the server has.
    ``known``: the columns of an existing table of which the statement changes generated ones, or which it gives a unique index of an
    expression.
    """
    if ddl.is_of_log:
        # A source that says what session a statement had has written out everything else in its text.
        statement = in_words_of(target, ddl.query)
    else:
        as_read = with_json_defaults(as_tidb_reads(ddl.query))
        statement = with_tidb_collations(with_latin1_as_utf8(without_ignored_clauses(as_read, ddl.ddl_type, target)))
    # A STORED column that is a plain one by now has upstream's values, so an index of it may be unique.
    statement = without_unportable_uniqueness(in_generated_words_of(target, statement, known), known)
    return respelled(adapted(statement, target), ddl, spelled)
