"""Transactions on the session that holds the replica's lock. DDLs run on no other session."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection

from applier.sinks.mysql.owner_transaction import commit_owned
from applier.sinks.mysql.ownership import Ownership

T = TypeVar("T")


class OwnerSession:
    """The session of ``ownership``. ``retries``: how often a transaction that was rolled back is repeated."""

    def __init__(self, ownership: Ownership, retries: int) -> None:
        self._ownership, self._retries = ownership, retries

    @property
    def connection(self) -> Connection:
        """The session. No transaction is open between two calls."""
        return self._ownership.connection

    def commit(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run ``work`` and COMMIT. Errors: ``commit_owned``."""
        return commit_owned(self._ownership, self._retries, work, doing, **facts)

    def commit_once(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run ``work`` and COMMIT without a repetition. Errors: ``commit_owned``."""
        return commit_owned(self._ownership, 0, work, doing, **facts)

    def retake(self) -> None:
        """Replace a lost session. The server's end of the old one is killed, so that it sends no statement any more."""
        self._ownership.retake()
