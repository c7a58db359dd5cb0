"""Positions in a binlog as numbers: ``generation << 56 | file number << 32 | position``, strictly increasing along the log.

The generation counts failovers: each server numbers its own files, so the numbers of a new primary may be lower.
"""

from typing import Final, NamedTuple, Self

from applier.model.errors import Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Stream

STREAM: Final = Stream("binlog", 0)
"""The only stream of this source."""

FIRST_POSITION: Final = 4
"""Where the first event of a file begins: after its magic number."""

GENERATION_BITS: Final = 56
FILE_BITS: Final = 32
MAX_GENERATION: Final = (1 << 7) - 1
MAX_FILE: Final = (1 << (GENERATION_BITS - FILE_BITS)) - 1
MAX_POSITION: Final = (1 << FILE_BITS) - 1


class BinlogPosition(NamedTuple):
    """A position in the log of one generation."""

    generation: int
    file: int
    position: int

    @property
    def number(self) -> int:
        """The position as an offset or timestamp. SourceError: a part does not fit into its bits."""
        if not (0 <= self.generation <= MAX_GENERATION and 0 <= self.file <= MAX_FILE and 0 <= self.position <= MAX_POSITION):
            raise SourceError(
                "the position in the binlog cannot be numbered",
                remedy=Remedy(
                    "binlog.split-transaction",
                    "Files end below 4 GiB and are numbered below 16,777,216: split the transaction, or begin the numbering again",
                ),
                kind=FailureKind.POSITION,
                generation=self.generation,
                file=self.file,
                position=self.position,
            )
        return self.generation << GENERATION_BITS | self.file << FILE_BITS | self.position

    @classmethod
    def of(cls, number: int) -> Self:
        """Read a number."""
        return cls(number >> GENERATION_BITS, number >> FILE_BITS & MAX_FILE, number & MAX_POSITION)

    def text(self, base_name: str) -> str:
        """Spell the position as ``FILE:POSITION``. ``base_name`` '': it is not known, and the file's number represents its name."""
        return f"{file_name(base_name, self.file) if base_name else format(self.file, '06d')}:{self.position}"


def parse_place(text: str) -> tuple[str, int, int] | None:
    """Read ``FILE:POSITION`` as the files' name, the number of the file, and the position; None if it is not of that form."""
    name, _, position = text.rpartition(":")
    try:
        base_name, file = split_file_name(name)
    except ValueError:
        return None
    if not (position.isascii() and position.isdecimal()) or file > MAX_FILE or int(position) > MAX_POSITION:
        return None
    return base_name, file, int(position)


def file_name(base_name: str, file: int) -> str:
    """Return the name of a file: ``binlog.000012``."""
    return f"{base_name}.{file:06d}"


def split_file_name(name: str) -> tuple[str, int]:
    """Return base name and number of a file. ValueError: it has no number."""
    base_name, dot, number = name.rpartition(".")
    if not dot or not base_name or not number.isdecimal():
        message = f"a binlog file is named like binlog.000012, not {name!r}"
        raise ValueError(message)
    return base_name, int(number)
