"""The ranges that were found equal, in a file, so that a verification that was interrupted continues where it ended.

A range counts only at the checkpoint at which it was compared: after it, both sides may have changed. The bounds are keys of rows, so
only the file's owner may read it.
"""

import json
import threading
import time
from pathlib import Path
from typing import Any, Final

from applier.model.errors import ConfigError, Remedy
from applier.model.position import NO_TS, Ts
from applier.sinks.table_pair import TablePair
from applier.sinks.table_reader import Checksum, Key, Scope
from applier.verify.difference import RangeResult
from applier.verify.private_file import write_private

FORMAT: Final = 1
SAVE_INTERVAL_S: Final = 2.0

Entry = tuple[Ts, Checksum]


class FinishedRanges:
    """The file, or nothing (``path`` None). ``identity`` names both databases: a file of others is refused. Any thread may add."""

    def __init__(self, path: Path | None, identity: str) -> None:
        self._path = path
        self._identity = identity
        self._lock = threading.Lock()
        self._saved_at = time.monotonic()
        self._ranges: dict[str, Entry] = {}
        if path is not None and path.exists():
            self._ranges = self._read(path)

    def is_behind(self, ts: Ts) -> bool:
        """Return whether the file holds ranges of another checkpoint than the sink's present one."""
        return any(found != ts for found, _ in self._ranges.values())

    def find(self, pair: TablePair, scope: Scope, ts: Ts) -> RangeResult | None:
        """Return the result of a range that was equal at this checkpoint; None if it must be compared."""
        found = self._ranges.get(_name(pair, scope))
        if found is None or found[0] != ts or ts == NO_TS:
            return None
        return RangeResult(ts=ts, upstream=found[1], sink=found[1])

    def add(self, pair: TablePair, scope: Scope, result: RangeResult) -> None:
        """Add a range, if it was equal; the file is written every few seconds."""
        if self._path is None or result.upstream != result.sink or result.ts == NO_TS:
            return
        with self._lock:
            self._ranges[_name(pair, scope)] = (result.ts, result.upstream)
            if time.monotonic() - self._saved_at >= SAVE_INTERVAL_S:
                self._save()

    def save(self) -> None:
        """Write the file."""
        with self._lock:
            self._save()

    def _save(self) -> None:
        if self._path is None:
            return
        ranges = {name: [ts, rows.rows, rows.total] for name, (ts, rows) in self._ranges.items()}
        write_private(self._path, [json.dumps({"format": FORMAT, "of": self._identity, "equal": ranges})])
        self._saved_at = time.monotonic()

    def _read(self, path: Path) -> dict[str, Entry]:
        remedy = Remedy("verify.name-other-file", "Name another file, or delete this one to begin from the start")
        try:
            document: Any = json.loads(path.read_text(encoding="utf-8"))
            if document["format"] != FORMAT or document["of"] != self._identity:
                raise ConfigError("the state file is of another comparison", remedy=remedy, path=str(path))
            return {name: (Ts(ts), Checksum(rows, total)) for name, (ts, rows, total) in document["equal"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError("the state file cannot be read", remedy=remedy, path=str(path)) from error


def _name(pair: TablePair, scope: Scope) -> str:
    """Name a range: the table, what is compared of it, and its bounds."""
    forms = [f"{column.name} {column.form} {column.scale} {column.upstream.description.sql_type}" for column in pair.columns]
    return json.dumps([str(pair.upstream.name), str(pair.name), forms, _shown(scope.low), _shown(scope.high)])


def _shown(key: Key | None) -> list[str] | None:
    return None if key is None else [part.hex() for part in key]
