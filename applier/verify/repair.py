"""Writes the statements that make the sink equal to upstream. They are never executed here.

All deletes of a table come before its first REPLACE: a row that is wrong may hold a value of a secondary unique key that a right row needs.

The file sets what its statements depend on, whoever executes it: character set, time zone, and a strict sql_mode, so that a value that the
sink does not hold ends the file instead of being cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from applier.model.errors import ApplierError
from applier.model.events import TableName
from applier.model.position import Timeline, Ts
from applier.planner.port import Dialect, Literal
from applier.sinks.table_pair import ColumnPair, ServerKind, TablePair
from applier.sinks.table_reader import Value
from applier.telemetry.wording import count, one_line, time_text
from applier.verify.difference import RowDifference, RowState, TableResult
from applier.verify.holding import is_empty_enum, require_certainty, require_held
from applier.verify.value import wire_type, wire_value


@dataclass(slots=True)
class Repair:
    """The file's content. ``unwritten``: rows that the sink's table cannot hold, counted while the content is taken."""

    dialect: Dialect
    kind: ServerKind
    replica: str
    ts: Ts
    timeline: Timeline
    unwritten: int = field(default=0)

    def pieces(self, pairs: Mapping[TableName, TablePair], results: Sequence[TableResult]) -> Iterator[str]:
        """Yield the text of the file."""
        repaired = [result for result in results if result.differences]
        yield from self._head(repaired, [result for result in results if not result.is_equal and not result.differences])
        yield "".join(f"{line};\n" for line in self.kind.begins)
        for result in repaired:
            yield f"\n-- {one_line(str(result.name))}\n"
            yield from self._statements(pairs[result.name], result.differences)
        yield "\nCOMMIT;\n"

    def _head(self, repaired: Sequence[TableResult], others: Sequence[TableResult]) -> Iterator[str]:
        rows = count(sum(len(result.differences) for result in repaired), "row")
        yield f"-- Repairs {rows} of the sink of the replica {self.replica!r}. Written by `applier verify`, which executes none of it.\n"
        if self.ts:
            at = f"{self.ts} ({time_text(self.ts, self.timeline)})"
            yield f"-- Right for the sink at checkpoint {at} only: stop the applier, compare the checkpoint\n"
            yield "-- (`applier status`), and run `applier verify` again if it is another one.\n"
        else:
            yield "-- Right for the time of the comparison only: nothing may write to the sink before these statements have run.\n"
        for result in repaired:
            if result.is_cut:
                yield f"-- {one_line(str(result.name))} has more differences: run `applier verify` again after these statements.\n"
        for result in others:
            reason = result.problem or "no key finds its rows that differ"
            yield f"-- Not repaired here: {one_line(str(result.name))}: {one_line(reason)}\n"

    def _statements(self, pair: TablePair, differences: Sequence[RowDifference]) -> Iterator[str]:
        written = [(at, column) for at, column in enumerate(pair.columns) if not column.is_generated]
        deletes: list[list[str]] = []
        replaces: dict[bool, list[str]] = {False: [], True: []}
        for each in differences:
            try:
                key = self._literals(pair.key, each.key)
                values = None if each.row is None else [each.row[at] for at, _ in written]
                row = None if values is None else self._row([column for _, column in written], values)
            except (ApplierError, ValueError) as error:
                # Neither half of it: a row that cannot be written again must not be deleted.
                self.unwritten += 1
                yield f"-- A row is skipped: {one_line(str(error) if isinstance(error, ApplierError) else type(error).__name__)}\n"
                continue
            if each.state is not RowState.MISSING:
                deletes.append(key)
            if row is not None:
                replaces[row.has_empty_enum].append(row.text)
        for statement, _ in self.dialect.deletes(pair.sink.description, [column.sink.name for column in pair.key], deletes):
            yield f"{statement};\n"
        names = [column.sink.name for _, column in written]
        for statement, _ in self.dialect.replaces(pair.sink.description, names, replaces[False]):
            yield f"{statement};\n"
        if replaces[True]:
            yield f"{self.kind.lenient[0]};\n"
            for statement, _ in self.dialect.replaces(pair.sink.description, names, replaces[True]):
                yield f"{statement};\n"
            yield f"{self.kind.lenient[1]};\n"

    def _row(self, columns: Sequence[ColumnPair], values: Sequence[Value]) -> "_Row":
        """Render a row. ApplierError or ValueError: the sink's columns cannot hold it."""
        literals = [self._literal(column) for column in columns]
        pairs = [(column, wire_value(column, value)) for column, value in zip(columns, values, strict=True)]
        for column, value in pairs:
            if value is None or not self.kind.has_own_types:
                require_held(column, value)
        has_empty_enum = not self.kind.has_own_types and any(is_empty_enum(column, value) for column, value in pairs)
        for column, value in pairs if has_empty_enum else ():
            require_certainty(column, value)
        text = ",".join(literal(value) for literal, (_, value) in zip(literals, pairs, strict=True))
        return _Row(f"({text})", has_empty_enum=has_empty_enum)

    def _literals(self, columns: Sequence[ColumnPair], values: Sequence[Value]) -> list[str]:
        """Render values as the applier itself would. ApplierError or ValueError: the sink's columns cannot hold them."""
        return [self._literal(column)(wire_value(column, value)) for column, value in zip(columns, values, strict=True)]

    def _literal(self, column: ColumnPair) -> Literal:
        mysql_type, is_bytes = wire_type(column)
        return self.dialect.literal(column.sink.description, mysql_type, is_bytes=is_bytes)


class _Row(NamedTuple):
    """A rendered row, and whether only a session that is not strict writes it."""

    text: str
    has_empty_enum: bool
