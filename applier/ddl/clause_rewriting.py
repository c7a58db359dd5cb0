"""Rewrites the clauses of a definition: what upstream ignored does not reach the sink, every other byte stays. Pure.

The tree says where which clauses may stand; the table in ``clause.py`` says what becomes of each. A statement that is no definition, or
cannot be read, stays as it is: the server accepts or refuses it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from applier.ddl.adaptation import is_impossible, is_left_out
from applier.ddl.clause import KEPT_OF_MYSQL, ClausePlace
from applier.ddl.clause_reader import ClauseReader
from applier.ddl.edit import Action, Edit, Mark, edited, list_edits
from applier.ddl.parser import parse_or_none
from applier.ddl.target import UPSTREAM, Target
from applier.ddl.tree import (
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    Element,
    ElementKind,
    IndexStatement,
    RenameTablesStatement,
    SchemaStatement,
    Span,
    Tree,
)

ADD_FULLTEXT_INDEX: Final = 230
"""The DDL type of a FULLTEXT index that upstream really has."""


def without_ignored_clauses(query: str, ddl_type: int = 0, target: Target = UPSTREAM) -> str:
    """Return the statement with only those clauses on which upstream has acted, in words that the sink's server understands.

    Indexes that the server cannot have are left out; '' if nothing else is in the statement.
    """
    tree = parse_or_none(query)
    if tree is None:
        return query
    if isinstance(tree.node, IndexStatement) and is_left_out(tree, tree.node, target):
        return ""
    return edited(query, _Definition(tree, target, keeps_fulltext=ddl_type == ADD_FULLTEXT_INDEX).edits())


def in_words_of(target: Target, query: str) -> str:
    """Return a statement of MySQL or MariaDB in words that the sink's server understands; '' if it only makes what that cannot have.

    Unlike TiDB, upstream acts on its checks, FULLTEXT indexes and subpartitions, so they stay. How tables are stored is the sink's.
    """
    tree = parse_or_none(query)
    if tree is None:
        return query
    if isinstance(tree.node, IndexStatement) and is_left_out(tree, tree.node, target):
        return ""
    return edited(query, _Definition(tree, target, keeps_fulltext=True, is_of_mysql=True).edits())


class _Definition:
    """Finds the edits of one statement."""

    __slots__ = ("_is_of_mysql", "_keeps_fulltext", "_reader", "_target", "_tree")

    def __init__(self, tree: Tree, target: Target, *, keeps_fulltext: bool, is_of_mysql: bool = False) -> None:
        self._tree, self._target, self._keeps_fulltext, self._is_of_mysql = tree, target, keeps_fulltext, is_of_mysql
        self._reader = ClauseReader(tree.tokens, KEPT_OF_MYSQL if is_of_mysql else ())

    def edits(self) -> Iterator[Edit]:
        """Yield the edits of the statement."""
        match self._tree.node:
            case CreateTableStatement() as node:
                yield from self._create_table(node)
            case AlterTableStatement() as node:
                yield from self._alter_table(node)
            case IndexStatement() as node:
                yield from self._index(node)
            case RenameTablesStatement(condition=condition):
                yield from self._listed([(0, len(self._tree.tokens) - 1)], self._condition(condition))
            case SchemaStatement(verb="CREATE" | "ALTER", options=options):
                yield from self._listed([options], self._reader.marks(ClausePlace.SCHEMA, *options))
            case _:
                return

    # Statements

    def _create_table(self, node: CreateTableStatement) -> Iterator[Edit]:
        if node.or_replace and not self._target.has_or_replace:
            # Behind CREATE. The table is dropped before.
            yield from self._listed([(0, len(self._tree.tokens) - 1)], [Mark(1, 2, Action.DROP)])
        yield from self._elements(node.elements)
        yield from self._listed(self._reader.items(*node.options), self._reader.marks(ClausePlace.TABLE, *node.options))
        yield from self._partitioning(*node.partitioning)

    def _alter_table(self, node: AlterTableStatement) -> Iterator[Edit]:
        whole = (0, len(self._tree.tokens) - 1)
        if node.ignore is not None:
            yield from self._listed([whole], [Mark(*node.ignore, Action.DROP)])
        # Edits of different lists: the comma that one takes is never another's.
        yield from self._listed([whole], self._condition(node.condition))
        marks = [mark for clause in node.clauses for mark in self._clause(clause)]
        yield from self._listed([clause.span for clause in node.clauses], marks)
        for clause in node.clauses:
            if clause.is_list and not all(map(self._is_dropped, clause.elements)):
                yield from self._elements(clause.elements)
            elif clause.kind in {ClauseKind.ADD_PARTITION, ClauseKind.PARTITIONING}:
                yield from self._partitioning(*clause.span)

    def _index(self, node: IndexStatement) -> Iterator[Edit]:
        marks = [
            *self._condition(node.condition),
            *self._reader.marks(ClausePlace.INDEX, *node.before_table),
            *self._reader.marks(ClausePlace.INDEX, *node.options),
        ]
        yield from self._listed([(0, len(self._tree.tokens) - 1)], marks)

    # Clauses of ALTER TABLE

    def _clause(self, clause: AlterClause) -> Iterator[Mark]:
        first, last = clause.span
        match clause.kind:
            case ClauseKind.DROP_CONSTRAINT | ClauseKind.ALTER_CONSTRAINT if not self._is_of_mysql:
                yield Mark(first, last, Action.DROP)
            # ADD goes with what it would have added.
            case ClauseKind.ADD if all(map(self._is_dropped, clause.elements)):
                yield Mark(first, last, Action.DROP)
            case ClauseKind.ALTER_COLUMN if self._reader.sees(last - 1, "SET") and not self._target.has_column_visibility:
                # SET VISIBLE or SET INVISIBLE: who sees the column without naming it.
                yield Mark(first, last, Action.DROP)
            case _:
                yield from self._condition(clause.condition)
                yield from self._inside_clause(clause)

    def _inside_clause(self, clause: AlterClause) -> Iterator[Mark]:
        last = clause.span[1]
        match clause.kind:
            case ClauseKind.ADD if not clause.is_list:
                yield from self._element(clause.elements[0])
            case ClauseKind.MODIFY | ClauseKind.CHANGE:
                yield from self._reader.marks(ClausePlace.COLUMN, clause.body, last)
            case ClauseKind.ALTER_INDEX:
                yield from self._reader.marks(ClausePlace.INDEX, clause.body, last)
            case ClauseKind.OTHER:
                yield from self._options(*clause.span)
            case ClauseKind.EXCHANGE_PARTITION:
                yield from self._reader.marks(ClausePlace.EXCHANGE, clause.body, last)
            case _:
                return

    def _options(self, first: int, last: int) -> Iterator[Mark]:
        """Read options that follow one another, of the table and of ALTER TABLE itself."""
        reader, at = self._reader, first
        while found := reader.option(at, last):
            place, end = found
            yield from reader.marks(place, at, end, alters=True)
            at = end + 1

    # Elements and partitions

    def _elements(self, elements: Sequence[Element]) -> Iterator[Edit]:
        yield from self._listed([element.span for element in elements], [mark for element in elements for mark in self._element(element)])

    def _element(self, element: Element) -> Iterator[Mark]:
        if self._is_dropped(element):
            yield Mark(*element.span, Action.DROP)
            return
        yield from self._condition(element.condition)
        if element.kind is ElementKind.INDEX:
            yield from self._reader.marks(ClausePlace.INDEX, element.body, element.span[1])
        elif element.kind is ElementKind.COLUMN:
            yield from self._reader.marks(ClausePlace.COLUMN, element.body, element.span[1])

    def _is_dropped(self, element: Element) -> bool:
        if (element.kind is ElementKind.CHECK and not self._is_of_mysql) or (element.index_kind == "FULLTEXT" and not self._keeps_fulltext):
            return True
        return is_impossible(self._tree, element, self._target)

    def _partitioning(self, first: int, last: int) -> Iterator[Edit]:
        """Edit PARTITION BY with its definitions, or the definitions of ADD and REORGANIZE PARTITION."""
        reader = self._reader
        begins = [n for n in range(first, last) if reader.sees(n, "(", "PARTITION")]
        # PARTITION BY HASH (a) PARTITIONS 4 has no definitions.
        end = begins[0] - 1 if begins else last
        after = reader.marks(ClausePlace.PARTITION, reader.closing(begins[0]) + 1, last) if begins else ()
        yield from self._listed([(first, last)], [*reader.marks(ClausePlace.PARTITION, first, end), *after])
        if begins:
            items = reader.items(begins[0] + 1, reader.closing(begins[0]) - 1)
            yield from self._listed(items, [mark for span in items for mark in self._partition(*span)])

    def _partition(self, first: int, last: int) -> Iterator[Mark]:
        reader = self._reader
        # After PARTITION and its name.
        yield from reader.marks(ClausePlace.PARTITION, first + 2, last)
        for at in range(first, last):
            if reader.sees(at, "(", "SUBPARTITION") and not self._is_of_mysql:
                yield Mark(at, reader.closing(at), Action.DROP)

    # Conditions, lists

    def _condition(self, condition: Span | None) -> list[Mark]:
        """MySQL knows IF [NOT] EXISTS of tables and schemas only."""
        if condition is None:
            return []
        words = " ".join(token.keyword for token in self._tree.tokens[condition[0] : condition[1] + 1])
        return [Mark(*condition, Action.REPLACE, f"/*M! {words} */ /*T! {words} */")]

    def _listed(self, items: list[Span], marks: Iterator[Mark] | list[Mark]) -> Iterator[Edit]:
        return list_edits(self._tree.text, self._tree.tokens, items, list(marks))
