"""Writes a file that may hold values of rows: whole or not at all, and readable by its owner only."""

import os
from collections.abc import Iterable
from pathlib import Path

from applier.model.errors import ConfigError, Remedy


def write_private(path: Path, pieces: Iterable[str]) -> None:
    """Write the text to a temporary file, and replace the file when it is complete. ConfigError if the file cannot be written."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(
            f"a file cannot be written: {error.strerror}",
            remedy=Remedy("verify.check-path-and-space", "Check the path, and the free space"),
            path=str(path),
        ) from error
