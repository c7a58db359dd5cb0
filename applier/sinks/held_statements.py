"""Statements that a write must not run yet: they wait in memory, and many of them in a file."""

from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO, Final

from applier.model.seal import seal, unseal
from applier.planner.statement import Statement

HELD_BYTES: Final = 64 << 20
"""They are held in memory up to here, and in a file of the task beyond it."""

LENGTH_BYTES: Final = 8
"""Of the number before each statement in the file, which says how many bytes it takes."""


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
            data = seal(statement)
            self._file.write(len(data).to_bytes(LENGTH_BYTES, "big"))
            self._file.write(data)
        self._held, self._size = [], 0

    def __iter__(self) -> Iterator[Statement]:
        """Yield them, once, in the order in which they came. DamagedData: the file does not hold what was written to it."""
        if self._file is not None:
            with self._file as file:
                end = file.tell()
                file.seek(0)
                while file.tell() < end:
                    size = int.from_bytes(file.read(LENGTH_BYTES), "big")
                    # A damaged length must not ask for memory that nobody has.
                    yield unseal(file.read(min(size, end)))
        yield from self._held
