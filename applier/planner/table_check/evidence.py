"""What upstream's own statements say about a table: they explain what the wire does not show.

A flag of the wire may be stale (open_protocol.md 2.5), and collations are not on the wire at all. So before a difference stops the
replica, the statements that the sink has run for upstream are asked: what one of them names is upstream's own.
"""

from collections.abc import Collection, Iterable, Iterator

from applier.ddl import DdlKind, DdlStatement, parse_ddl, touches
from applier.ddl.collation import with_tidb_collations
from applier.ddl.definition_reader import defined_columns
from applier.ddl.parser import parse_or_none
from applier.ddl.tree import CreateTableStatement
from applier.ddl.unique_key import unique_keys_of
from applier.model.events import DdlEvent, FoldedName
from applier.model.position import Ts
from applier.model.segment import may_follow
from applier.planner.table_check.difference import UniqueIndex


class Evidence:
    """Upstream's statements in their order. Not thread-safe."""

    def __init__(self, ddls: Iterable[DdlEvent]) -> None:
        self._by_name: dict[FoldedName, list[DdlEvent]] = {}
        self._numbers: dict[int, int] = {}
        """Of each statement, by its object: in which order they ran."""
        for ddl in ddls:
            self.add(ddl)

    def add(self, ddl: DdlEvent) -> None:
        """Take a statement that upstream has run; ``left_out``: the sink has not."""
        self._numbers[id(ddl)] = len(self._numbers)
        for name in {ddl.name.fold(), *(touches(ddl) or ())}:
            self._by_name.setdefault(name, []).append(ddl)

    def explains_collation(self, table: FoldedName, collation: str) -> bool:
        """Return whether a statement about the table or its schema names this collation, or a charset of which it is TiDB's default."""
        word = collation.casefold()
        return any(word in _with_defaults(ddl).casefold() for ddl in self._about(table, with_schema=True))

    def explains_unique_index(self, table: FoldedName, index: UniqueIndex) -> bool:
        """Return whether a statement about the table makes a unique index with these columns (or, where it has none, with this name)."""
        wanted = {column.casefold() for column in index.columns}
        return any(
            columns == wanted if wanted else name == index.name.casefold()
            for ddl in self._about(table, with_schema=False)
            for name, columns in unique_keys_of(ddl.query)
        )

    def has_column(self, table: FoldedName, column: str, before_ts: Ts) -> bool | None:
        """Return whether an earlier statement gave the table this column; None: the statement that made the table is not known."""
        earlier = [ddl for ddl in self._about(table, with_schema=False) if not may_follow(ddl.commit_ts, before_ts)]
        trees = [tree for ddl in earlier if (tree := parse_or_none(ddl.query)) is not None]
        if any(defined.name.casefold() == column.casefold() for tree in trees for defined in defined_columns(tree)):
            return True
        # CREATE TABLE … LIKE and … SELECT do not show their columns.
        return False if any(isinstance(tree.node, CreateTableStatement) and tree.node.elements for tree in trees) else None

    def explains_view(self, table: FoldedName) -> bool:
        """Return whether the last statement that gave something this name made a view."""
        made = [statement.kind for ddl in self._by_name.get(table, ()) if (statement := parse_ddl(ddl)) and table in _given(statement)]
        return made[-1:] == [DdlKind.CREATE_VIEW]

    def has_left(self, table: FoldedName, there: FoldedName) -> bool:
        """Return whether the sink's table ``there`` has still the definition of upstream's ``table``, which is left out.

        So it is after a RENAME out of the selection, until a statement about either name, of the one or the other kind.
        """
        names = {table, there}
        about = {id(ddl): ddl for name in names for one in (name, name.schema_name) for ddl in self._by_name.get(one, ())}
        changing = [ddl for ddl in about.values() if _may_change(ddl, names)]
        last = max(changing, key=lambda ddl: self._numbers[id(ddl)], default=None)
        return last is not None and not last.left_out and _is_renamed_to(last, there)

    def _about(self, table: FoldedName, *, with_schema: bool) -> Iterator[DdlEvent]:
        """Yield the statements about the table, under the names that it had before too."""
        names, waiting = {table}, [table]
        while waiting:
            name = waiting.pop()
            for ddl in self._by_name.get(name, ()):
                yield ddl
                earlier = _earlier_names(ddl, name) - names
                names |= earlier
                waiting += earlier
            if with_schema:
                yield from self._by_name.get(name.schema_name, ())


def _with_defaults(ddl: DdlEvent) -> str:
    """Return the statement with the collations that its charsets stand for; a source that sends its session has written them out."""
    return ddl.query if ddl.is_of_log else with_tidb_collations(ddl.query)


def _given(statement: DdlStatement) -> set[FoldedName]:
    """Return the names that are something else than before once the statement has run."""
    return {name.fold() for name in (*statement.creates, *(new for _, new in statement.renames))}


def _earlier_names(ddl: DdlEvent, name: FoldedName) -> set[FoldedName]:
    """Return the tables whose definition the statement gave to ``name``."""
    statement = parse_ddl(ddl)
    if statement is None:
        return set()
    taken = {old.fold() for old, new in statement.renames if new.fold() == name}
    if statement.kind in {DdlKind.CREATE_TABLE_LIKE, DdlKind.EXCHANGE_PARTITION}:
        taken |= {source.fold() for source in statement.sources}
    return taken


def _may_change(ddl: DdlEvent, names: Collection[FoldedName]) -> bool:
    """Return whether the statement may change the definition of one of these tables."""
    statement = parse_ddl(ddl)
    if statement is None:
        return ddl.name.fold() in names
    if statement.kind is DdlKind.DROP_SCHEMA:
        return statement.schema.casefold() in {name.schema for name in names}
    needs = () if statement.kind is DdlKind.CREATE_TABLE_LIKE else statement.needs
    changed = (*needs, *statement.creates, *statement.drops, *(name for pair in statement.renames for name in pair))
    return any(table.fold() in names for table in changed)


def _is_renamed_to(ddl: DdlEvent, name: FoldedName) -> bool:
    """Return whether a table has this name by the statement, and keeps it."""
    statement = parse_ddl(ddl)
    steps = () if statement is None else statement.renames
    return [old.fold() != name for old, new in steps if name in {old.fold(), new.fold()}][-1:] == [True]
