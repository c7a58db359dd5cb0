"""What the sink's server understands of TiDB's DDL (``applier.ddl.target``)."""

import re
from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection, text

from applier.ddl.old_values import MARIADB, MYSQL, TIDB
from applier.ddl.target import MARIADB_COLLATIONS, UPSTREAM, Target
from applier.model.events import TableName
from applier.mysql.session_variables import asked_once, version_of
from applier.sinks.settings import Collations

_COLLATIONS: Final = text("SELECT COLLATION_NAME FROM information_schema.COLLATIONS WHERE COLLATION_NAME LIKE 'utf8mb4\\_0900\\_%'")
_INDEXES: Final = text("SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table")
_NUMBER: Final = re.compile(r"\d+")
_VECTORS, _EXPRESSIONS = (9, 0), (8, 0, 13)
"""Since when MySQL has the type VECTOR, and indexes of expressions."""


def target_of(connection: Connection, collations: Collations = ()) -> Target:
    """Ask the server what it has. ``collations``: the operator's names (``[ddl.collations]``), which come before ours."""
    version = version_of(connection)
    if "tidb" in version:
        return UPSTREAM._replace(collations=dict(collations))
    number = tuple(map(int, _NUMBER.findall(version)[:3]))
    is_mysql = "mariadb" not in version
    known = asked_once(connection, "0900 collations", lambda: {str(name).casefold() for name in connection.scalars(_COLLATIONS)})
    ours = {} if is_mysql else {name: own for name, own in MARIADB_COLLATIONS.items() if name not in known}
    return Target(
        # MariaDB's own VECTOR (11.7) takes bytes and no text.
        has_vectors=is_mysql and number >= _VECTORS,
        has_vector_indexes=False,
        has_expression_indexes=is_mysql and number >= _EXPRESSIONS,
        has_intervals=False,
        has_or_replace=not is_mysql,
        has_generated_keys=is_mysql,
        has_unenforced_checks=is_mysql,
        has_column_visibility=is_mysql,
        has_srid=is_mysql,
        has_periods=not is_mysql,
        keeps_foreign_keys_apart=False,
        collations={**ours, **dict(collations)},
    )


def kind_of(connection: Connection) -> str:
    """Return which kind of server it is: those of one kind convert values alike."""
    version = version_of(connection)
    return TIDB if "tidb" in version else MARIADB if "mariadb" in version else MYSQL


def index_names(connection: Connection, table: TableName) -> Collection[str]:
    """Return the names of a table's indexes, casefolded."""
    found = connection.execute(_INDEXES, {"schema": table.schema, "table": table.table}).scalars()
    return {str(name).casefold() for name in found}
