"""Reads what the sink keeps of a prepared transaction, on an executor."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy.exc import SQLAlchemyError

from applier.mysql.errors import translate
from applier.mysql.session import discard, transaction
from applier.sinks.bookkeeping.prepared_table import read_pieces
from applier.sinks.mysql.bookkeeping import bookkeeping_of
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings


@dataclass(frozen=True, slots=True)
class MysqlPreparedReader:
    """A ``PreparedReader``. Picklable; connects for each transaction that it reads."""

    settings: SinkSettings = field(repr=False)

    def read(self, place: int) -> Iterator[bytes]:
        """Yield the pieces of a transaction."""
        settings = self.settings
        connection = open_session(settings, Purpose.CONTROL)
        try:
            with transaction(connection):
                yield from read_pieces(bookkeeping_of(settings), connection, place)
        except (SQLAlchemyError, OSError) as error:
            raise translate(error, "reading a prepared transaction", replica=settings.name) from error
        finally:
            discard(connection)
