"""Views: the query is translated by sqlglot, and its table names are rewritten to those of the file.

A view holds no rows of its own, so here sqlglot's translation is trusted; SQLite must be able to prepare the result, else the DDL stops.
DECIMAL is text in the file: a view that calculates with it shows floating point.
"""

import sqlite3

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from applier.ddl.cursor import Cursor
from applier.model.events import FoldedName, TableName
from applier.sinks.sqlite.catalogue import StoredObject, find_objects
from applier.sinks.sqlite.names import Sql, compose, quote, quote_all, stored_name


def create_view(connection: sqlite3.Connection, name: TableName, cursor: Cursor, schema: str) -> None:
    """Create a view; ``cursor`` stands after its name. DdlSyntaxError if the query cannot be translated. No view of that name may exist.

    ``schema`` is that of unqualified names.
    """
    columns = _column_names(cursor)
    cursor.expect("AS")
    query = _translate(connection, cursor, schema)
    statement = compose(
        "CREATE VIEW {name}{columns} AS {query}",
        name=quote(stored_name(name)),
        columns=compose(" ({names})", names=quote_all(columns)) if columns else Sql(""),
        query=query,
    )
    try:
        connection.execute(statement)
        # CREATE VIEW does not look at its tables; only preparing a query does.
        connection.execute(compose("EXPLAIN SELECT * FROM {name}", name=quote(stored_name(name))))
    except sqlite3.OperationalError as error:
        raise cursor.unexpected(f"a query that SQLite understands ({error})") from error


def _column_names(cursor: Cursor) -> list[str]:
    names: list[str] = []
    if cursor.sees("("):
        inside = cursor.parenthesis()
        while not inside.is_done:
            names.append(inside.name())
            inside.accept(",")
    return names


def _translate(connection: sqlite3.Connection, cursor: Cursor, schema: str) -> Sql:
    source = cursor.source()
    try:
        tree = sqlglot.parse_one(source, read="mysql")
        _rename_tables(tree, schema, find_objects(connection))
        return Sql(tree.sql("sqlite", unsupported_level=ErrorLevel.RAISE, identify=True))
    except SqlglotError as error:
        raise cursor.unexpected("a query that can be translated") from error


def _rename_tables(tree: exp.Expr, schema: str, present: dict[FoldedName, StoredObject]) -> None:
    """Give each table its name in the file, as the file spells it, and, as alias, the name by which the query's columns call it."""
    common = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        if table.db or table.name.casefold() not in common:
            # Columns of the query say t.a, while the table is called shop.t in the file.
            alias = table.alias or table.name
            name = TableName(table.db or schema, table.name)
            stored = present[name.fold()].stored if name.fold() in present else stored_name(name)
            renamed = exp.to_identifier(stored, quoted=True)
            table.set("this", renamed)
            table.set("db", None)
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
