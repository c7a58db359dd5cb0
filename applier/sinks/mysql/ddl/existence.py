"""DDLs whose result is that something exists, or that nothing is left: a look at the names decides."""

from typing import Final

from sqlalchemy import Connection

from applier.ddl import DdlKind, DdlStatement
from applier.mysql.names import schema_spelling, spellings

DROPS: Final = frozenset({DdlKind.DROP_TABLE, DdlKind.DROP_VIEW, DdlKind.DROP_SCHEMA})
SCHEMAS: Final = frozenset({DdlKind.CREATE_SCHEMA, DdlKind.DROP_SCHEMA})


def has_existence(connection: Connection, statement: DdlStatement) -> bool:
    """Return whether the schema of a CREATE exists, or everything that a DROP names is gone."""
    if statement.kind in DROPS and not statement.schema:
        return not spellings(connection, statement.drops)
    return (schema_spelling(connection, statement.schema) is None) == (statement.kind is DdlKind.DROP_SCHEMA)
