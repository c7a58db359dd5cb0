"""Events as a table for people: time, TSO, operation, table, key, and the place of the record. Colours on a terminal only."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from types import MappingProxyType
from typing import Final, assert_never

import typer

from applier.cli.inspected import Inspected, row_text, table_text, unreadable_text
from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, DdlEvent, Event, ResolvedEvent, RowEvent
from applier.model.position import Ts
from applier.telemetry.wording import count, one_line, time_text

COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {"insert": "green", "update": "yellow", "delete": "red", "ddl": "cyan", "resolved": "bright_black", "error": "bright_red"}
)
TIME_WIDTH: Final = 24
TS_WIDTH: Final = 18
OPERATION_WIDTH: Final = 8
MAX_TABLE_WIDTH: Final = 40
WIDE: Final = 120
"""From this width on each line has the date. On a narrower terminal the date has a line of its own, where it changes."""
WHOLE: Final = frozenset({"error", "ddl"})
"""What is never cut: a text that does not fit stands below its line. Of a row, the first part of its key tells enough."""
INDENT: Final = " " * 4
DATE_LENGTH: Final = len("2025-01-01 ")


@dataclass(slots=True)
class EventTable:
    """Makes the lines, one event after the other. ``width``: of the terminal; None: the output is no terminal and is never cut."""

    width: int | None = None
    place_width: int = 0
    _table_width: int = 12
    _date: str = ""
    _colours: bool = field(default=False)

    @classmethod
    def of_terminal(cls, place_width: int = 0) -> "EventTable":
        """Make the table for the present standard output."""
        is_terminal = sys.stdout.isatty()
        width = os.get_terminal_size(sys.stdout.fileno()).columns if is_terminal else None
        return cls(width or None, place_width, _colours=is_terminal and not os.environ.get("NO_COLOR"))

    @property
    def _is_narrow(self) -> bool:
        return self.width is not None and self.width < WIDE

    def header(self) -> str:
        """Return the names of the columns."""
        return self._cut(self._joined("TIME (UTC)", "TSO", "OP", "PLACE", "TABLE", "KEY"))

    def lines(self, inspected: Inspected) -> Iterator[str]:
        """Yield the lines of one record."""
        place = str(inspected.place)
        if isinstance(inspected.content, ProtocolError):
            ts = inspected.content.facts.get("commit_ts")
            yield from self._of_event(None if ts is None else Ts(ts), "error", place, "", unreadable_text(inspected.content))
        elif not inspected.content:
            yield from self._of_event(None, "-", place, "", "no events")
        else:
            for event in inspected.content:
                yield from self._of_event(
                    event.ts if isinstance(event, ResolvedEvent | AdminEvent) else event.commit_ts, *_cells(event, place)
                )

    def _of_event(self, ts: Ts | None, operation: str, place: str, table: str, text: str) -> Iterator[str]:
        time = "" if ts is None else time_text(ts)
        if self._is_narrow and time:
            date, _, time = time.partition(" ")
            if date != self._date:
                self._date = date
                yield date
        head = time, "" if ts is None else str(ts), operation, place, table
        lines = [self._joined(*head, text)]
        if self.width is not None and operation in WHOLE and len(lines[0]) > self.width:
            lines = [self._joined(*head, ""), *wrap(text, self.width, initial_indent=INDENT, subsequent_indent=INDENT)]
        colour = COLOURS.get(operation)
        for line in map(self._cut, lines):
            yield typer.style(line, fg=colour) if self._colours and colour else line

    def _joined(self, time: str, ts: str, operation: str, place: str, table: str, text: str) -> str:
        time_width = TIME_WIDTH - DATE_LENGTH if self._is_narrow else TIME_WIDTH
        self.place_width = max(self.place_width, len(place))
        self._table_width = max(self._table_width, min(len(table), MAX_TABLE_WIDTH))
        head = f"{time:{time_width}} {ts:{TS_WIDTH}} {operation:{OPERATION_WIDTH}} {place:{self.place_width}}"
        return f"{head} {table:{self._table_width}} {text}".rstrip()

    def _cut(self, line: str) -> str:
        return line if self.width is None or len(line) <= self.width else line[: self.width - 1] + "…"


def _cells(event: Event, place: str) -> tuple[str, str, str, str]:
    match event:
        case RowEvent():
            return event.operation.value, place, table_text(event), row_text(event)
        case DdlEvent():
            return "ddl", place, table_text(event), one_line(event.query)
        case ResolvedEvent():
            return "resolved", place, "", ""
        case AdminEvent():
            return "admin", place, "", count(event.partition, "partition")
        case _:
            assert_never(event)
