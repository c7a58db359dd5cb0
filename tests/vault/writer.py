"""The writer of a vault: the shared write transaction over its own session."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from applier.model.errors import ApplierError, UnknownOutcome
from applier.planner.port import Statement
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.xa_table import read_pieces
from tests.vault.session import Vault, raw, translated


@dataclass(frozen=True, slots=True)
class VaultSession:
    connection: Connection

    def execute(self, statement: Statement) -> int:
        return raw(self.connection).execute(statement.text.decode()).rowcount

    def read(self, statement: Statement) -> list[tuple[Any, ...]]:
        return raw(self.connection).execute(statement.text.decode()).fetchall()

    def control(self, command: str) -> None:
        raw(self.connection).execute(command)

    def commit(self) -> None:
        self.connection.commit()

    def translate(self, error: Exception, doing: str, **facts: Any) -> ApplierError | None:
        del doing
        return translated(error, **facts) if isinstance(error, DBAPIError | sqlite3.Error) else None

    def translate_commit(self, error: Exception) -> ApplierError | None:
        return UnknownOutcome("the vault has not answered") if isinstance(error, DBAPIError | sqlite3.Error) else None

    def release(self) -> None:
        self.connection.close()

    discard = release


@dataclass(frozen=True, slots=True)
class VaultSessions:
    vault: Vault

    def locked(self, lock: Callable[[Connection], Any]) -> tuple[VaultSession, Any]:
        connection = self.vault.engine().connect()
        try:
            connection.begin()
            return VaultSession(connection), lock(connection)
        except (DBAPIError, sqlite3.Error) as error:
            connection.close()
            raise translated(error) from error


@dataclass(frozen=True, slots=True)
class VaultXaReader:
    vault: Vault
    bookkeeping: Bookkeeping

    def read(self, place: int) -> Iterator[bytes]:
        with self.vault.transaction() as connection:
            yield from read_pieces(self.bookkeeping, connection, place)
