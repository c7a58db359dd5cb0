"""Registers the sessions of a replica, so that a take-over can end the sessions of a dead or frozen run.

Each session holds a named lock under its own token and writes the token into ``owner_session``. A session's number alone would
prove nothing: servers reuse them. The lock does: it is free once the session has ended, and names the session while it lives.
"""

import os
import socket
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import FatalSinkError, Remedy
from applier.mysql.errors import code_of
from applier.mysql.queries import QUERIES
from applier.mysql.session import transaction
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.owner_table import SessionRow, SessionTable

NO_SUCH_THREAD = 1094


@dataclass(frozen=True, slots=True)
class SessionRegistry:
    """The registered sessions of the replica that ``bookkeeping`` is of. Database errors come through as SQLAlchemy's."""

    bookkeeping: Bookkeeping

    def register(self, connection: Connection) -> str:
        """Register the session ``connection`` and return its token. Deletes sessions that have ended."""
        token = f"applier:{uuid4().hex}"
        # The lock comes first: a row without a lock is a session that has ended.
        if not take_lock(connection, token, 0):
            message = "the server refuses a lock to a new session"
            raise FatalSinkError(
                message, remedy=Remedy("mysql.use-server-with-get-lock", "Use a server whose GET_LOCK allows several locks per session")
            )
        with transaction(connection):
            for session in SessionTable(self.bookkeeping).read(connection):
                if lock_holder(connection, session.token) is None:
                    SessionTable(self.bookkeeping).forget(connection, session.token)
            SessionTable(self.bookkeeping).register(connection, SessionRow(token, socket.gethostname(), os.getpid()))
        return token

    def end_others(self, connection: Connection, own: str) -> None:
        """End every registered session but ``own``; what they had not committed is rolled back."""
        with transaction(connection):
            for session in SessionTable(self.bookkeeping).read(connection):
                if session.token != own:
                    end_holder(connection, session.token)


def take_lock(connection: Connection, lock_name: str, timeout_s: float) -> bool:
    """Take a named lock within ``timeout_s``; the session holds it until it is released or the session ends."""
    return bool(connection.execute(QUERIES["lock_get"], {"lock_name": lock_name, "timeout_s": timeout_s}).scalar_one())


def release_lock(connection: Connection, lock_name: str) -> None:
    """Release a named lock."""
    connection.execute(QUERIES["lock_release"], {"lock_name": lock_name})


def lock_holder(connection: Connection, lock_name: str) -> int | None:
    """Return the number of the session that holds a named lock; None if it is free."""
    holder = connection.execute(QUERIES["lock_holder"], {"lock_name": lock_name}).scalar_one()
    return None if holder is None else int(holder)


def end_holder(connection: Connection, lock_name: str) -> None:
    """End the session that holds a named lock, if there is one."""
    # By the lock and not by a stored number: the server may have given the number to another user's session since.
    holder = lock_holder(connection, lock_name)
    if holder is None:
        return
    try:
        connection.execute(QUERIES["session_kill"], {"session_id": holder})
    except SQLAlchemyError as error:
        # It ended in between.
        if code_of(error) != NO_SUCH_THREAD:
            raise
