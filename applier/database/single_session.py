"""A session that never becomes another one.

SQLAlchemy replaces a connection that it takes for lost: the next statement runs on a new one, which lacks what the old one had (a
replica's lock, a registered token, the variables of the session, an open transaction, a snapshot). Every spot where it does that
begins with a connection that was invalidated: by an error that its dialect calls a disconnect, or by ``Connection.invalidate``. Neither
happens here. A session that is lost stays the session that it was, and each further use of it is an error of the driver.
"""

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import ExceptionContext


class SingleSession(Connection):
    """One connection of the driver, from here to ``close``. ``engine`` must have been given to ``never_replace``.

    Each database has one subclass, which knows how its driver cuts a connection off. Errors of the database are SQLAlchemy's.
    """

    def end(self) -> None:
        """Cut the driver's connection off, without a word to the server; whatever is sent afterwards is an error of the driver."""
        raise NotImplementedError

    def invalidate(self, exception: BaseException | None = None) -> None:
        """End the session. SQLAlchemy's own method would have the next statement open another connection."""
        del exception
        self.end()

    def close(self) -> None:
        """Close without a ROLLBACK, for which a silent server would let us wait: the server rolls back without it."""
        if not self.closed:
            super().invalidate()
        super().close()


def never_replace(engine: Engine) -> None:
    """Have SQLAlchemy take no error of a ``SingleSession`` for a reason to open another connection."""
    # Asked first, also about the ROLLBACK that SQLAlchemy may send while it handles an error: an event alone comes too late for that.
    engine.dialect.is_disconnect = _never  # type: ignore[method-assign, assignment]
    event.listen(engine, "handle_error", _keep)


def _never(*_: object) -> bool:
    return False


def _keep(context: ExceptionContext) -> None:
    # Without the dialect's word, only an interrupted statement counts as a disconnect: its answer may still be on the way.
    session = context.connection
    if context.is_disconnect and isinstance(session, SingleSession):
        session.end()
        context.is_disconnect = False
