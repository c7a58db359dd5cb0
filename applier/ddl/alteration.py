"""Applies the clauses of ALTER TABLE to a draft of the table. Strict: a clause that is not known, or known only in part, stops.

Two kinds of clause: those that change the definition, and those that change no row and no key (comments, character sets between kinds of
UTF-8, numbering, visibility, TTL). What a clause does to partitions is not part of a definition: ``changes_partitioned_rows`` is for
that.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from applier.ddl.clause_reader import ClauseReader
from applier.ddl.column_parser import ParsedColumn, parse_column, parse_default
from applier.ddl.column_type import TypeFamily
from applier.ddl.cursor import Cursor
from applier.ddl.table_draft import Position, TableDraft
from applier.ddl.table_parser import add_column_keys, add_index_element, column_name, read_index
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import AlterClause, AlterTableStatement, ClauseKind, Element, ElementKind, Tree
from applier.ddl.type_parser import charset_within, converted_text, parse_charset

_PARTITIONS: Final = frozenset(
    {ClauseKind.ADD_PARTITION, ClauseKind.DROP_PARTITION, ClauseKind.EXCHANGE_PARTITION, ClauseKind.PARTITIONING}
)
_KEEPING_ROWS: Final = (
    ("REORGANIZE", "PARTITION"), ("PARTITION", "BY"), ("REMOVE", "PARTITIONING"), ("COALESCE", "PARTITION"), ("REBUILD", "PARTITION"),
    ("LAST", "PARTITION"), ("MERGE", "FIRST"), ("SPLIT", "MAXVALUE"),
)  # fmt: skip
"""Other changes of partitions after which a table has the rows that it had. FIRST PARTITION drops, TRUNCATE deletes."""
_COLUMN_END: Final = "the end of the column's definition"


def changes_partitioned_rows(tree: Tree, node: AlterTableStatement) -> bool:
    """Return whether a clause is about partitions, and may delete rows or exchange them."""
    return any(clause.kind in _PARTITIONS and not _keeps_rows(tree, clause) for clause in node.clauses)


def _keeps_rows(tree: Tree, clause: AlterClause) -> bool:
    if clause.kind is ClauseKind.PARTITIONING:
        return any(tree.part(*clause.span).sees(*words) for words in _KEEPING_ROWS)
    return clause.kind is ClauseKind.ADD_PARTITION


def emptied_partitions(tree: Tree, node: AlterTableStatement) -> list[str] | None:
    """Return the partitions that a TRUNCATE PARTITION names, none for ALL; None: it is another statement."""
    for clause in node.clauses:
        cursor = tree.part(*clause.span)
        if cursor.accept("TRUNCATE", "PARTITION"):
            return [] if cursor.sees("ALL") else [part.name() for part in cursor.split()]
    return None


def alter(draft: TableDraft, tree: Tree, node: AlterTableStatement, *, is_of_mysql: bool = False) -> None:
    """Apply all clauses, except a RENAME of the table; DdlSyntaxError if one is not wholly known.

    ``is_of_mysql``: upstream is a MySQL or MariaDB, where DROP CONSTRAINT drops a unique key too.
    """
    alteration = _Alteration(draft, tree, is_of_mysql=is_of_mysql)
    for clause in node.clauses:
        alteration.apply(clause)
    if not node.is_understood:
        raise DdlSyntaxError("a clause that can be translated", tree.text)


class _Alteration:
    """Applies the clauses of one ALTER TABLE to a draft."""

    def __init__(self, draft: TableDraft, tree: Tree, *, is_of_mysql: bool) -> None:
        self._draft, self._tree, self._is_of_mysql = draft, tree, is_of_mysql

    def apply(self, clause: AlterClause) -> None:
        """Apply one clause; DdlSyntaxError if a part of it was not read."""
        cursor = self._tree.part(clause.body, clause.span[1])
        _APPLY[clause.kind](self, clause, cursor)
        # The rest of the clause was not understood, and may change the part that was: then none of it is applied.
        cursor.finish("a clause that can be translated")

    def add(self, clause: AlterClause, cursor: Cursor) -> None:
        """ADD: columns and indexes."""
        for element in clause.elements:
            if element.kind is ElementKind.COLUMN:
                self._add_column(element, exists_allowed=(clause.condition or element.condition) is not None)
            else:
                if (clause.condition or element.condition) is not None and self._finds(element):
                    continue
                index = add_index_element(self._draft, self._tree, element)
                if index is not None:
                    self._draft.add_index(index)
        if not clause.is_list:
            cursor.skip_rest()

    def _finds(self, element: Element) -> bool:
        """Whether IF NOT EXISTS finds an index. Upstream has made that of a DDL of topics: another one of the name is not it."""
        name = element.name or element.constraint
        if element.kind is not ElementKind.INDEX or name is None or not self._draft.has_index(name.text):
            return False
        return self._is_of_mysql or self._draft.has_same_index(read_index(self._tree, element))

    def _add_column(self, element: Element, *, exists_allowed: bool) -> None:
        cursor = self._tree.part(element.body, element.span[1])
        column = parse_column(cursor, column_name(self._tree, element))
        position = _position(cursor)
        cursor.finish(_COLUMN_END)
        if exists_allowed and self._draft.find(column.definition.name) is not None:
            self._draft.found.append(column.definition.name)
            return
        self._draft.add_column(column.definition, position)
        add_column_keys(self._draft, column)

    def drop_column(self, clause: AlterClause, cursor: Cursor) -> None:
        """DROP COLUMN."""
        cursor.accept_any("RESTRICT", "CASCADE")
        name = _name(clause)
        if clause.condition is None or self._draft.find(name) is not None:
            self._draft.drop_column(name)

    def drop_index(self, clause: AlterClause, _cursor: Cursor) -> None:
        """DROP INDEX."""
        name = _name(clause)
        if clause.condition is None or self._draft.has_index(name):
            self._draft.drop_index(name)

    def drop_primary_key(self, _clause: AlterClause, cursor: Cursor) -> None:
        """DROP PRIMARY KEY."""
        cursor.expect("KEY")
        self._draft.drop_primary_key()

    def drop_constraint(self, clause: AlterClause, cursor: Cursor) -> None:
        """DROP CHECK and DROP CONSTRAINT."""
        is_constraint, name = self._tree.part(*clause.span).sees("DROP", "CONSTRAINT"), _name(clause)
        if is_constraint and self._is_of_mysql and name.upper() == "PRIMARY":
            self._draft.drop_primary_key()
        elif is_constraint and self._is_of_mysql and self._draft.has_index(name):
            self._draft.drop_index(name)
        cursor.skip_rest()

    def redefine(self, clause: AlterClause, cursor: Cursor) -> None:
        """MODIFY and CHANGE."""
        old = _name(clause)
        # IF EXISTS: a column that is not there is no error.
        column = self._draft.find(old)
        if column is None and clause.condition is not None:
            cursor.skip_rest()
            return
        kept = column.definition.name if column else old
        parsed: ParsedColumn = parse_column(cursor, kept if clause.new_name is None else clause.new_name.text)
        position = _position(cursor)
        cursor.finish(_COLUMN_END)
        self._draft.modify_column(old, parsed.definition, position)
        if column is not None:
            column.charset = charset_within(self._tree.part(clause.body, clause.span[1]))
        add_column_keys(self._draft, parsed)

    def rename_column(self, clause: AlterClause, _cursor: Cursor) -> None:
        """RENAME COLUMN."""
        self._draft.rename_column(_name(clause), _new_name(clause))

    def rename_index(self, clause: AlterClause, _cursor: Cursor) -> None:
        """RENAME INDEX."""
        self._draft.rename_index(_name(clause), _new_name(clause))

    def set_default(self, clause: AlterClause, cursor: Cursor) -> None:
        """ALTER COLUMN … SET DEFAULT and DROP DEFAULT."""
        if cursor.accept("DROP", "DEFAULT"):
            self._draft.set_default(_name(clause), None)
        else:
            cursor.expect("SET", "DEFAULT")
            self._draft.set_default(_name(clause), parse_default(cursor))

    def convert(self, _clause: AlterClause, cursor: Cursor) -> None:
        """CONVERT TO CHARACTER SET: a MODIFY of every text. DEFAULT is the schema's, which only upstream knows: texts stay."""
        charset = parse_charset(cursor)
        if charset == "binary":
            raise cursor.unexpected("a character set other than binary")
        for column in self._draft.columns if charset not in {"", "default"} else ():
            old = column.definition.type
            if old.family is TypeFamily.CHARACTER:
                column.definition = replace(column.definition, type=converted_text(old, charset))
                column.charset = charset
        cursor.skip_rest()

    def take_options(self, clause: AlterClause, cursor: Cursor) -> None:
        """Take options of the table and of ALTER TABLE; several may stand in one clause, without commas. None changes a row or a key."""
        # The one table of options (clause.py) decides here too: what TiDB does not act on changes nothing in SQLite either.
        reader, last = ClauseReader(self._tree.tokens), clause.span[1]
        while not cursor.is_done:
            found = reader.option(cursor.at, last)
            if found is None:
                raise cursor.unexpected("a clause that can be translated")
            cursor.at = found[1] + 1

    def skip(self, _clause: AlterClause, cursor: Cursor) -> None:
        """Take what changes neither rows nor keys: visibility, enforcement, foreign keys; and a RENAME, which is the caller's."""
        cursor.skip_rest()


def _name(clause: AlterClause) -> str:
    return "" if clause.name is None else clause.name.text


def _new_name(clause: AlterClause) -> str:
    return "" if clause.new_name is None else clause.new_name.text


def _position(cursor: Cursor) -> Position | None:
    if cursor.accept("FIRST"):
        return Position()
    return Position(cursor.name()) if cursor.accept("AFTER") else None


_APPLY: Final[Mapping[ClauseKind, Callable[[_Alteration, AlterClause, Cursor], None]]] = {
    ClauseKind.ADD: _Alteration.add,
    ClauseKind.DROP_COLUMN: _Alteration.drop_column,
    ClauseKind.DROP_INDEX: _Alteration.drop_index,
    ClauseKind.DROP_PRIMARY_KEY: _Alteration.drop_primary_key,
    ClauseKind.DROP_FOREIGN_KEY: _Alteration.skip,
    ClauseKind.DROP_CONSTRAINT: _Alteration.drop_constraint,
    ClauseKind.MODIFY: _Alteration.redefine,
    ClauseKind.CHANGE: _Alteration.redefine,
    ClauseKind.RENAME_TABLE: _Alteration.skip,
    ClauseKind.RENAME_COLUMN: _Alteration.rename_column,
    ClauseKind.RENAME_INDEX: _Alteration.rename_index,
    ClauseKind.ALTER_COLUMN: _Alteration.set_default,
    ClauseKind.ALTER_INDEX: _Alteration.skip,
    ClauseKind.ALTER_CONSTRAINT: _Alteration.skip,
    ClauseKind.CONVERT: _Alteration.convert,
    ClauseKind.OTHER: _Alteration.take_options,
    # The definition stays; whether the sink can follow is the caller's to decide.
    **dict.fromkeys(_PARTITIONS, _Alteration.skip),
}
