"""When one sender of rows sends the schemas of its tables, in formats whose rows do not have their types (canal_json_and_simple.md 6)."""

from dataclasses import dataclass

from applier.demo.simulator.item import RowItem
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.wire_format import WireOptions

TICK_MS = 5_000
SILENCE_MS = 30 * 60_000
"""A table without rows for so long is forgotten."""


@dataclass(slots=True)
class _KnownTable:
    """``topic`` stays as it was at the first row, even after a RENAME into another one."""

    topic: str
    last_row: RowItem
    last_row_ms: int
    sent_ms: int
    rows: int = 0


class BootstrapSender:
    """The tables of one node: tiflow counts each partition of one. A new owner, or another node for a table, begins with none."""

    def __init__(self, options: WireOptions, flavour: Flavour) -> None:
        self._options = options
        self._flavour = flavour
        self._known: dict[int, _KnownTable] = {}
        self._next_tick_ms = 0

    @property
    def is_on(self) -> bool:
        """Whether it sends anything."""
        return self._options.bootstraps_rows

    def notes(self, item: RowItem, topic: str, now_ms: int) -> bool:
        """Note a row that is about to be sent, and return whether the schema comes before it."""
        number = item.physical_id if self._flavour is Flavour.TIFLOW else item.schema.table_id
        known = self._known.get(number)
        if known is None:
            self._known[number] = _KnownTable(topic, item, now_ms, now_ms, 1)
            return True
        known.last_row, known.last_row_ms = item, now_ms
        known.rows += 1
        return False

    def due(self, now_ms: int) -> list[tuple[str, RowItem]]:
        """Return the tables that are due at a tick: the topic, and the last row seen, whose version is sent."""
        if now_ms < self._next_tick_ms:
            return []
        self._next_tick_ms = now_ms + TICK_MS
        self._known = {number: known for number, known in self._known.items() if now_ms - known.last_row_ms <= SILENCE_MS}
        found = []
        for known in self._known.values():
            if now_ms - known.sent_ms >= self._options.bootstrap_ms or known.rows >= self._options.bootstrap_rows:
                known.sent_ms, known.rows = now_ms, 0
                found.append((known.topic, known.last_row))
        return found
