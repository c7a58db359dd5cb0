"""Bulk loads on a session: whether the server takes them, and how the rows are sent from memory.

A server that answers a statement with the request for a file may ask for any file of this machine, and PyMySQL would send it. So PyMySQL's
own answer stays off (``local_infile=False``: it sends nothing, and raises), and only ``send_load`` answers, with the rows of its own
statement, and only if the server asks for exactly the name in that statement.
"""

import re
from typing import Final, NamedTuple

import pymysql
from pymysql.connections import LoadLocalPacketWrapper, MySQLResult
from pymysql.constants import COMMAND
from sqlalchemy import Connection

from applier.model.errors import FatalSinkError
from applier.model.remedy import Remedy
from applier.mysql.queries import QUERIES
from applier.sinks.mysql.bulk_load import FILE_NAME

PACKET_BYTES: Final = 64 * 1024
_COUNTS: Final = re.compile(rb"Records: (\d+) +Deleted: \d+ +Skipped: (\d+) +Warnings: \d+")


class Loaded(NamedTuple):
    """What the server says about a load: rows that it read and did not skip, None if it does not say; and warnings."""

    rows: int | None
    warnings: int


def takes_loads(connection: Connection) -> bool:
    """Return whether the server takes bulk loads, and is one of those on which they are proven to be like REPLACE."""
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
