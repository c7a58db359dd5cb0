"""A statement that still knows its rows, so that a writer can halve it until it has found the ones that the database refuses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from applier.model.rejected_event import RejectedEvent
from applier.planner.catalogue import TableDescription
from applier.planner.port import Dialect, Phase, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRows:
    """What a statement was rendered from; ``texts`` (row texts, or texts of keys) and ``rows`` run in parallel."""

    phase: Phase
    table: TableDescription
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """The names of the key's columns, in the sink's spelling."""
    dialect: Dialect
    texts: tuple[Any, ...]
    rows: tuple[RejectedEvent, ...]

    def halves(self) -> Iterator[Statement]:
        """Render the two halves of the rows."""
        middle = len(self.rows) // 2
        for begin, end in ((0, middle), (middle, len(self.rows))):
            yield from self._rendered(self.texts[begin:end], self.rows[begin:end])

    def _rendered(self, texts: Sequence[Any], rows: Sequence[RejectedEvent]) -> Iterator[Statement]:
        render = self.dialect.deletes if self.phase is Phase.DELETE else self.dialect.replaces
        done = 0
        for text, number in render(self.table, self.columns, texts):
            mine = rows[done : done + number]
            commits = [row.commit_ts for row in mine]
            parts = StatementRows(
                phase=self.phase,
                table=self.table,
                columns=self.columns,
                key=self.key,
                dialect=self.dialect,
                texts=tuple(texts[done : done + number]),
                rows=tuple(mine),
            )
            yield Statement(self.phase, str(self.table.folded), text, number, min(commits), max(commits), parts)
            done += number
