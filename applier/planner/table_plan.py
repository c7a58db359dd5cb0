"""The statements of one table in one segment: DELETEs, then loads and REPLACEs.

Three ways lead to a row's text, each for the rows that the one before it leaves: lines of a bulk load, REPLACEs rendered many rows at a
time, and row by row. Where a statement must know its rows (``policy.trace_rows``), only the last one is taken.
"""

from collections.abc import Iterator, Sequence
from itertools import compress
from operator import not_
from typing import Any, Final

from applier.model.errors import FatalSinkError, InvariantViolation
from applier.model.events import RowKind
from applier.planner.column_match import key_names
from applier.planner.final_rows import picked
from applier.planner.rejected_rows import PlannedRows
from applier.planner.rendering import GroupPass, TableRenderers
from applier.planner.statement import Phase, Statement, StatementRows

BULK_ROWS: Final = 300
"""Rows of a table from which on they are loaded in bulk: fewer are one REPLACE."""


class TablePlan:
    """The statements of some rows of one table."""

    def __init__(self, renderers: TableRenderers, rows: PlannedRows) -> None:
        self._renderers, self._rows = renderers, rows
        self._description, self._dialect = renderers.exact.description, renderers.exact.dialect

    def statements(self, chosen: Sequence[int]) -> Iterator[Statement]:
        """Yield DELETEs, then REPLACEs. Where no unique index is exactly the key, REPLACE would not find the row: it is deleted before."""
        key = self._key_columns(chosen[0])
        kinds = picked(self._rows.final.kind, chosen)
        has_deletes = RowKind.DELETE in kinds
        upserts = list(compress(chosen, kinds)) if has_deletes else chosen
        # DELETE and REPLACE, never ON DUPLICATE KEY UPDATE: an update may hit another row through a secondary key. With it,
        # 318 of 3,000 simulated histories end wrong.
        deleted: Sequence[int] = list(compress(chosen, map(not_, kinds))) if has_deletes else ()
        if not self._description.has_unique_key(key):
            deleted = chosen
        yield from self._row_by_row(Phase.DELETE, key, deleted)
        # A row that was rejected at its DELETE is not written either.
        if dropped := self._rows.dropped:
            upserts = [row for row in upserts if row not in dropped]
        yield from self._replaces(upserts)

    def _key_columns(self, row: int) -> tuple[str, ...]:
        return tuple(self._spelling(name) for name in self._rows.key or key_names(self._rows.origin(row).shape))

    def _spelling(self, name: str) -> str:
        """Return the sink's spelling; a column that it lacks is reported with the first row that needs it."""
        return next((column.name for column in self._description.columns if column.name.casefold() == name.casefold()), name)

    def _replaces(self, chosen: Sequence[int]) -> Iterator[Statement]:
        _, columns, replaces, loads = self._renderers
        must_trace = self._rows.rejected.policy.trace_rows
        if loads is not None and len(chosen) >= BULK_ROWS and not must_trace:
            groups = GroupPass(loads, self._rows)
            for text, data, number in loads.statements(groups.texts(chosen)):
                yield self._statement(Phase.REPLACE, text, groups.take(number), data=data)
            chosen = groups.left_after()
        if replaces is not None and chosen and not must_trace:
            groups = GroupPass(replaces, self._rows)
            for text, number in replaces.statements(groups.texts(chosen)):
                yield self._statement(Phase.REPLACE, text, groups.take(number))
            chosen = groups.left_after()
        yield from self._row_by_row(Phase.REPLACE, columns, chosen)

    def _row_by_row(self, phase: Phase, columns: tuple[str, ...], chosen: Sequence[int]) -> Iterator[Statement]:
        """Yield the statements of rows that are rendered one by one; a row that cannot be is refused."""
        if not chosen:
            return
        rows, is_delete = self._rows, phase is Phase.DELETE
        render = self._dialect.deletes if is_delete else self._dialect.replaces
        texts: Iterator[Any] = self._renderers.exact.key_texts(rows, chosen) if is_delete else self._renderers.exact.row_texts(rows, chosen)
        rendered = _Rendered(chosen, rows.dropped, texts, keeps_texts=rows.rejected.policy.trace_rows)
        while True:
            try:
                for text, number in render(self._description, columns, rendered.texts):
                    taken, kept = rendered.take(number)
                    yield self._statement(phase, text.encode(), taken, source=self._source(phase, columns, taken, kept))
            # From the dialect, which knows no rows: an error with a commit_ts was raised here and has its place already.
            except FatalSinkError as error:
                if "commit_ts" in error.facts:
                    raise
                # The dialect has yielded all rows before the row that is too large. The next call begins after that row.
                (row,), _ = rendered.take(1)
                rows.refuse(row, error)
            else:
                break
        if left := rendered.left():
            raise InvariantViolation(
                "the dialect rendered fewer rows than it received",
                table=str(self._description.folded),
                rows=len(chosen),
                rendered=len(chosen) - left,
            )

    def _source(self, phase: Phase, columns: tuple[str, ...], taken: Sequence[int], texts: Sequence[Any]) -> StatementRows | None:
        if not texts:
            return None
        return StatementRows(
            phase=phase,
            table=self._description,
            columns=columns,
            key=self._key_columns(taken[0]),
            dialect=self._dialect,
            texts=tuple(texts),
            rows=self._rows.described(taken),
        )

    def _statement(
        self, phase: Phase, text: bytes, taken: Sequence[int], *, data: bytes = b"", source: StatementRows | None = None
    ) -> Statement:
        commits, table = picked(self._rows.final.commit_ts, taken), str(self._description.folded)
        present = self._count_present(taken) if phase is Phase.DELETE else 0
        return Statement(phase, table, text, len(taken), min(commits), max(commits), source, data, present=present)

    def _count_present(self, taken: Sequence[int]) -> int:
        final = self._rows.final
        # Where each row is deleted before it is replaced, the statement's count of rows says nothing about the deleted ones.
        return 0 if any(picked(final.kind, taken)) else final.count_only(taken)


class _Rendered:
    """Rows and their texts. With ``keeps_texts``, the texts of rows that are in no statement yet are kept."""

    def __init__(self, rows: Sequence[int], dropped: set[int], texts: Iterator[Any], *, keeps_texts: bool) -> None:
        self._rows, self._dropped = rows, dropped
        self._done = 0
        self._kept: list[Any] = []
        self.texts = self._keep(texts) if keeps_texts else texts

    def _keep(self, texts: Iterator[Any]) -> Iterator[Any]:
        for text in texts:
            self._kept.append(text)
            yield text

    def take(self, rows: int) -> tuple[Sequence[int], Sequence[Any]]:
        """Return the next ``rows`` rows that were not dropped, and their texts if these are kept."""
        texts = self._kept[:rows]
        del self._kept[:rows]
        # A slice in the usual case; only after a rejected row they are checked one by one.
        if not self._dropped:
            self._done += rows
            return self._rows[self._done - rows : self._done], texts
        taken: list[int] = []
        while len(taken) < rows:
            if self._rows[self._done] not in self._dropped:
                taken.append(self._rows[self._done])
            self._done += 1
        return taken, texts

    def left(self) -> int:
        """Count the rows that are in no statement and were not rejected."""
        return sum(row not in self._dropped for row in self._rows[self._done :])
