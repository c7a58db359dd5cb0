"""Collects the statements that go over a session, for tests that count them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from applier.mysql.session import driver_of


@contextmanager
def sent_statements(session: Connection) -> Iterator[list[str]]:
    """Collect the beginnings of the statements that the block sends."""
    driver, sent = driver_of(session), []
    query = driver.query

    def noted(sql: Any, *rest: Any, **more: Any) -> int:
        sent.append(str(sql)[:60])
        return query(sql, *rest, **more)

    driver.query = noted  # type: ignore[method-assign]
    yield sent
    del driver.query
