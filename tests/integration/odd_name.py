"""A schema and tables whose names have everything in them that a name can have."""

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.session import driver_of
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings

SCHEMA = "catalogue-täble %s:x"
QUOTED = f"`{SCHEMA}`"


@contextmanager
def odd_schema(url: str) -> Iterator[Connection]:
    """Yield a session of a sink, and drop the schema in the end."""
    connection = open_session(SinkSettings(url=url), Purpose.CONTROL)
    run(connection, f"DROP DATABASE IF EXISTS {QUOTED}")
    run(connection, f"CREATE DATABASE {QUOTED} DEFAULT CHARACTER SET utf8mb4")
    yield connection
    run(connection, f"DROP DATABASE {QUOTED}")
    connection.close()


@contextmanager
def odd_table(session: Connection, test: str) -> Iterator[TableName]:
    """Yield the name of a table for a test, and drop the table in the end."""
    name = TableName(SCHEMA, f"t-{crc32(test.encode())} %d:é")
    yield name
    run(session, f"DROP TABLE IF EXISTS {quoted(name)}")


def quoted(name: TableName) -> str:
    return f"`{name.schema}`.`{name.table}`"


def run(connection: Connection, statement: str) -> None:
    # As DDL runs: with autocommit off, MariaDB's EXCHANGE PARTITION waits for itself.
    connection.commit()
    driver = driver_of(connection)
    driver.autocommit(True)
    with driver.cursor() as cursor:
        cursor.execute(statement)
    driver.autocommit(False)
