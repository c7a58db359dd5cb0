"""Names as the sink's server spells them, quoted for statements. Upstream's TiDB ignores the case of names; a server on Linux does not.

Every statement that names an existing table of the sink takes the name from here. Errors of the database come out as SQLAlchemy's.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Final

from sqlalchemy import Connection, TableClause, TextClause, bindparam, quoted_name, text
from sqlalchemy import table as sql_table

from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import FoldedName, TableName


def quote_identifier(name: str) -> str:
    """Quote a name: backticks, an inner one doubled."""
    return "`" + name.replace("`", "``") + "`"


def quote_table(schema: str, table: str) -> str:
    """Quote a table's full name."""
    return f"{quote_identifier(schema)}.{quote_identifier(table)}"


SYSTEM_SCHEMAS_OF_MYSQL: Final = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
SYSTEM_SCHEMAS: Final = SYSTEM_SCHEMAS_OF_MYSQL | {"metrics_schema", "inspection_schema"}
"""Of TiDB too. Casefolded. TiCDC never sends events on them."""


_SCHEMAS: Final = text("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
TABLES_OF_SCHEMA: Final = text("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = :schema")
_SCHEMA: Final = text(f"{_SCHEMAS.text} WHERE SCHEMA_NAME = :name")
_FEW_TABLES: Final = text(f"{TABLES_OF_SCHEMA.text} AND LOWER(TABLE_NAME) IN :names").bindparams(bindparam("names", expanding=True))
_FEW: Final = 50
"""Number of names that are asked for one by one: a schema may have ten thousand, and each DDL asks for a few."""


@contextmanager
def names_asked_once(connection: Connection) -> Iterator[None]:
    """Ask for the same names once in the block, in which no statement changes them: a DDL begins with five questions about one table."""
    info = connection.info
    info[__name__] = {}
    try:
        yield
    finally:
        info.pop(__name__, None)


def _asked(connection: Connection, query: TextClause, schema: str = "", names: Collection[str] = ()) -> dict[str, list[str]]:
    """Return the names that a query gives, by casefolded name."""
    known, key = connection.info.get(__name__, {}), (query.text, schema, *sorted(names))
    if key not in known:
        values = ({"schema": schema} if schema else {}) | ({"names": sorted(names)} if names else {})
        known[key] = _folded(connection.scalars(query, values))
    found: dict[str, list[str]] = known[key]
    return found


def sql_name(actual: TableName) -> TableClause:
    """Return the table's quoted name, for SQLAlchemy's statements."""
    return sql_table(quoted_name(actual.table, quote=True), schema=quoted_name(actual.schema, quote=True))


def spellings(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, TableName]:
    """Find the tables without regard to case; return the server's spelling of existing ones."""
    found: dict[FoldedName, TableName] = {}
    schemas = _asked(connection, _SCHEMAS) if tables else {}
    for folded_schema, group in groupby(sorted(tables, key=lambda name: name.schema.casefold()), key=lambda name: name.schema.casefold()):
        wanted = list(group)
        # The spelling of upstream decides between namesakes; more than one without it is an error.
        schema = _one_of(schemas.get(folded_schema, []), wanted[0].schema)
        names = {} if schema is None else _present(connection, schema, {name.table.casefold() for name in wanted})
        for name in wanted:
            table = _one_of(names.get(name.table.casefold(), []), name.table)
            if schema is not None and table is not None:
                found[name.fold()] = TableName(schema, table)
    return found


def namesakes(connection: Connection, names: Collection[TableName]) -> dict[FoldedName, list[TableName]]:
    """Find tables, and their schemas (as table ''), without regard to case; return all that there are of each name."""
    found: dict[FoldedName, list[TableName]] = {}
    schemas = _asked(connection, _SCHEMAS) if names else {}
    for folded_schema in {name.schema.casefold() for name in names} & schemas.keys():
        found[FoldedName(folded_schema, "")] = [TableName(schema, "") for schema in schemas[folded_schema]]
        wanted = {name.table.casefold() for name in names if name.table and name.schema.casefold() == folded_schema}
        for schema in schemas[folded_schema] if wanted else ():
            present = _present(connection, schema, wanted)
            for table in wanted & present.keys():
                found.setdefault(FoldedName(folded_schema, table), []).extend(TableName(schema, spelling) for spelling in present[table])
    return found


def schema_spelling(connection: Connection, schema: str) -> str | None:
    """Return how the server spells a schema, None if there is none of that name."""
    return _one_of(_asked(connection, _SCHEMAS).get(schema.casefold(), []), schema)


def has_schema(connection: Connection, name: str) -> bool:
    """Return whether the server has a schema of this name, as the server compares names."""
    return connection.execute(_SCHEMA, {"name": name}).first() is not None


def _present(connection: Connection, schema: str, wanted: set[str]) -> dict[str, list[str]]:
    """Return the tables of a schema by casefolded name: the wanted ones, and others where there are many, or servers fold otherwise."""
    # LOWER of the server and casefold of Python agree on ASCII only (ß, İ).
    if len(wanted) > _FEW or not all(map(str.isascii, wanted)):
        return _asked(connection, TABLES_OF_SCHEMA, schema)
    return _asked(connection, _FEW_TABLES, schema, wanted) if wanted else {}


def _folded(names: Iterable[str]) -> dict[str, list[str]]:
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(name.casefold(), []).append(name)
    return folded


def _one_of(candidates: list[str], wanted: str) -> str | None:
    if len(candidates) <= 1 or wanted in candidates:
        return wanted if wanted in candidates else next(iter(candidates), None)
    raise NeedsOperator(
        "the sink has names that differ only in case, and none is spelled as upstream spells it",
        remedy=Remedy("mysql.rename-columns", "Rename the names that upstream does not have"),
        wanted=wanted,
        found=",".join(sorted(candidates)),
    )
