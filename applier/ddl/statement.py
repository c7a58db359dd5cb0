"""What is known of a DDL's statement: its kind, and the names in it by role."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from applier.ddl.tokens import Token
from applier.model.events import TableName


class DdlKind(StrEnum):
    """What a statement does, as far as names are concerned."""

    CREATE_SCHEMA = "create_schema"
    ALTER_SCHEMA = "alter_schema"
    DROP_SCHEMA = "drop_schema"
    CREATE_TABLE = "create_table"
    CREATE_TABLE_LIKE = "create_table_like"
    ALTER_TABLE = "alter_table"
    RENAME_TABLE = "rename_table"
    TRUNCATE_TABLE = "truncate_table"
    EXCHANGE_PARTITION = "exchange_partition"
    DROP_TABLE = "drop_table"
    RECOVER_TABLE = "recover_table"
    CREATE_VIEW = "create_view"
    DROP_VIEW = "drop_view"
    CREATE_INDEX = "create_index"
    DROP_INDEX = "drop_index"


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlStatement:
    """The names of one statement by role, as they are spelled, qualified.

    ``needs`` must exist and stay (the table of an ALTER, both of an EXCHANGE, the source of a LIKE); ``renames`` happen in order;
    ``mentions`` are named but not required (a view's tables, the target of a foreign key). ``parts`` are the names that a view's query
    gives to queries of its own (WITH): no tables. ``words`` are no tables either, and part of its identity. ``schema`` is that of a schema
    DDL.
    ``if_exists`` and ``if_not_exists`` speak of the tables or the schema, not of indexes or columns.
    """

    kind: DdlKind
    schema: str = ""
    needs: tuple[TableName, ...] = ()
    creates: tuple[TableName, ...] = ()
    drops: tuple[TableName, ...] = ()
    renames: tuple[tuple[TableName, TableName], ...] = ()
    mentions: tuple[TableName, ...] = ()
    parts: tuple[str, ...] = ()
    words: tuple[TableName, ...] = field(default=(), compare=False)
    if_exists: bool = False
    if_not_exists: bool = False
    or_replace: bool = False

    @property
    def names(self) -> tuple[TableName, ...]:
        """Every table that the statement names, once each."""
        renamed = (name for pair in self.renames for name in pair)
        return tuple(dict.fromkeys((*self.needs, *self.creates, *self.drops, *renamed, *self.mentions)))

    @property
    def sources(self) -> tuple[TableName, ...]:
        """The tables whose content or shape the statement takes over: of RENAME, EXCHANGE and LIKE."""
        taken = self.needs if self.kind in {DdlKind.EXCHANGE_PARTITION, DdlKind.CREATE_TABLE_LIKE} else ()
        return (*taken, *(old for old, _ in self.renames))


class Site(NamedTuple):
    """A place where a statement names a table, or with ``table`` None a schema. ``schema`` is None where it is not written.

    ``is_new_name``: of a RENAME. ``alias`` is what a view's query calls the table.
    """

    name: TableName
    schema: Token | None
    table: Token | None
    is_new_name: bool = False
    alias: Token | None = None
