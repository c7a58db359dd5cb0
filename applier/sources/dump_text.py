"""Files of a dump, plain or compressed with gzip or zstd. Other compressions are refused by name, never skipped."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

import zstandard

from applier.model.errors import ConfigError, Remedy

GZIP: Final = ".gz"
ZSTD: Final = ".zst"
PACKED: Final = (GZIP, ZSTD)
OTHERS: Final = (".snappy", ".lz4", ".bz2", ".xz")
UNREADABLE: Final = (OSError, EOFError, zlib.error, zstandard.ZstdError)
"""What is raised where a compressed file is damaged or cut, or where the disk does not give it."""
_BLOCK: Final = 1 << 17


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """Open a file as text; bytes that are not UTF-8 are replaced. ConfigError in the block if the file cannot be read."""
    try:
        with TextIOWrapper(open_bytes(file), encoding="utf-8", errors="replace") as content:
            yield content
    except UNREADABLE as error:
        message = f"a file of the dump cannot be read: {error}"
        raise ConfigError(
            message, remedy=Remedy("dump.check-compressed-file", "Check its permissions. If it is damaged, copy the dump again"), file=file
        ) from error


def open_bytes(file: Path) -> BinaryIO:
    """Open a file as it is inside of its compression. A compressed one that ends early raises one of ``UNREADABLE`` at its end."""
    match file.suffix:
        case ".gz":
            return cast("BinaryIO", gzip.open(file, "rb"))
        case ".zst":
            return cast("BinaryIO", BufferedReader(_WholeFrames(file)))
        case _:
            return file.open("rb")


def unpacked_name(name: str) -> str:
    """Return the name of a file without that of its compression."""
    return name.removesuffix(GZIP).removesuffix(ZSTD)


class _WholeFrames(RawIOBase):
    """The content of a zstd file. The library's own reader does not notice that a file was cut."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("rb")
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._is_begun, self._rest, self._content = False, b"", b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        while not self._content:
            packed = self._rest or self._file.read(_BLOCK)
            if not packed:
                self._check_end()
                return 0
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._is_begun = True
            self._content, self._rest = self._frame.decompress(packed), b""
            if self._frame.eof:
                self._rest = self._frame.unused_data
        part, self._content = self._content[: len(buffer)], self._content[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def _check_end(self) -> None:
        if not self._is_begun or not self._frame.eof:
            raise EOFError("the compressed file ends before its end was written")
