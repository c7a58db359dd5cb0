"""Refuses a replica whose progress still lies in the default schema after ``[sink] schema`` was changed.

Without this check the run would begin the replica again, from the first offset, on tables that are far ahead.
"""

from sqlalchemy import Connection, text

from applier.model.errors import NeedsOperator
from applier.model.remedy import Remedy
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.settings import SCHEMA


def refuse_other_schema(connection: Connection, books: Bookkeeping) -> None:
    """Raise NeedsOperator if the replica has progress in the default schema. The caller has seen that ``books`` has none."""
    # A user without privileges on the default schema sees no table there: then this user's progress is not there either.
    default = {"schema_name": SCHEMA, "table_name": "progress"}
    if books.schema == SCHEMA or not connection.execute(text(books.dialect.counts_tables), default).scalar_one():
        return
    left = connection.execute(Bookkeeping(books.name, books.dialect).query("progress_read"), {"name": books.name}).one_or_none()
    if left is not None:
        raise NeedsOperator(
            "the replica's bookkeeping is not in the schema that [sink] schema names",
            remedy=Remedy("bookkeeping.restore-schema-setting", "Set [sink] schema back, or move the tables (`applier docs sink`)"),
            replica=books.name,
            configured=books.schema,
            found_in=SCHEMA,
        )
