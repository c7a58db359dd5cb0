"""Files of a dump, plain or compressed with gzip. Other compressions are refused by name, never passed over."""

import gzip
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

GZIP: Final = ".gz"
OTHERS: Final = (".zst", ".snappy", ".lz4", ".bz2", ".xz")


def open_text(file: Path) -> TextIO:
    """Open a file as text; bytes that are not UTF-8 are replaced."""
    if file.suffix == GZIP:
        return gzip.open(file, "rt", encoding="utf-8", errors="replace")
    return file.open(encoding="utf-8", errors="replace")


def open_bytes(file: Path) -> BinaryIO:
    """Open a file as it is inside of its compression."""
    return cast("BinaryIO", gzip.open(file, "rb")) if file.suffix == GZIP else file.open("rb")
