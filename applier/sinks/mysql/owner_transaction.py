"""Transactions on the session that holds the replica lock: retried where that is safe, reported where the outcome is unknown."""

from collections.abc import Callable
from typing import Any, TypeVar

import stamina
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import RetryableSinkError, SinkError, UnknownOutcome
from applier.mysql.errors import ErrorVerdict, meaning_of, translate
from applier.mysql.session import roll_back
from applier.sinks.mysql.ownership import Ownership

T = TypeVar("T")


def commit_owned(ownership: Ownership, retries: int, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
    """Run ``work`` and COMMIT on the owner's session; return what ``work`` returned.

    What was rolled back is retried, at most ``retries`` times, on a new session if the old one is lost. UnknownOutcome if the answer to
    COMMIT was lost; Fenced if another run has become the owner; other errors of ``work`` come through.
    """
    for attempt in stamina.retry_context(on=RetryableSinkError, attempts=retries + 1, timeout=None):
        with attempt:
            # Not before the first attempt: the check costs a round trip, and a lost session is found by the work itself.
            if attempt.num > 1:
                ownership.ensure()
            return _once(ownership.connection, work, doing, facts)
    raise RetryableSinkError("retries ended without an outcome", doing=doing)


def _once(connection: Connection, work: Callable[[Connection], T], doing: str, facts: dict[str, Any]) -> T:
    is_sent = False
    try:
        result = work(connection)
        is_sent = True
        connection.commit()
    except (SQLAlchemyError, OSError) as error:
        roll_back(connection)
        raise _judged(error, doing, facts, is_sent=is_sent) from error
    except BaseException:
        roll_back(connection)
        raise
    return result


def _judged(error: Exception, doing: str, facts: dict[str, Any], *, is_sent: bool) -> SinkError:
    ours = translate(error, doing, **facts)
    # After COMMIT was sent, only these codes say that the server has rolled back.
    if is_sent and meaning_of(error).verdict is not ErrorVerdict.RETRY:
        return UnknownOutcome("the answer to COMMIT was lost", doing=doing, code=ours.facts.get("code"), **facts)
    return ours
