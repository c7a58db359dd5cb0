"""Loads a dump into the sink: what it defines as DDLs, then its rows, several tables at once; views last. Reports its progress."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import Final

from applier.dump.definitions import Definitions
from applier.dump.inventory import DumpFile, FileKind, Inventory, schema_of
from applier.dump.statements import Piece, PieceKind, pieces
from applier.model.errors import ConfigError, Remedy
from applier.model.events import TableName
from applier.sinks.registry import kit_of
from applier.sinks.settings import SinkSettings
from applier.sources.dump_text import PACKED, UNREADABLE, open_bytes

NOTE_EVERY_S: Final = 5.0
_DEFINING: Final = frozenset({PieceKind.SCHEMA, PieceKind.TABLE, PieceKind.VIEW, PieceKind.LEFT_OUT})
_MEGA: Final = 1_000_000


@dataclass(slots=True)
class LoadProgress:
    """How much has been loaded: rows of each table, and bytes of statements. ``note`` is called now and then."""

    note: Callable[[str], None]
    total_bytes: int
    """Of all files; 0: not known, because they are compressed."""
    rows: dict[TableName, int] = field(default_factory=dict)
    read_bytes: int = 0
    _noted_at: float = field(default_factory=monotonic)
    _lock: Lock = field(default_factory=Lock)

    def add(self, table: TableName, rows: int, size: int) -> None:
        """Count a statement. Any thread may call it."""
        with self._lock:
            self.rows[table] = self.rows.get(table, 0) + rows
            self.read_bytes += size
            if monotonic() - self._noted_at >= NOTE_EVERY_S:
                self._noted_at = monotonic()
                self.note(self.text)

    @property
    def text(self) -> str:
        """Both numbers, for people."""
        of_all = f" of {self.total_bytes / _MEGA:,.1f}" if self.total_bytes else ""
        return f"{sum(self.rows.values()):,} rows, {self.read_bytes / _MEGA:,.1f}{of_all} MB"


@dataclass(frozen=True, slots=True)
class DumpLoad:
    """One load of ``inventory`` through ``definitions``; ``threads`` tables are loaded at the same time."""

    inventory: Inventory
    definitions: Definitions
    settings: SinkSettings
    threads: int
    note: Callable[[str], None]

    def run(self) -> LoadProgress:
        """Load everything. The errors of the sink; ConfigError: a file cannot be read, or says what is not known."""
        paths = [file.path for file in self.inventory.files]
        is_packed = any(path.suffix in PACKED for path in paths)
        progress = LoadProgress(self.note, 0 if is_packed else sum(path.stat().st_size for path in paths))
        for kind in (FileKind.SCHEMA, FileKind.TABLE, FileKind.SEQUENCE, FileKind.VIEW):
            for file in self._defining(kind):
                self._define(file)
        self._all(self.inventory.of(FileKind.ROWS), progress)
        for file in self.inventory.of(FileKind.WHOLE):
            self._load(file, progress, Event())
        self.definitions.finish()
        self.note(progress.text)
        return progress

    def _defining(self, kind: FileKind) -> list[DumpFile]:
        """Return files of a kind, without the files of tables that represent views."""
        views = {file.table for file in self.inventory.of(FileKind.VIEW)}
        return [file for file in self.inventory.of(kind) if kind is not FileKind.TABLE or file.table not in views]

    def _define(self, file: DumpFile) -> None:
        with _content(file.path) as found:
            for piece in found:
                if piece.kind in _DEFINING:
                    self.definitions.make(piece, file.table.schema)
                elif piece.kind is PieceKind.ROWS:
                    raise ConfigError(
                        "a file of definitions holds rows",
                        remedy=Remedy("dump.dump-again-after-change", "Dump again, into an empty directory"),
                        file=file.path,
                        table=piece.name,
                    )

    def _all(self, files: Iterable[DumpFile], progress: LoadProgress) -> None:
        """Load tables in parallel, the files of one table one by one: two inserts into one table may meet in a deadlock."""
        of_table: dict[TableName, list[DumpFile]] = {}
        for file in files:
            if self.definitions.has(file.table):
                of_table.setdefault(file.table, []).append(file)
        has_failed = Event()
        # A local database has one writer at a time.
        with ThreadPoolExecutor(1 if kit_of(self.settings.url).local else self.threads) as pool:
            futures = [pool.submit(self._in_turn, group, progress, has_failed) for group in of_table.values()]
            done, rest = wait(futures, return_when=FIRST_EXCEPTION)
            for future in rest:
                future.cancel()
        for future in done:
            future.result()

    def _in_turn(self, files: Iterable[DumpFile], progress: LoadProgress, has_failed: Event) -> None:
        try:
            for file in files:
                if has_failed.is_set():
                    return
                self._load(file, progress, has_failed)
        except BaseException:
            has_failed.set()
            raise

    def _load(self, file: DumpFile, progress: LoadProgress, has_failed: Event) -> None:
        """Load a file of rows, or one with everything in its order."""
        schema = file.table.schema or schema_of(file.path)
        loader = kit_of(self.settings.url).loader(self.settings)
        with loader.open_rows(self.definitions.form, file.path.name) as session, _content(file.path) as found:
            for piece in found:
                match piece.kind:
                    case PieceKind.USE:
                        schema = piece.schema
                    case PieceKind.ROWS if not has_failed.is_set():
                        table = TableName(piece.schema or schema, piece.name)
                        if self.definitions.has(table):
                            progress.add(
                                table, session.write(piece.text, piece.end, self.definitions.selection.name(table)), len(piece.text)
                            )
                    case PieceKind.CHARSET:
                        session.set_charset(piece.name)
                    case PieceKind.ZONE:
                        session.set_zone(piece.name)
                    case kind if kind in _DEFINING:
                        # A foreign key's definition waits for whoever has written to its parent.
                        session.commit()
                        self.definitions.make(piece, schema)
                    case _:
                        pass


@contextmanager
def _content(path: Path) -> Iterator[Iterator[Piece]]:
    try:
        with open_bytes(path) as content:
            yield pieces(content)
    except UNREADABLE as error:
        message = f"a file of the dump cannot be read: {error}"
        raise ConfigError(
            message, remedy=Remedy("dump.check-dump-file", "Check its permissions. If it is damaged, copy the dump again"), file=path
        ) from error
    except ConfigError as error:
        error.facts.setdefault("file", path)
        raise
