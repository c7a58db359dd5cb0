"""Whether the files of a dump are whole. A loader accepts the file of a copy that broke off: its last rows are lost."""

from concurrent.futures import ThreadPoolExecutor
from os import SEEK_END
from pathlib import Path
from typing import Final

from applier.dump.inventory import DumpFile, FileKind, Inventory
from applier.model.errors import ConfigError, Remedy
from applier.sources.dump_text import PACKED, UNREADABLE, open_bytes
from applier.telemetry.wording import named_some

TAIL: Final = 8192
BLOCK: Final = 1 << 20
_DUMPERS: Final = (b"-- MySQL dump", b"-- MariaDB dump")
_COMPLETED: Final = b"-- Dump completed"
"""The last line of both, unless they were told to write no comments. One that fails ends after any statement."""
_COMMENTS: Final = (b"--", b"#")


def check_complete(inventory: Inventory, threads: int) -> None:
    """Refuse files of rows without their end. ConfigError names them."""
    files = [file for file in inventory.files if file.kind in {FileKind.ROWS, FileKind.WHOLE}]
    with ThreadPoolExecutor(threads) as pool:
        cut = [file.path.name for file, is_whole in zip(files, pool.map(_is_whole, files), strict=True) if not is_whole]
    if cut:
        raise ConfigError(
            "files of the dump are cut: they have no end",
            remedy=Remedy("dump.copy-dump-with-sizes", "Copy the dump again, or dump again. Compare the sizes of the files"),
            files=named_some(cut),
            count=len(cut),
        )


def _is_whole(file: DumpFile) -> bool:
    try:
        head, tail = _ends(file.path)
    except UNREADABLE:
        return False
    return _ends_a_statement(tail) and (_COMPLETED in tail or not any(dumper in head for dumper in _DUMPERS))


def _ends(path: Path) -> tuple[bytes, bytes]:
    with open_bytes(path) as content:
        head = tail = content.read(TAIL)
        if path.suffix not in PACKED:
            content.seek(max(0, content.seek(0, SEEK_END) - TAIL))
            return head, content.read()
        while block := content.read(BLOCK):
            tail = (tail + block)[-TAIL:]
        return head, tail


def _ends_a_statement(tail: bytes) -> bool:
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(_COMMENTS)]
    return said[-1].endswith(b";") if said else bool(lines)
