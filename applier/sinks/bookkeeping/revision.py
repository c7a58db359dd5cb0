"""The operations that the revisions of ``migrations/`` use: tables, columns and indexes in the words of the sink's database.

Some databases commit each DDL at once, so a migration that died half-way is repeated: every step makes only what is missing.
"""

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.types import TypeEngine

from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, ColumnTypes


def bookkeeping() -> Bookkeeping:
    """Return the bookkeeping that is upgraded."""
    found: Bookkeeping = context.config.attributes["bookkeeping"]
    return found


def types() -> ColumnTypes:
    """Return the types of its database."""
    return bookkeeping().dialect.types


def column(name: str, kind: TypeEngine[object], *, nullable: bool = False) -> sa.Column[object]:
    """Return a column without a default: the statements name every column."""
    return sa.Column(name, kind, nullable=nullable, autoincrement=False)


def create_table(name: str, *columns: sa.Column[object], key: tuple[str, ...]) -> None:
    """Create a table, unless it is there."""
    address, options = bookkeeping().address, bookkeeping().dialect.table_options
    op.create_table(
        f"{address.prefix}{name}", *columns, sa.PrimaryKeyConstraint(*key), schema=address.schema, if_not_exists=True, **options
    )


def rename_table(name: str, new_name: str) -> None:
    """Rename a table with its rows, unless that is done."""
    address = bookkeeping().address
    old = f"{address.prefix}{name}"
    if sa.inspect(op.get_bind()).has_table(old, schema=address.schema):
        op.rename_table(old, f"{address.prefix}{new_name}", schema=address.schema)


def add_column(table: str, added: sa.Column[object], *, of_old_rows: str | None = None) -> None:
    """Add a column, unless it is there. ``of_old_rows``: the SQL of its value in the rows that are there."""
    address = bookkeeping().address
    whole = f"{address.prefix}{table}"
    if added.name in {known["name"] for known in sa.inspect(op.get_bind()).get_columns(whole, schema=address.schema)}:
        return
    if of_old_rows is not None:
        added.server_default = sa.DefaultClause(sa.text(of_old_rows))
    op.add_column(whole, added, schema=address.schema)


def drop_default(table: str, of: sa.Column[object]) -> None:
    """Drop the default of a column, where the database can: each write states its value."""
    address = bookkeeping().address
    if bookkeeping().dialect.drops_defaults:
        op.alter_column(
            f"{address.prefix}{table}", of.name, existing_type=of.type, existing_nullable=False, server_default=None, schema=address.schema
        )


def create_index(table: str, purpose: str, columns: tuple[str, ...]) -> None:
    """Create an index, unless it is there."""
    address = bookkeeping().address
    name, indexed = f"{address.prefix}{table}_{purpose}", f"{address.prefix}{table}"
    if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(indexed, schema=address.schema)}:
        op.create_index(name, indexed, list(columns), schema=address.schema)
