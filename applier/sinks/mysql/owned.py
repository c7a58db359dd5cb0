"""Transactions on the session that holds the replica's lock: repeated where that is safe, reported where it is not known."""

import random
import time
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.errors import InvariantViolation, RetryableSinkError, SinkError, UnknownOutcome
from applier.sinks.mysql.errors import Verdict, meaning_of, translate
from applier.sinks.mysql.ownership import Ownership
from applier.sinks.mysql.session import roll_back

T = TypeVar("T")

BACK_OFF_S = 0.2
MAX_BACK_OFF_S = 5.0


def commit_owned(ownership: Ownership, retries: int, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
    """Run ``work`` and COMMIT on the owner's session; return what ``work`` returned.

    What was rolled back is repeated, at most ``retries`` times, on a new session if the old one is lost. UnknownOutcome if the answer to
    COMMIT was lost; Fenced if another run has become the owner; other errors of ``work`` come through.
    """
    for attempt in count():
        try:
            if attempt:
                ownership.ensure()
            return _once(ownership.connection, work, doing, facts)
        except RetryableSinkError:
            if attempt >= retries:
                raise
        back_off(attempt)
    raise InvariantViolation("a loop without an end has ended")


def back_off(attempt: int) -> None:
    """Wait before repetition number ``attempt`` (from 0): exponential, with jitter, so that rivals do not meet again."""
    time.sleep(random.uniform(0.5, 1.0) * min(MAX_BACK_OFF_S, BACK_OFF_S * 2**attempt))  # noqa: S311 -- not a secret


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
    if is_sent and meaning_of(error).verdict is not Verdict.RETRY:
        return UnknownOutcome("the answer to COMMIT was lost", doing=doing, code=ours.facts.get("code"), **facts)
    return ours
