"""What a table has upstream that its sink does not show: from the statements that made it. Pure.

The sink does without some indexes (``adaptation.py``), and forgets the numbers of foreign keys that were dropped. The ledger holds every
statement, so it knows both. A table that came with a dump has a history without its beginning.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from applier.ddl.adaptation import is_impossible, is_left_out
from applier.ddl.clause import ADD_FULLTEXT_INDEX
from applier.ddl.generated_name import TIDB_NAMING, Naming, TableNames, checks_after, with_generated_names
from applier.ddl.names import parse_ddl
from applier.ddl.parser import parse_or_none
from applier.ddl.statement import DdlKind, DdlStatement
from applier.ddl.target import Target
from applier.ddl.tree import AlterTableStatement, ClauseKind, CreateTableStatement, Element, ElementKind, IndexStatement, Tree
from applier.model.events import DdlEvent, FoldedName


class PastDdl(NamedTuple):
    """A statement that upstream has run; ``is_skipped``: the sink has not; ``is_open``: the sink is still at it."""

    ddl: DdlEvent
    touches: frozenset[FoldedName] | None
    is_skipped: bool = False
    is_open: bool = False


@dataclass(slots=True)
class TableHistory:
    """``left_out``: the indexes that upstream has and the sink does without; ``indexes``: all that are known; names casefolded."""

    indexes: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    foreign_keys: int = 0
    checks: dict[str, str] = field(default_factory=dict)
    """Checks whose upstream names are certain: casefolded name -> expression."""


class Past:
    """Statements in the order in which they ran, and what they have made of tables. Not thread-safe.

    A table's history is kept, and goes on with the statements that were added since. A replica may have ten thousand statements about one
    table, and asks before each that is about an index.
    """

    def __init__(self, target: Target, naming: Naming = TIDB_NAMING) -> None:
        self.rules = target, naming
        self._all: list[PastDdl] = []
        # Where the statements about a name are, and under None those that may be about every name.
        self._about: dict[FoldedName | None, list[int]] = defaultdict(list)
        self._known: dict[FoldedName, tuple[int, TableHistory]] = {}

    def add(self, past: PastDdl) -> None:
        """Take in a statement that ran behind all others."""
        for name in (None,) if past.touches is None else past.touches:
            self._about[name].append(len(self._all))
        self._all.append(past)

    def history(self, name: FoldedName, later: Sequence[PastDdl] = ()) -> TableHistory:
        """Return what the statements have made of the table that is now called ``name``.

        ``later``: some that ran behind them, and are not kept.
        """
        if later:
            return self._with(later).history(name)
        found, begun = self._of_table(name)
        history = TableHistory(set(begun.indexes), set(begun.left_out), begun.foreign_keys, begun.checks)
        for one in found:
            _apply(history, one, *self.rules)
        self._known[name] = len(self._all), history
        return history

    def _with(self, later: Sequence[PastDdl]) -> "Past":
        """Return a copy with more statements."""
        more = Past(*self.rules)
        more._all, more._known = list(self._all), dict(self._known)
        more._about.update({name: list(places) for name, places in self._about.items()})
        for one in later:
            more.add(one)
        return more

    def _of_table(self, name: FoldedName) -> tuple[list[PastDdl], TableHistory]:
        """Return the statements that have changed the table since a history of it that is known, and that history.

        Nothing is known behind its creation; statements of the table that it was made LIKE come first.
        """
        found = list[PastDdl]()
        end = len(self._all)
        while True:
            upto, known = self._known.get(name, (0, TableHistory()))
            at = self._last_about(name, end)
            if at < upto <= end or at < 0:
                return found[::-1], known if at < upto <= end else TableHistory()
            one, end = self._all[at], at
            statement = parse_ddl(one.ddl)
            if statement is None:
                continue
            found.append(one)
            for old, new in reversed(statement.renames):
                name = old.fold() if new.fold() == name else name
            if name in {created.fold() for created in statement.creates}:
                if statement.kind is not DdlKind.CREATE_TABLE_LIKE:
                    return found[::-1], TableHistory()
                name = statement.needs[0].fold()
            elif _ends(statement, name):
                return found[:-1][::-1], TableHistory()

    def _last_about(self, name: FoldedName, end: int) -> int:
        """Return where the last statement before ``end`` is that may be about a table; -1: there is none."""
        places = (self._about.get(about, ()) for about in (name, name.schema_name, None))
        return max((found[at - 1] for found in places if (at := bisect_left(found, end))), default=-1)


def _ends(statement: DdlStatement, name: FoldedName) -> bool:
    is_schemas = statement.kind is DdlKind.DROP_SCHEMA and statement.schema.casefold() == name.schema
    return is_schemas or name in {dropped.fold() for dropped in statement.drops}


def _apply(history: TableHistory, past: PastDdl, target: Target, naming: Naming) -> None:
    history.checks = checks_after(history.checks, past.ddl)
    names = TableNames(dict.fromkeys(history.indexes, ()), history.foreign_keys)
    tree = parse_or_none(with_generated_names(past.ddl.query, names, naming))
    if tree is None:
        return
    for name, is_out in _added(tree, past, target):
        history.indexes.add(name)
        (history.left_out.add if is_out or past.is_skipped else history.left_out.discard)(name)
    match tree.node:
        case CreateTableStatement(elements=elements):
            history.foreign_keys += _foreign_keys(elements)
        case IndexStatement(is_create=False, name=token):
            _drop(history, token.text.casefold())
        case AlterTableStatement() as node:
            _alter(history, node)


def _alter(history: TableHistory, node: AlterTableStatement) -> None:
    for clause in node.clauses:
        history.foreign_keys += _foreign_keys(clause.elements)
        if clause.name is None:
            continue
        name = clause.name.text.casefold()
        if clause.kind is ClauseKind.DROP_INDEX:
            _drop(history, name)
        elif clause.kind is ClauseKind.RENAME_INDEX and clause.new_name is not None:
            new = clause.new_name.text.casefold()
            history.indexes.add(new)
            if name in history.left_out:
                history.left_out.add(new)
            _drop(history, name)


def _drop(history: TableHistory, name: str) -> None:
    history.indexes.discard(name)
    history.left_out.discard(name)


def _added(tree: Tree, past: PastDdl, target: Target) -> Iterator[tuple[str, bool]]:
    """Yield the name of each index that the statement makes, and whether the sink does without it."""
    # TiDB reads FULLTEXT and makes such an index where it can, and the sink gets it by a statement of its own type only.
    has_fulltext = past.ddl.is_of_log or past.ddl.ddl_type == ADD_FULLTEXT_INDEX
    match tree.node:
        case IndexStatement(is_create=True) as node:
            is_out = is_left_out(tree, node, target) or (node.index_kind == "FULLTEXT" and not has_fulltext)
            yield node.name.text.casefold(), is_out
        case CreateTableStatement(elements=elements):
            yield from _of_elements(tree, elements, target, has_fulltext=has_fulltext)
        case AlterTableStatement(clauses=clauses):
            for clause in clauses:
                yield from _of_elements(tree, clause.elements, target, has_fulltext=has_fulltext)


def _of_elements(tree: Tree, elements: Sequence[Element], target: Target, *, has_fulltext: bool) -> Iterator[tuple[str, bool]]:
    for element in elements:
        token = element.name or element.constraint
        if element.kind is ElementKind.INDEX and token is not None:
            is_out = is_impossible(tree, element, target) or (element.index_kind == "FULLTEXT" and not has_fulltext)
            yield token.text.casefold(), is_out


def _foreign_keys(elements: Sequence[Element]) -> int:
    return sum(element.kind is ElementKind.FOREIGN_KEY for element in elements)
