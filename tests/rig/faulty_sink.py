"""A sink that fails as databases do: before a write, after it, with the answer lost; and one whose process dies there.

Wraps a real sink, so what is durable is durable. Faults are drawn from a seed, at each write of rows, progress or DDL.
"""

import random
from dataclasses import dataclass
from typing import Any

from applier.model.errors import RetryableSinkError, UnknownOutcome
from applier.sinks.port import Writer
from applier.sinks.progress import WriteOutcome, WriteState


class DeathError(BaseException):
    """The process died here: nothing in memory is left, and nobody handles this."""


class Faults:
    """Draws what befalls the next write. ``counts`` says what did."""

    def __init__(self, seed, rate=0.3, deaths=0.0):
        self._random = random.Random(f"faults {seed}")
        self._rate, self._deaths = rate, deaths
        self.counts = dict.fromkeys(("refused", "lost before", "lost after", "death before", "death after"), 0)

    def draw(self):
        at = self._random.random()
        if at < self._deaths:
            return self._noted(self._random.choice(("death before", "death after")))
        if at < self._deaths + self._rate:
            return self._noted(self._random.choice(("refused", "lost before", "lost after")))
        return None

    @property
    def deaths(self):
        """How often the process has died."""
        return self.counts["death before"] + self.counts["death after"]

    def _noted(self, fault):
        self.counts[fault] += 1
        return fault


REGISTRY: dict[int, Faults] = {}
"""Writers cross to tasks as pickles; what befalls them is looked up here."""


@dataclass(frozen=True)
class FaultyWriter:
    """Writes, or fails, as its faults draw."""

    writer: Writer
    key: int

    def write(self, fence, statements, commit, quarantined=None) -> WriteOutcome:
        return through_faults(REGISTRY[self.key], lambda: self.writer.write(fence, statements, commit, quarantined))

    def write_rows(self, fence, statements, *, at_once=False) -> WriteOutcome:
        return through_faults(REGISTRY[self.key], lambda: self.writer.write_rows(fence, statements, at_once=at_once))


def through_faults(faults, write):
    fault = faults.draw()
    if fault == "death before":
        raise DeathError
    if fault == "refused":
        return WriteOutcome(state=WriteState.FAILED, error=RetryableSinkError("deadlock found"))
    if fault == "lost before":
        return WriteOutcome(state=WriteState.RELOAD, error=UnknownOutcome("connection lost"))
    outcome = write()
    if fault == "death after":
        raise DeathError
    if fault == "lost after":
        return WriteOutcome(state=WriteState.RELOAD, error=UnknownOutcome("connection lost"))
    return outcome


class FaultySink:
    """Delegates to a real sink; ``save``, ``run_ddl`` and the writer go through the faults."""

    def __init__(self, sink, faults: Faults) -> None:
        self._sink, self._faults = sink, faults
        REGISTRY[id(faults)] = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    @property
    def writer(self) -> FaultyWriter:
        return FaultyWriter(self._sink.writer, id(self._faults))

    def save(self, fence, commit, quarantined=None):
        return through_faults(self._faults, lambda: self._sink.save(fence, commit, quarantined))

    def run_ddl(self, fence, identity, ddl, *, before, after):
        fault = self._faults.draw()
        if fault == "death before":
            raise DeathError
        if fault == "lost before":
            raise UnknownOutcome("connection lost")
        fence = self._sink.run_ddl(fence, identity, ddl, before=before, after=after)
        if fault == "death after":
            raise DeathError
        if fault == "lost after":
            raise UnknownOutcome("connection lost")
        return fence


def caught_up_after_deaths(replica):
    """Catch up; whenever the process dies, by another run of the program. Return the result of the last one."""
    while True:
        try:
            return replica.catch_up()
        except DeathError:
            continue
