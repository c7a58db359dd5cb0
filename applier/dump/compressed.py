"""Files of a dump, plain or compressed with gzip. Other compressions are refused by name, never passed over."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

from applier.model.errors import ConfigError

GZIP: Final = ".gz"
OTHERS: Final = (".zst", ".snappy", ".lz4", ".bz2", ".xz")
UNREADABLE: Final = (OSError, EOFError, zlib.error)
"""What is raised where a compressed file is damaged or cut, or where the disk does not give it."""


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """Open a file as text; bytes that are not UTF-8 are replaced. ConfigError in the block if the file cannot be read."""
    try:
        with (
            gzip.open(file, "rt", encoding="utf-8", errors="replace")
            if file.suffix == GZIP
            else file.open(encoding="utf-8", errors="replace") as content
        ):
            yield cast("TextIO", content)
    except UNREADABLE as error:
        message = f"a file of the dump cannot be read: {error}"
        raise ConfigError(message, remedy="Check its permissions. If it is damaged, copy the dump again", file=file) from error


def open_bytes(file: Path) -> BinaryIO:
    """Open a file as it is inside of its compression."""
    return cast("BinaryIO", gzip.open(file, "rb")) if file.suffix == GZIP else file.open("rb")
