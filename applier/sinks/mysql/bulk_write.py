"""A bulk load inside a write transaction: exact, or refused.

LOCAL turns errors of rows into warnings, and a load reports no row. So whatever a REPLACE would not pass over ends the transaction with
BulkRefused, and the driver repeats the segment by REPLACE, which finds the same fault and can say what is wrong with which row.
"""

from typing import Any, Final

from sqlalchemy import Connection

from applier.model.errors import BulkRefused, BulkUnavailable, RowRefused, SinkError
from applier.mysql.errors import ErrorVerdict, code_of, is_database_error, meaning_of, translate
from applier.mysql.session import driven
from applier.planner.statement import Statement
from applier.sinks.mysql.bulk_session import send_load
from applier.sinks.mysql.warnings import judge_warnings

COUNTED_WARNINGS: Final = 65_535
"""What a server counts at most in its answer, and shows at most. Behind so many, one that matters may be hidden."""


def load(connection: Connection, statement: Statement) -> None:
    """Run a bulk load. BulkRefused unless exactly its rows are written, without a warning that is not known to be harmless."""
    facts: dict[str, Any] = {"table": statement.table, "min_ts": statement.min_ts, "max_ts": statement.max_ts}
    try:
        with driven(connection) as driver:
            loaded = send_load(driver, statement.text, statement.data)
    except Exception as error:
        if not is_database_error(error):
            raise
        raise _translated(error, facts) from None
    if loaded.rows != statement.rows:
        raise BulkRefused("a bulk load has not written all of its rows", rows=statement.rows, loaded=loaded.rows, **facts)
    if not loaded.warnings:
        return
    if loaded.warnings >= COUNTED_WARNINGS:
        raise BulkRefused("a bulk load raised more warnings than the server shows", warnings=loaded.warnings, **facts)
    try:
        judge_warnings(connection, statement, loaded.warnings)
    except RowRefused as error:
        raise BulkRefused("a bulk load would have changed a value", **error.facts) from None


def _translated(error: Exception, facts: dict[str, Any]) -> SinkError:
    meaning = meaning_of(error)
    if meaning.verdict in {ErrorVerdict.RETRY, ErrorVerdict.LOST, ErrorVerdict.FULL}:
        return translate(error, "loading rows", **facts)
    # A refused row, or a table that is not as it was, is a matter of this load; anything else would befall the next one too.
    is_of_load = meaning.of_rows or meaning.verdict is ErrorVerdict.ALREADY_SO
    kind = BulkRefused if is_of_load else BulkUnavailable
    return kind("the database refused a bulk load", code=code_of(error), **facts)
