"""Events as a table for people: time, TSO, operation, table, key, and the place of the record. Colours on a terminal only."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from types import MappingProxyType
from typing import Final, assert_never

import typer

from applier.cli.inspected import Inspected, LogOrigin, row_text, table_text, unreadable_text
from applier.model.errors import NeedsOperator, ProtocolError
from applier.model.events import AdminEvent, DdlEvent, Event, ResolvedEvent, RowEvent
from applier.model.position import Ts
from applier.model.timeline import moment_of
from applier.telemetry.log import utc_text
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
    of_log: bool = False
    """Whether the events are a binlog's: places are ``FILE:POSITION``, and GTIDs stand where a topic's events have their TSO."""
    _table_width: int = 12
    _date: str = ""
    _colours: bool = field(default=False)

    @classmethod
    def of_terminal(cls, place_width: int = 0, *, of_log: bool = False) -> "EventTable":
        """Make the table for the present standard output."""
        is_terminal = sys.stdout.isatty()
        width = os.get_terminal_size(sys.stdout.fileno()).columns if is_terminal else None
        return cls(width or None, place_width, of_log, _colours=is_terminal and not os.environ.get("NO_COLOR"))

    @property
    def _is_narrow(self) -> bool:
        return self.width is not None and self.width < WIDE

    def header(self) -> str:
        """Return the names of the columns."""
        names = ("GTID", "OP", "POSITION") if self.of_log else ("TSO", "OP", "PLACE")
        return self._cut(self._joined("TIME (UTC)", *names, "TABLE", "KEY"))

    def lines(self, inspected: Inspected) -> Iterator[str]:
        """Yield the lines of one record."""
        origin = inspected.origin
        place = str(inspected.place) if origin is None else origin.position
        if isinstance(inspected.content, ProtocolError | NeedsOperator):
            ts = inspected.content.facts.get("commit_ts")
            yield from self._of_event(_when(origin, ts), "error", place, "", unreadable_text(inspected.content))
        elif not inspected.content:
            yield from self._of_event(_when(origin, None), "-", place, "", "no events")
        else:
            for event in inspected.content:
                ts = event.ts if isinstance(event, ResolvedEvent | AdminEvent) else event.commit_ts
                yield from self._of_event(_when(origin, ts), *_cells(event, place))

    def _of_event(self, when: tuple[str, str], operation: str, place: str, table: str, text: str) -> Iterator[str]:
        time, ts = when
        if self._is_narrow and time:
            date, _, time = time.partition(" ")
            if date != self._date:
                self._date = date
                yield date
        head = time, ts, operation, place, table
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


def _when(origin: LogOrigin | None, ts: int | None) -> tuple[str, str]:
    """Return an event's time, and its TSO or its GTID."""
    if origin is not None:
        return utc_text(moment_of(origin.time_ms)), origin.gtid
    return ("", "") if ts is None else (time_text(Ts(ts)), str(ts))


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
