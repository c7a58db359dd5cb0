"""A bulk load inside a write transaction: exact, or refused; its rows are sent from memory.

LOCAL turns errors of rows into warnings, and a load reports no row. So everything that a REPLACE would not ignore ends the transaction
with BulkRefused, and the driver repeats the segment by REPLACE, which finds the same fault and can say what is wrong with which row.

A server that answers a statement with the request for a file may ask for any file of this machine, and PyMySQL would send it. So PyMySQL's
own answer stays off (``local_infile=False``: it sends nothing, and raises), and only ``send_load`` answers, with the rows of its own
statement, and only if the server asks for exactly the name in that statement.
"""

import re
from typing import Any, Final, NamedTuple

import pymysql
from pymysql.connections import LoadLocalPacketWrapper, MySQLResult
from pymysql.constants import COMMAND
from sqlalchemy import Connection

from applier.model.errors import BulkRefused, BulkUnavailable, FatalSinkError, Remedy, RowRefused, SinkError
from applier.mysql.errors import ErrorVerdict, code_of, is_database_error, meaning_of, translate
from applier.mysql.queries import QUERIES
from applier.mysql.session import driven
from applier.planner.port import Statement
from applier.sinks.mysql.bulk_load import FILE_NAME
from applier.sinks.mysql.warnings import judge_warnings

PACKET_BYTES: Final = 64 * 1024
_COUNTS: Final = re.compile(rb"Records: (\d+) +Deleted: \d+ +Skipped: (\d+) +Warnings: \d+")


class Loaded(NamedTuple):
    """What the server says about a load: rows that it read and did not skip, None if it does not say; and warnings."""

    rows: int | None
    warnings: int


def takes_loads(connection: Connection) -> bool:
    """Return whether the server takes bulk loads, and is one on which they are proven to be like REPLACE."""
    if "tidb" in str(connection.scalar(QUERIES["version"])).casefold():
        return False
    # Galera commits such a load every 10,000 rows, and with it what the transaction has written before.
    return _is_on(connection, "local_infile") and not _is_on(connection, "load_splitting")


def _is_on(connection: Connection, query: str) -> bool:
    row = connection.execute(QUERIES[query]).one_or_none()
    return row is not None and str(row[1]).casefold() in {"on", "1"}


def send_load(driver: pymysql.Connection, statement: bytes, content: bytes) -> Loaded:
    """Run a bulk load whose rows are ``content``. Errors are the driver's own.

    FatalSinkError: the server asked for another file. Nothing was sent, and the session must be closed.
    """
    driver._execute_command(COMMAND.COM_QUERY, statement)  # noqa: SLF001 - PyMySQL has no other way to answer from memory
    result = _LoadResult(driver, content)
    result.read()
    match = _COUNTS.search(result.message or b"")
    rows = int(match[1]) - int(match[2]) if match else None
    return Loaded(rows, result.warning_count)


class _LoadResult(MySQLResult):  # type: ignore[misc]  # PyMySQL ships no types
    """Reads the answer to a bulk load, and sends the rows when the server asks for them."""

    def __init__(self, driver: object, content: bytes) -> None:
        super().__init__(driver)
        self._content = memoryview(content)

    def _read_load_local_packet(self, first_packet: object) -> None:
        driver, name = self.connection, LoadLocalPacketWrapper(first_packet).filename
        if name != FILE_NAME.encode():
            raise FatalSinkError(
                "the server asked for a file that the applier did not offer; nothing was sent",
                remedy=Remedy(
                    "mysql.check-server-of-url",
                    'Check which server [sink] url reaches: it may be an attacker\'s. Use tls_mode = "verify_identity"',
                ),
                asked_for=name[:200].decode("utf-8", "backslashreplace"),
            )
        for start in range(0, len(self._content), PACKET_BYTES):
            driver.write_packet(self._content[start : start + PACKET_BYTES])
        driver.write_packet(b"")  # the end
        self._read_ok_packet(driver._read_packet())  # noqa: SLF001 - as above


COUNTED_WARNINGS: Final = 65_535
"""The most warnings that a server counts in its answer, and shows. With more, one that matters may be hidden."""


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
