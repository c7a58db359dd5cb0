"""CHAR, VARCHAR, TEXT, BINARY, VARBINARY and BLOB: text by its character set, bytes as they are."""

from collections.abc import Callable, Sequence
from typing import Final

UTF8: Final = frozenset({"utf8mb4", "utf8mb3"})


def texts(charset: str) -> Callable[[Sequence[bytes]], Sequence[str]]:
    """Return what reads text of a character set; bytes that are none of it become lone surrogates."""
    return read_utf8 if charset in UTF8 else _read_ascii


def read_utf8(values: Sequence[bytes]) -> Sequence[str]:
    """Read UTF-8. NUL is a character of its own in it, and no part of another: to read all at once is to read each."""
    found = b"\0".join(values).decode("utf-8", "surrogateescape").split("\0")
    return found if len(found) == len(values) else [value.decode("utf-8", "surrogateescape") for value in values]


def _read_ascii(values: Sequence[bytes]) -> Sequence[str]:
    return [value.decode("ascii", "surrogateescape") for value in values]


def padded(size: int) -> Callable[[Sequence[bytes]], Sequence[bytes]]:
    """Return what gives BINARY its full length: the zeros at its end are not written."""
    return lambda values: [value.ljust(size, b"\0") for value in values]
