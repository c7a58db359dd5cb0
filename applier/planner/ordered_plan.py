"""The statements of rows that are written in their order, with the actions of foreign keys (``KeyGroups``).

As a replica of the server does it: a row is inserted, updated by its old key or deleted by it; never replaced, because REPLACE deletes and
so fires ON DELETE. INSERT … ON DUPLICATE KEY UPDATE meets no other row through a second unique key: before each event the tables are as
upstream's were. Rows without an action, because their session had ``foreign_key_checks = 0`` or the log has what it changed, are written
without one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from applier.model.errors import ApplierError, InvariantViolation, NeedsOperator, Remedy
from applier.model.events import FoldedName
from applier.planner.column_match import is_partial, key_names
from applier.planner.final_rows import PlannedRows
from applier.planner.ordered_rows import Change, OrderedChange, in_order
from applier.planner.port import Dialect, OrderedDialect, Phase, Statement, StatementRows
from applier.planner.rendering import TableRenderers

LACKS_KEY: Final = "the sink's table lacks the key of its rows, which are written in order because of foreign keys"
_UNREADABLE: Final = (ApplierError, TypeError, ValueError, AttributeError)


class OrderedPlan:
    """The statements of some tables in one segment."""

    def __init__(self, tables: "Mapping[FoldedName, OrderedTable]") -> None:
        self._tables = tables

    def statements(self) -> Iterator[Statement]:
        """Yield them in the order in which they must run. Errors as ``plan_segments``."""
        changes = in_order({name: table.rows.final for name, table in self._tables.items()})

        def kind(change: OrderedChange) -> tuple[FoldedName, bool, bool]:
            table = self._tables[change.table]
            return change.table, change.change is Change.UPSERT and not table.is_partial(change), table.hides_actions(change)

        for (name, is_whole_upsert, hides_actions), run in groupby(changes, kind):
            table = self._tables[name]
            if is_whole_upsert and not table.rows.rejected.policy.trace_rows:
                yield from table.upserts(list(run), checks_keys=hides_actions)
            else:
                for one in run:
                    yield from table.one(one, checks_keys=hides_actions)


@dataclass(frozen=True, slots=True)
class OrderedTable:
    """One of these tables."""

    renderers: TableRenderers
    rows: PlannedRows
    _partial: dict[int, bool] = field(default_factory=dict)
    """Whether images of an origin lack columns, by its number."""

    def hides_actions(self, change: OrderedChange) -> bool:
        """Whether the event had actions that the log does not have."""
        return self.rows.origin(change.row).shape.hides_actions

    def is_partial(self, change: OrderedChange) -> bool:
        """Whether the row's image lacks columns (``binlog_row_image = MINIMAL``)."""
        number = self.rows.final.origin[change.row]
        if number not in self._partial:
            self._partial[number] = is_partial(self.rows.origins[number].shape, self.renderers.exact.description)
        return self._partial[number]

    def upserts(self, changes: Sequence[OrderedChange], *, checks_keys: bool) -> Iterator[Statement]:
        """Yield the statements of rows that are added or changed under their key."""
        renderers, chosen = self.renderers, [change.row for change in changes]
        texts = renderers.exact.row_texts(self.rows, chosen)
        if self._is_keyless(chosen[0]):
            found = self._dialect.whole_rows().replaces(renderers.exact.description, renderers.columns, texts)
        else:
            self._key(chosen[0])
            found = self._ordering.upserts(renderers.exact.description, renderers.columns, texts)
        for text, number in found:
            yield self._statement(text, changes, number, checks_keys=checks_keys)

    def one(self, change: OrderedChange, *, checks_keys: bool) -> Iterator[Statement]:
        """Yield the statements of one event; one that cannot be rendered is refused."""
        try:
            found = [text for text, _ in self._texts(change)]
        except _UNREADABLE as error:
            self.rows.refuse(change.row, error)
            return
        for text in found:
            yield self._statement(text, [change], 1, checks_keys=checks_keys)

    def _texts(self, change: OrderedChange) -> Iterator[tuple[str, int]]:
        description, columns, position = self.renderers.exact.description, self.renderers.columns, self.rows.position(change.row)
        image = self.rows.final.image
        if self._is_keyless(change.row):
            # Nothing references it (``SinkKeys``): its DELETE fires no action.
            whole = self._dialect.whole_rows()
            if change.change is not Change.UPSERT:
                yield from whole.deletes(description, columns, [self._literals(change.row)])
            row = change.row if change.change is Change.UPSERT else change.after
            if change.change is not Change.DELETE:
                yield from whole.replaces(description, columns, [_row_text(self._literals(row))])
            return
        key = self._key(change.row)
        old = self.renderers.exact.key_text(position)(position.key, image[change.row])
        if change.change is Change.DELETE:
            yield from self._dialect.deletes(description, key, [old])
            return
        if change.change is Change.UPSERT and self.is_partial(change):
            yield from self._part(dict(self.renderers.exact.part_texts(position)(image[change.row])), key, old)
            return
        new = self._literals(change.row if change.change is Change.UPSERT else change.after)
        if change.change is Change.REKEY:
            yield from self._ordering.updates(description, (columns, new), key, old)
        # Also behind the UPDATE: if it has found no row, nothing is lost.
        yield from self._ordering.upserts(description, columns, [_row_text(new)])

    def _part(self, texts: Mapping[str, str], key: Sequence[str], old: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield the statements of a row with some known columns: the others stay, or take their defaults in a new row."""
        description = self.renderers.exact.description
        yield from self._ordering.updates(description, (list(texts), list(texts.values())), key, old)
        # A column without a default: where the row is new, NULL raises a warning, which refuses the row.
        rest = [column.name for column in description.columns if not column.generated and column.default is None]
        new = {**{name: "NULL" for name in rest if name not in texts}, **texts}
        yield from self._ordering.absent_inserts(description, (list(new), list(new.values())), key, old)

    def _literals(self, row: int) -> tuple[str, ...]:
        render: Callable[[bytes], tuple[str, ...]] = self.renderers.exact.whole_row(self.rows.position(row))
        return render(self.rows.final.image[row])

    def _is_keyless(self, row: int) -> bool:
        return self.rows.key is None and not key_names(self.rows.origin(row).shape)

    def _key(self, row: int) -> tuple[str, ...]:
        """Return the key's columns, in the sink's spelling."""
        description = self.renderers.exact.description
        names = self.rows.key or key_names(self.rows.origin(row).shape)
        if not description.has_unique_key(names):
            remedy = Remedy("planner.add-key-in-sink", "Give the sink's table the primary or unique key that it has upstream")
            raise NeedsOperator(LACKS_KEY, remedy=remedy, **self.rows.position(row).facts)
        spelled = {column.name.casefold(): column.name for column in description.columns}
        return tuple(spelled[name.casefold()] for name in names)

    @property
    def _dialect(self) -> Dialect:
        return self.renderers.exact.dialect

    @property
    def _ordering(self) -> OrderedDialect:
        dialect = self._dialect
        if not isinstance(dialect, OrderedDialect):
            raise InvariantViolation("the dialect cannot write rows in order", table=str(self.renderers.exact.description.folded))
        return dialect

    def _statement(self, text: str, changes: Sequence[OrderedChange], number: int, *, checks_keys: bool) -> Statement:
        description, rows = self.renderers.exact.description, self.rows
        source = None
        if rows.rejected.policy.trace_rows:
            source = StatementRows(
                phase=Phase.ORDERED,
                table=description,
                columns=self.renderers.columns,
                key=rows.key or key_names(rows.origin(changes[0].row).shape),
                dialect=self._dialect,
                texts=("",),
                rows=rows.described([changes[0].row]),
            )
        return Statement(
            Phase.ORDERED,
            str(description.folded),
            text.encode(),
            number,
            changes[0].position[0],
            changes[-1].position[0],
            source,
            checks_keys=checks_keys,
        )


def _row_text(literals: Sequence[str]) -> str:
    return f"({','.join(literals)})"
