"""What a cut-over represents: the ALTER TABLE of the copy that replaces the table. Pure.

gh-ost and pt-online-schema-change make a copy of a table, alter it while it is empty, fill it, and give it the table's name. The rows
are the same before and after, except what the ALTER changes. So the sink needs the ALTER alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from applier.ddl.names import DdlKind, parse_ddl
from applier.ddl.old_values import COPIED, SERVER_KIND
from applier.ddl.parser import parse
from applier.ddl.tree import AlterClause, AlterTableStatement, ClauseKind, CreateTableStatement, ElementKind, Tree, quoted_name
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import CutOver, DdlEvent, TableName
from applier.model.failure import FailureKind
from applier.model.segment import is_past

_REMEDY: Final = Remedy(
    "ddl.change-copied-table-by-hand",
    "Make the change in the sink by hand: structure and rows of the table, as upstream has them. Then skip the DDL: "
    "`applier ddl skip --ts … --table …`",
)
_APART: Final = frozenset(
    {
        ClauseKind.ADD, ClauseKind.DROP_COLUMN, ClauseKind.DROP_INDEX, ClauseKind.DROP_FOREIGN_KEY, ClauseKind.DROP_CONSTRAINT,
        ClauseKind.MODIFY, ClauseKind.CHANGE, ClauseKind.RENAME_COLUMN, ClauseKind.RENAME_INDEX, ClauseKind.ALTER_COLUMN,
        ClauseKind.ALTER_INDEX,
    }
)  # fmt: skip
"""Clauses that mean the same in one statement as in several, if none names what another one changes."""
_OF_THE_SESSION: Final = frozenset({"timestamp"})
"""What differs between two statements of one session."""


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """The copy that replaces a table in a cut-over. ``columns``: as its CREATE TABLE lists them; None: it was made LIKE the table."""

    alters: tuple[DdlEvent, ...]
    columns: frozenset[str] | None


def with_alters_of_copy(ddl: DdlEvent, copied: CopiedTable) -> DdlEvent:
    """Return a cut-over as the ALTER TABLE that it represents, in the session that altered the copy. NeedsOperator: there is none."""
    trees = [parse(alter.query) for alter in copied.alters]
    clauses = [(tree, clause) for tree in trees for clause in _clauses(tree)]
    changes = [(tree, clause) for tree, clause in clauses if not _is_counter(tree, clause)] or clauses
    used = [alter for alter, tree in zip(copied.alters, trees, strict=True) if any(tree is of for of, _ in changes)]
    if len(used) > 1 and not (_are_apart(changes) and len({_session(alter) for alter in used}) == 1):
        raise _refused(ddl, "the copy was altered by several statements, which cannot be made one")
    if ddl.cut_over is not None and ddl.cut_over.is_routed and any(_mentions(alter) for alter in used):
        raise _refused(ddl, "the copy got a foreign key, and source.route gives its table another name")
    session = tuple((name, COPIED if name == SERVER_KIND else value) for name, value in used[0].session)
    text = ", ".join(_text(tree, clause) for tree, clause in changes)
    query = f"ALTER TABLE {quoted_name(ddl.schema)}.{quoted_name(ddl.table)} {text}"
    return replace(ddl, query=query, ddl_type=used[0].ddl_type, session=session, time_ms=used[0].time_ms)


def copied_table(ddl: DdlEvent, past: Iterable[DdlEvent]) -> CopiedTable:
    """Return the copy of a cut-over after upstream's statements, in their order. NeedsOperator: they do not tell."""
    if ddl.cut_over is None:
        raise _refused(ddl, "the statement is not a cut-over")
    made = _Making(ddl.cut_over)
    for one in past:
        # The ledger may have tens of thousands: most of them do not name the copy.
        if is_past(one.commit_ts, ddl.commit_ts) and made.key in one.query.casefold():
            made.take(one)
    if not made.is_known:
        why = f"the statements that made {ddl.cut_over.copy} are not known: it was begun before the replica, or not by these tools"
        raise _refused(ddl, why)
    if not made.alters:
        raise _refused(ddl, f"no ALTER TABLE of {ddl.cut_over.copy} is known, so it need not be a copy of the table")
    return CopiedTable(tuple(made.alters), made.columns)


class _Making:
    """Takes the statements that name a copy, one after another. ``is_known``: whether they say what the copy is."""

    def __init__(self, cut_over: CutOver) -> None:
        self._cut_over, self._copy = cut_over, cut_over.copy.fold()
        self.key = self._copy.table
        self.alters: list[DdlEvent] = []
        self.columns: frozenset[str] | None = None
        self.is_known = False

    def take(self, one: DdlEvent) -> None:
        """Take the next statement."""
        statement = parse_ddl(one)
        if statement is None:
            self.is_known = self.is_known and one.schema.casefold() != self._copy.schema
        elif self._is_in(statement.creates):
            is_like = statement.kind is DdlKind.CREATE_TABLE_LIKE
            # One that lists columns is compared with the sink's table.
            self.is_known = not is_like or statement.needs[0].fold() == self._cut_over.table.fold()
            self.alters, self.columns = [], None if is_like else _columns(one.query)
        elif self._is_in(statement.needs) and statement.kind is DdlKind.ALTER_TABLE and not statement.renames:
            self.alters.append(one)
        elif self._is_in(statement.names) and not (statement.kind is DdlKind.CREATE_TABLE_LIKE or self._is_in(statement.mentions)):
            # Dropped, emptied, renamed, or changed by a statement that is no ALTER TABLE.
            self.is_known = False

    def _is_in(self, names: Iterable[TableName]) -> bool:
        return self._copy in {name.fold() for name in names}


def refuse_other_columns(ddl: DdlEvent, copied: CopiedTable, present: Iterable[str]) -> None:
    """Raise NeedsOperator if the copy was not made with the columns that the sink's table has."""
    if copied.columns is not None and copied.columns != {name.casefold() for name in present}:
        raise _refused(ddl, "the columns of the copy differ from the table's")


def _columns(query: str) -> frozenset[str]:
    node = parse(query).node
    elements = node.elements if isinstance(node, CreateTableStatement) else ()
    return frozenset(one.name.text.casefold() for one in elements if one.kind is ElementKind.COLUMN and one.name is not None)


def _clauses(tree: Tree) -> Sequence[AlterClause]:
    return tree.node.clauses if isinstance(tree.node, AlterTableStatement) else ()


def _text(tree: Tree, clause: AlterClause) -> str:
    return tree.text[tree.tokens[clause.span[0]].start : tree.tokens[clause.span[1]].end]


def _is_counter(tree: Tree, clause: AlterClause) -> bool:
    """Return whether a clause sets the next AUTO_INCREMENT value alone, as gh-ost does for each copy."""
    return clause.kind is ClauseKind.OTHER and tree.tokens[clause.span[0]].keyword == "AUTO_INCREMENT"


def _are_apart(clauses: Sequence[tuple[Tree, AlterClause]]) -> bool:
    changed, last = set[str](), clauses[0][0]
    so_far = set[str]()
    for tree, clause in clauses:
        if tree is not last:
            changed, last = changed | so_far, tree
        words = {token.text.casefold() for token in tree.tokens[clause.span[0] : clause.span[1] + 1]}
        if clause.kind not in _APART or words & changed:
            return False
        so_far |= _changed(tree, clause)
    return True


def _changed(tree: Tree, clause: AlterClause) -> set[str]:
    names = [clause.name, clause.new_name, *(token for one in clause.elements for token in (one.name, one.constraint))]
    found = {token.text.casefold() for token in names if token is not None}
    for one in clause.elements:
        # Its name comes from its columns.
        if one.name is None and one.constraint is None:
            found |= {token.text.casefold() for token in tree.tokens[one.body : one.span[1] + 1] if token.is_name}
    return found


def _session(alter: DdlEvent) -> tuple[tuple[str, str | int], ...]:
    return tuple(entry for entry in alter.session if entry[0] not in _OF_THE_SESSION)


def _mentions(alter: DdlEvent) -> tuple[TableName, ...]:
    statement = parse_ddl(alter)
    return () if statement is None else statement.mentions


def _refused(ddl: DdlEvent, why: str) -> NeedsOperator:
    message = f"a copy replaces a table, and the applier does not know the ALTER TABLE that made it: {why}"
    return NeedsOperator(message, remedy=_REMEDY, kind=FailureKind.CUT_OVER, table=str(ddl.name), commit_ts=ddl.commit_ts, query=ddl.query)
