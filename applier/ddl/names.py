"""The names in a statement by role, read from its tree: which tables it needs, creates, drops, renames, mentions."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from applier.ddl.cursor import Cursor
from applier.ddl.parser import parse, read_table_name
from applier.ddl.query_tables import QueryTables, query_of_view
from applier.ddl.statement import DdlKind, DdlStatement, Site
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import (
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    CreateViewStatement,
    DropTablesStatement,
    IndexStatement,
    NamePlace,
    RecoverTableStatement,
    RenameTablesStatement,
    SchemaStatement,
    Tree,
    TruncateTableStatement,
)
from applier.model.events import DdlEvent, TableName


def parse_ddl(ddl: DdlEvent) -> DdlStatement | None:
    """Read the statement of a DDL; None if it is not wholly understood. Never raises."""
    found = read_ddl(ddl)
    return None if found is None else found[0]


def read_ddl(ddl: DdlEvent) -> tuple[DdlStatement, tuple[Site, ...]] | None:
    """Read the statement of a DDL, and the places of the names in its text; None if it is not wholly understood. Never raises."""
    try:
        reader = _Names(parse(ddl.query), ddl)
        return reader.statement(), tuple(reader.sites)
    except DdlSyntaxError:
        return None


class _Names:
    """The names of one tree. ``sites`` are their places, in the order of the text."""

    def __init__(self, tree: Tree, ddl: DdlEvent) -> None:
        self._tree, self._ddl = tree, ddl
        self.sites: list[Site] = []

    def statement(self) -> DdlStatement:
        """Return the names by role; DdlSyntaxError if there may be others."""
        # Two statements in one event: the names in the second would be lost.
        if any(token.kind == ";" for token in self._tree.tokens):
            raise DdlSyntaxError("one statement", ";")
        node = self._tree.node
        match node:
            case SchemaStatement():
                found = self._schema(node)
            case CreateTableStatement():
                found = self._create_table(node)
            case AlterTableStatement():
                found = self._alter_table(node)
            case CreateViewStatement():
                found = self._create_view(node)
            case RecoverTableStatement():
                found = self._recover_table(node)
            case _:
                found = self._of_tables(node)
        return found

    def _of_tables(self, node: IndexStatement | DropTablesStatement | RenameTablesStatement | TruncateTableStatement) -> DdlStatement:
        """Read a statement that names tables and nothing beside them."""
        match node:
            case IndexStatement():
                kind = DdlKind.CREATE_INDEX if node.is_create else DdlKind.DROP_INDEX
                return DdlStatement(kind=kind, needs=(self._table(node.table),))
            case DropTablesStatement():
                kind = DdlKind.DROP_VIEW if node.is_view else DdlKind.DROP_TABLE
                return DdlStatement(kind=kind, drops=tuple(map(self._table, node.tables)), if_exists=node.if_exists)
            case RenameTablesStatement():
                pairs = tuple((self._table(old), self._table(new, is_new_name=True)) for old, new in node.pairs)
                return DdlStatement(kind=DdlKind.RENAME_TABLE, renames=pairs, if_exists=node.condition is not None)
            case TruncateTableStatement():
                return DdlStatement(kind=DdlKind.TRUNCATE_TABLE, needs=(self._table(node.table),))

    def _table(self, place: NamePlace, *, is_new_name: bool = False) -> TableName:
        name = place.name(self._ddl.schema)
        self.sites.append(Site(name, place.schema, place.table, is_new_name))
        return name

    def _schema(self, node: SchemaStatement) -> DdlStatement:
        schema = self._ddl.schema if node.schema is None else self._table(node.schema).schema
        match node.verb:
            case "CREATE":
                return DdlStatement(kind=DdlKind.CREATE_SCHEMA, schema=schema, if_not_exists=node.has_condition)
            case "DROP":
                return DdlStatement(kind=DdlKind.DROP_SCHEMA, schema=schema, if_exists=node.has_condition)
            case _:
                return DdlStatement(kind=DdlKind.ALTER_SCHEMA, schema=schema)

    def _create_table(self, node: CreateTableStatement) -> DdlStatement:
        name = self._table(node.table)
        made = DdlStatement(kind=DdlKind.CREATE_TABLE, creates=(name,), if_not_exists=node.if_not_exists, or_replace=node.or_replace)
        if node.like is not None:
            return replace(made, kind=DdlKind.CREATE_TABLE_LIKE, needs=(self._table(node.like),))
        body = self._tree.part(node.body)
        # CREATE TABLE … AS SELECT reads other tables. TiDB has none, so its names are not worth a grammar.
        words = [token.keyword for token in body.rest]
        if {"SELECT", "TABLE"} & set(words) or ("VALUES", "ROW") in pairwise(words):
            raise DdlSyntaxError("no query")
        return replace(made, mentions=tuple(self._references(body)))

    def _references(self, part: Cursor) -> Iterator[TableName]:
        """Yield the targets of the foreign keys in a part of the statement."""
        for at in range(part.at, part.last + 1):
            if part.tokens[at].keyword == "REFERENCES":
                yield self._table(read_table_name(part.part(at + 1, part.last)))

    def _alter_table(self, node: AlterTableStatement) -> DdlStatement:
        if not node.is_understood:
            raise DdlSyntaxError("a clause of ALTER TABLE")
        table = self._table(node.table)
        renamed: TableName | None = None
        exchanged: TableName | None = None
        mentions, has_others = list[TableName](), False
        for clause in node.clauses:
            if clause.kind is ClauseKind.RENAME_TABLE and clause.table is not None:
                renamed = self._table(clause.table, is_new_name=True)
                continue
            if clause.kind is ClauseKind.EXCHANGE_PARTITION and clause.table is not None:
                exchanged = self._table(clause.table)
            has_others = True
            if clause.kind not in {ClauseKind.RENAME_COLUMN, ClauseKind.RENAME_INDEX}:
                # The table after WITH TABLE is taken already.
                first = clause.body if clause.kind is ClauseKind.EXCHANGE_PARTITION else clause.span[0]
                mentions += self._references(self._tree.part(first, clause.span[1]))
        renames = () if renamed is None else ((table, renamed),)
        if exchanged is not None:
            needs = (table, exchanged)
            return DdlStatement(kind=DdlKind.EXCHANGE_PARTITION, needs=needs, renames=renames, mentions=tuple(mentions))
        if renames and not has_others:
            # An ALTER that only renames is a RENAME: producers print the one for the other, and both must have one identity.
            return DdlStatement(kind=DdlKind.RENAME_TABLE, renames=renames)
        return DdlStatement(kind=DdlKind.ALTER_TABLE, needs=(table,), renames=renames, mentions=tuple(mentions))

    def _create_view(self, node: CreateViewStatement) -> DdlStatement:
        name, found = self._table(node.view), QueryTables(query_of_view(self._tree.part(node.body)), self._ddl.schema)
        self.sites += found.sites
        mentions = tuple(dict.fromkeys(site.name for site in found.sites))
        return DdlStatement(
            kind=DdlKind.CREATE_VIEW,
            creates=(name,),
            mentions=mentions,
            parts=tuple(found.parts),
            words=tuple(found.words),
            or_replace=node.or_replace,
        )

    def _recover_table(self, node: RecoverTableStatement) -> DdlStatement:
        # BY JOB 53: only the event says which table that was.
        name = self._ddl.name if node.table is None else self._table(node.table)
        if node.new is not None:
            name = self._table(node.new)
        return DdlStatement(kind=DdlKind.RECOVER_TABLE, creates=(name,))
