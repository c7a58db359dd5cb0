"""Opens a vault: the rows in one file, the bookkeeping in another one, which is attached as a schema."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError

from applier.model.errors import ApplierError, FatalSinkError, Remedy, RetryableSinkError, RowRefused
from applier.sinks.settings import SinkSettings


@dataclass(frozen=True, slots=True)
class Vault:
    """Where a vault lies. Picklable."""

    path: str
    schema: str

    @classmethod
    def of(cls, settings: SinkSettings) -> "Vault":
        return cls(str(make_url(settings.url).database), settings.schema)

    def engine(self) -> Engine:
        engine = create_engine(f"sqlite:///{self.path}", poolclass=NullPool, connect_args={"isolation_level": None, "timeout": 5.0})
        event.listen(engine, "connect", self._set_up)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine

    def _set_up(self, connection: Any, _entry: object) -> None:
        connection.execute(f"ATTACH DATABASE '{self.path}.books' AS \"{self.schema}\"")
        connection.create_function("vault_clock", 0, lambda: datetime.now(UTC).replace(tzinfo=None).isoformat(" "))

    @contextmanager
    def transaction(self, **facts: Any) -> Iterator[Connection]:
        try:
            with self.engine().begin() as connection:
                yield connection
        except (DBAPIError, sqlite3.Error) as error:
            raise translated(error, **facts) from error


def raw(connection: Connection) -> sqlite3.Connection:
    return connection.connection.driver_connection


def translated(error: Exception, **facts: Any) -> ApplierError:
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.IntegrityError):
        return RowRefused("the vault refuses a row", remedy=Remedy("vault.look", "Look into the vault"), reason=str(cause), **facts)
    if "locked" in str(cause):
        return RetryableSinkError("the vault is busy", reason=str(cause), **facts)
    return FatalSinkError("the vault failed", remedy=Remedy("vault.look", "Look into the vault"), reason=str(cause), **facts)
