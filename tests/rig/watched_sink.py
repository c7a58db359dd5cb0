"""A sink that lets a test look at the database after each commit: all that a reader of the sink can ever see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from applier.sinks.port import Writer
from applier.sinks.progress import WriteOutcome

LOOKS: dict[int, Callable[[], None]] = {}
"""Writers cross to tasks as pickles; whom they call is looked up here."""


@dataclass(frozen=True)
class WatchedWriter:
    """Writes, then lets the test look."""

    writer: Writer
    key: int

    def write(self, *args, **more) -> WriteOutcome:
        outcome = self.writer.write(*args, **more)
        LOOKS[self.key]()
        return outcome


class WatchedSink:
    """Delegates to a real sink; calls ``look`` after each commit of rows, progress or a DDL."""

    def __init__(self, sink, look: Callable[[], None]) -> None:
        self._sink, self._look = sink, look
        LOOKS[id(self)] = look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    @property
    def writer(self) -> WatchedWriter:
        return WatchedWriter(self._sink.writer, id(self))

    def save(self, *args, **more):
        fence = self._sink.save(*args, **more)
        self._look()
        return fence

    def run_ddl(self, *args, **more):
        fence = self._sink.run_ddl(*args, **more)
        self._look()
        return fence
