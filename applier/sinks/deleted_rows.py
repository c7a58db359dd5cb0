"""Whether a DELETE has found the rows that it must find."""

from applier.model.errors import RowRefused
from applier.model.remedy import Remedy
from applier.planner.statement import Statement


def check_deleted(statement: Statement, rows: int) -> None:
    """Raise RowRefused unless a statement that deletes whole rows has deleted as many as upstream."""
    # An error, and not a count: upstream had the row, so the sink has lost it or holds another version of it.
    if statement.deletes_exactly and rows != statement.rows:
        raise RowRefused(
            "the sink's table has no key, and it lacks a row that upstream has deleted",
            remedy=Remedy(
                "sink.compare-keyless-table",
                "Compare the table with upstream's. Without a key, upstream must send old values "
                "(output-old-value = true of a changefeed, binlog_row_image = FULL of a server)",
            ),
            table=statement.table,
            min_ts=statement.min_ts,
            max_ts=statement.max_ts,
        )
