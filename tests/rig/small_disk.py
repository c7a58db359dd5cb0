"""A small file system that can be filled up: what a full disk does is seen on a full disk."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

BLOCK = 4096


class SmallDisk:
    """A directory on its own file system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *, but: int = 0) -> None:
        """Take all room but ``but`` bytes."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * BLOCK)
        size = self._ballast.stat().st_size
        os.truncate(self._ballast, max(0, size - but))

    def free(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[SmallDisk]:
    """Mount a file system of ``size`` (``2m``) in memory; skip the test where this user may not."""
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("this user cannot mount a file system")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
