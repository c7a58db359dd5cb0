"""Looks at a replica's checkpoint from outside, with its own session, through every fault of the server."""

import time
from types import TracebackType
from typing import Self

import pymysql

from applier.model.position import NO_TS, Ts
from tests.rig.mysql_oracle import connect

QUERY = "SELECT checkpoint_ts, window_id, epoch FROM applier.progress WHERE name = %s"


class CheckpointReader:
    """Reads what has been committed of one replica."""

    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = url, name
        self._connection: pymysql.connections.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._forget()

    def read(self) -> tuple[Ts, int, int] | None:
        """Return (checkpoint_ts, window_id, epoch); None before the replica has begun, and while the server does not answer."""
        try:
            if self._connection is None:
                self._connection = connect(self._url)
                self._connection.autocommit(True)
            with self._connection.cursor() as cursor:
                cursor.execute(QUERY, (self._name,))
                row = cursor.fetchone()
        except (pymysql.Error, OSError):
            self._forget()
            return None
        return None if row is None else (Ts(int(row[0])), int(row[1]), int(row[2]))

    @property
    def ts(self) -> Ts:
        """The checkpoint; 0 where it cannot be read."""
        row = self.read()
        return NO_TS if row is None else row[0]

    def passes(self, ts: Ts, within_s: float, *, poll_s: float = 0.05) -> bool:
        """Wait until the checkpoint is at ``ts`` or beyond; False if it does not get there in time."""
        give_up = time.monotonic() + within_s
        while self.ts < ts:
            if time.monotonic() > give_up:
                return False
            time.sleep(poll_s)
        return True

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection.close()
