"""Writes a table's definition as SQLite's CREATE statements.

SQLite keeps the text of CREATE statements, comments included, through every ALTER and dump. So the MySQL definition of a column is a
comment after the column (``"status" TEXT NOT NULL /*: enum('new','paid') NOT NULL DEFAULT 'new' */``), and that of an index inside
the CREATE INDEX: it can never part from the table, it is written in the same transaction, and ``.schema`` shows it. ``catalogue.py`` reads
it back.

``applier.ddl.portable_expression`` knows which expressions of generated columns and functional indexes SQLite computes exactly as MySQL
does, and which conversions of their values are exact; this module writes them. MySQL always converts the value to the column's type, SQLite
only as written here. An index of any other expression is made empty (``WHERE 0``), unless it is unique: it costs nothing, no row depends on
it, and a later DDL finds it. The values of such a STORED column come with the rows: it is a plain column, under upstream's definition.
Every other case stops with NeedsOperator.

NOT NULL columns carry no DEFAULT in SQLite: ``REPLACE`` would silently write it instead of a NULL that does not fit.
"""

import logging
from collections.abc import Callable
from typing import Final

from sqlglot import exp

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.parser import BY_HAND
from applier.ddl.portable_expression import ARITHMETIC, COMPARISON, LOGIC, Columns, Kind, PortableExpression, portable
from applier.ddl.table_draft import PRIMARY, ColumnDefinition, IndexDefinition, IndexPart, TableDefinition
from applier.model.errors import NeedsOperator, Remedy
from applier.sinks.sqlite.names import Sql, compose, index_name, quote, quote_all, stored_name
from applier.sinks.sqlite.stored_value import MAX_SIGNED, affinity

_INTEGERS: Final = (TypeFamily.INTEGER, TypeFamily.BIT)


def stored(text: str, value: PortableExpression, column: ColumnType) -> str:
    """Return the value as ``column`` stores it. ``text`` is the SQL of ``value``."""
    # The value is a column's own, of the same type: nothing converts it.
    if value.sources == frozenset({column}):
        return text
    if column.family is TypeFamily.CHARACTER:
        return _characters(text, column)
    if value.kind is Kind.NUMBER:
        return _number(text, column)
    # A DATETIME from a DATE begins with the day.
    fraction = "." + "0" * column.scale if column.scale else ""
    return f"({text} || ' 00:00:00{fraction}')"


def _number(text: str, column: ColumnType) -> str:
    """A value out of range was cut to the range upstream, or refused there. Of 64 bits, a STRICT table refuses what is too great."""
    if column.family in _INTEGERS:
        return f"max({column.lowest},min({column.highest},{text}))" if column.highest < MAX_SIGNED else text
    if column.family is TypeFamily.DOUBLE:
        return text
    digits = f"CAST({text} AS TEXT)"
    return f"({digits} || '.{'0' * column.scale}')" if column.scale else digits


def _characters(text: str, column: ColumnType) -> str:
    """CHAR loses trailing spaces; what is too long was cut off upstream, or refused there."""
    if column.max_characters is not None:
        text = f"substr({text},1,{column.max_characters})"
    return f"rtrim({text},' ')" if column.base == "char" else text


_SIGNS: Final = {**ARITHMETIC, **COMPARISON, **LOGIC}


def translate(expression: str, columns: Columns, stored_as: ColumnType | None = None) -> Sql:
    """Translate a MySQL expression over ``columns`` (by casefolded name); NeedsOperator if SQLite cannot compute it exactly.

    ``stored_as``: the type of the generated column, which converts the value; None where nothing stores it.
    """
    value = portable(expression, columns, stored_as)
    if value is None:
        raise NeedsOperator("SQLite cannot compute this expression exactly as MySQL does", remedy=BY_HAND, expression=expression)
    text = _render(value.tree)
    return Sql(text if stored_as is None else stored(text, value, stored_as))


def _render(node: exp.Expr) -> str:
    """Return an expression that is portable in SQLite's words."""
    render = _RENDERERS.get(type(node))
    # An overflow becomes a REAL, which the STRICT column refuses.
    return render(node) if render is not None else f"({_render(node.this)} {_SIGNS[type(node)]} {_render(node.expression)})"


def _literal(node: exp.Expr) -> str:
    return "'" + node.name.replace("'", "''") + "'" if node.is_string else node.name


def _coalesce(node: exp.Expr) -> str:
    return "coalesce(" + ",".join(map(_render, (node.this, *node.expressions))) + ")"


def _if(node: exp.Expr) -> str:
    return f"iif({_render(node.this)},{_render(node.args['true'])},{_render(node.args['false'])})"


_RENDERERS: Final[dict[type[exp.Expr], Callable[[exp.Expr], str]]] = {
    exp.Paren: lambda node: f"({_render(node.this)})",
    exp.Column: lambda node: quote(node.name),
    exp.Literal: _literal,
    exp.Neg: lambda node: f"-({_render(node.this)})",
    exp.Concat: lambda node: "(" + " || ".join(map(_render, node.expressions)) + ")",
    exp.Coalesce: _coalesce,
    exp.If: _if,
}


MARK: Final = "/*:"
EMPTY: Final = "0"
"""The condition of an index that represents one that SQLite cannot compute."""

_log = logging.getLogger(__name__)


def create_table(table: TableDefinition, stored: str = "") -> Sql:
    """Render CREATE TABLE; ``stored`` overrides the name in the file."""
    # An expression or a prefix: the key becomes a unique index instead (`stored_indexes`).
    plain_key = all(part.column and not part.prefix for part in table.primary_key)
    key = [part.column for part in table.primary_key] if plain_key else []
    alias = _rowid_alias(table, key)
    lines = [column_clause(table, column, is_rowid=column.name == alias) for column in table.columns]
    if key and alias is None:
        lines.append(compose("PRIMARY KEY ({columns})", columns=quote_all(key)))
    body = Sql(",\n  ".join(lines))
    return compose("CREATE TABLE {name} (\n  {body}\n) STRICT", name=quote(stored or stored_name(table.name)), body=body)


def _rowid_alias(table: TableDefinition, key: list[str]) -> str | None:
    """Name the column that may be the rowid itself, which saves a second tree: the only key column, of a signed integer type."""
    column = table.column(key[0]) if len(key) == 1 else None
    # ANY PRIMARY KEY is no alias of the rowid, and a generated column cannot be a key.
    if column is None or affinity(column.type) != "INTEGER" or column.generated:
        return None
    return column.name


def column_clause(table: TableDefinition, column: ColumnDefinition, *, is_rowid: bool = False) -> Sql:
    """Render one column of CREATE TABLE or ALTER TABLE ADD COLUMN, followed by its MySQL definition."""
    text = compose("{name} {type}", name=quote(column.name), type=Sql(affinity(column.type)))
    if is_rowid:
        text = compose("{text} PRIMARY KEY", text=text)
    if not column.nullable:
        text = compose("{text} NOT NULL", text=text)
    if is_computed(table, column):
        expression = translate(column.generated, _types(table), column.type)
        text = compose("{text} GENERATED ALWAYS AS ({expression}) {how}", text=text, expression=expression, how=Sql(_how(column)))
    return compose("{text} {mark}", text=text, mark=mysql_comment(column.mysql))


def is_computed(table: TableDefinition, column: ColumnDefinition) -> bool:
    """Return whether SQLite computes a column. Of a VIRTUAL one nothing else has the values."""
    if not column.generated or not column.stored:
        return bool(column.generated)
    # SQLite has no generated columns in a primary key.
    is_key = any(part.column.casefold() == column.name.casefold() for part in table.primary_key)
    return not is_key and portable(column.generated, _types(table), column.type) is not None


def _types(table: TableDefinition) -> dict[str, ColumnType]:
    return {column.name.casefold(): column.type for column in table.columns}


def _how(column: ColumnDefinition) -> str:
    return "STORED" if column.stored else "VIRTUAL"


def mysql_comment(text: str) -> Sql:
    """Write MySQL's words as a comment of SQLite; NeedsOperator if they would end it early (only a quoted name could)."""
    if "*/" in text or "\0" in text:
        raise NeedsOperator(
            "a name in an expression contains */, which SQLite's schema cannot keep",
            remedy=Remedy("sqlite.rename-column-upstream", "Rename it upstream"),
            definition=text,
        )
    return Sql(f"{MARK} {text} */")


def stored_indexes(table: TableDefinition) -> list[IndexDefinition]:
    """Return the indexes that are made by CREATE INDEX: the primary key is among them if its parts have prefixes."""
    indexes = list(table.indexes)
    if any(part.prefix for part in table.primary_key):
        # A primary key over a prefix: SQLite's PRIMARY KEY takes columns only.
        indexes.append(IndexDefinition(PRIMARY, table.primary_key, unique=True))
    return indexes


def create_indexes(table: TableDefinition) -> list[Sql]:
    """Render all CREATE INDEX of a table."""
    return [create_index(table, index) for index in stored_indexes(table)]


def create_index(table: TableDefinition, index: IndexDefinition) -> Sql:
    """Render CREATE INDEX: a prefix becomes ``substr``, so that a unique prefix stays unique."""
    try:
        parts, condition = Sql(",".join(_index_part(table, part) for part in index.parts)), Sql("")
    except NeedsOperator:
        if index.unique:
            raise
        parts, condition = quote(table.columns[0].name), Sql(f" WHERE {EMPTY}")
        _log.info("index_left_out", extra={"table": str(table.name), "index": index.name})
    return compose(
        "CREATE {unique}INDEX {name} {mark} ON {table} ({parts}){condition}",
        unique=Sql("UNIQUE " if index.unique else ""),
        name=quote(index_name(table.name, index.name)),
        mark=mysql_comment(",".join(part.mysql for part in index.parts)),
        table=quote(stored_name(table.name)),
        parts=parts,
        condition=condition,
    )


def _index_part(table: TableDefinition, part: IndexPart) -> Sql:
    if part.expression:
        return compose("({part})", part=translate(part.expression, _types(table)))
    column = table.column(part.column)
    # A prefix counts characters of text and bytes of binary types, as substr() does.
    if part.prefix and column is not None and column.type.family in (TypeFamily.CHARACTER, TypeFamily.BINARY):
        return compose("substr({column},1,{length})", column=quote(part.column), length=Sql(str(part.prefix)))
    return quote(part.column)
