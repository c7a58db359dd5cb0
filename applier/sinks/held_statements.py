"""Statements that a write must not run yet: they wait in memory, and many of them in a file."""

import pickle
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO, Final

from applier.planner.statement import Statement

HELD_BYTES: Final = 64 << 20
"""They are held in memory up to here, and in a file of the task beyond it."""


class HeldStatements:
    """Statements that wait until those of an earlier phase have run; many of them wait in a file."""

    def __init__(self) -> None:
        self._held: list[Statement] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def add(self, statement: Statement) -> None:
        """Hold one more."""
        self._held.append(statement)
        self._size += statement.size
        if self._size > HELD_BYTES:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - closed by __iter__, or with the task
        for statement in self._held:
            pickle.dump(statement, self._file, pickle.HIGHEST_PROTOCOL)
        self._held, self._size = [], 0

    def __iter__(self) -> Iterator[Statement]:
        """Yield them, once, in the order in which they came."""
        if self._file is not None:
            with self._file as file:
                end = file.tell()
                file.seek(0)
                while file.tell() < end:
                    yield pickle.load(file)  # noqa: S301 - our own bytes
        yield from self._held
