"""The kit of SQLite."""

import os
from contextlib import AbstractContextManager
from typing import Final

from sqlalchemy import URL, Connection

from applier.model.errors import FatalSinkError, Remedy
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.kit import SinkKit
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.bookkeeping import bookkeeping_of
from applier.sinks.sqlite.chunk_writer import SqliteChunkWriter
from applier.sinks.sqlite.dump_loader import FileLoader
from applier.sinks.sqlite.session import database_path, glancing, read_file_url, require_file_place
from applier.sinks.sqlite.sink import SqliteSink
from applier.sinks.sqlite.table_reader import SqliteReader


class SqliteKit(SinkKit):
    """A file."""

    local = "a SQLite file"

    def read_url(self, text: str) -> URL:
        """Return the URL of a file."""
        return read_file_url(text)

    def open_sink(self, settings: SinkSettings) -> SqliteSink:
        """Return the sink."""
        return SqliteSink(settings)

    def open_glance(self, settings: SinkSettings, *, changes: bool) -> AbstractContextManager[Connection]:
        """Give a connection for one short transaction."""
        return glancing(settings.url, changes=changes)

    def open_reader(self, settings: SinkSettings, *, is_upstream: bool, statement_timeout_s: int) -> SqliteReader:
        """Return what `verify` reads tables with."""
        del is_upstream, statement_timeout_s
        return SqliteReader(settings)

    def loader(self, settings: SinkSettings) -> FileLoader:
        """Return what loads dumps."""
        return FileLoader(settings)

    def chunk_writer(self, settings: SinkSettings) -> SqliteChunkWriter:
        """Return what writes copied rows."""
        return SqliteChunkWriter(settings)

    def bookkeeping(self, settings: SinkSettings) -> Bookkeeping:
        """Return where the bookkeeping lies."""
        return bookkeeping_of(settings)

    def is_system_schema(self, name: str) -> bool:
        """Return whether table names may not begin so: the schema is their prefix."""
        return name.startswith("sqlite")

    def is_there(self, settings: SinkSettings) -> bool:
        """Return whether the file exists. FatalSinkError: it cannot be made or written; neither is done here."""
        path = database_path(settings.url)
        require_file_place(path)
        if not os.access(path if path.exists() else path.parent, os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
            raise FatalSinkError(
                "the SQLite file cannot be written",
                remedy=Remedy("check.let-user-write-file", "Let the applier's user write to it and to its directory"),
                path=str(path),
            )
        return path.exists()


KIT: Final = SqliteKit()
