"""What a test of a shared server leaves behind is taken away: rows of the bookkeeping, and schemas."""

import re
from collections.abc import Collection
from contextlib import closing
from functools import cache

from pymysql.cursors import Cursor

from applier.database.carried_files import path
from applier.demo.simulator.mysql_text import quote_name
from tests.rig.least_privilege import statements_of
from tests.rig.mysql_oracle import connect

MADE = re.compile(r"CREATE TABLE applier\.(\w+)")
REVISIONS = "schema_version"


def clean_server(url: str, *schemas: str) -> None:
    """Drop ``schemas`` and empty the bookkeeping, so that the next run begins as on a new server that was migrated.

    Making the tables of the bookkeeping takes a second on a busy machine, and emptying them some milliseconds: they are dropped only
    where they are not those of this applier. What tests the making itself drops them: ``drop_bookkeeping``.
    """
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        drop(cursor, schemas)
        forget_replicas(cursor)
        connection.commit()


def drop_bookkeeping(url: str, *schemas: str) -> None:
    """Drop the bookkeeping with ``schemas``: the next run makes its tables."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        drop(cursor, ["applier", *schemas])


def drop(cursor: Cursor, schemas: Collection[str]) -> None:
    """Drop schemas, if they are there."""
    for schema in schemas:
        cursor.execute(f"DROP DATABASE IF EXISTS {quote_name(schema)}")


def forget_replicas(cursor: Cursor) -> None:
    """Empty the bookkeeping's tables; drop them if they are not exactly those of this applier."""
    if not _is_current(cursor):
        drop(cursor, ["applier"])
        return
    for table in _tables() - {REVISIONS}:
        cursor.execute(f"DELETE FROM applier.{table}")


def _is_current(cursor: Cursor) -> bool:
    cursor.execute("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'applier'")
    if {name for (name,) in cursor.fetchall()} != _tables():
        return False
    cursor.execute(f"SELECT version_num FROM applier.{REVISIONS}")
    return [number for (number,) in cursor.fetchall()] == [_newest()]


@cache
def _tables() -> frozenset[str]:
    return frozenset(MADE.findall("\n".join(statements_of("schema.sql"))))


@cache
def _newest() -> str:
    with path("migrations") as directory:
        return max(file.name[:4] for file in (directory / "versions").glob("[0-9]*.py"))
