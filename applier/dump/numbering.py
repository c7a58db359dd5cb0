"""Whether files of a dump are missing, by the numbers in their names and by what mydumper's metadata counts.

Dumpling numbers the files of a table from 0: ``shop.orders.000000000.sql``, by chunk (``--rows``) or file (``--filesize``); with both, the
last four of 13 digits are the file's and those before them the chunk's. mydumper writes ``shop.orders.sql``, ``shop.orders.00000.sql``, and
``shop.orders.00000.00001.sql`` for the second file of a chunk. With ``--rows`` both write no file for a chunk without rows. The names alone
do not tell such a chunk from a file that was lost. mydumper's metadata does (since 0.12): it has the number of rows of each table.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from applier.dump.inventory import FileKind, Inventory
from applier.model.errors import ConfigError, Remedy
from applier.model.events import TableName
from applier.sources.changefeed import METADATA_FILES
from applier.sources.dump_text import open_text, unpacked_name
from applier.telemetry.wording import named_some

_BOTH: Final = 13
"""Digits of a number of chunk and file."""
_OF_FILE: Final = 4
_NUMBERS: Final = re.compile(r"([^.]+\..+?)(?:\.(\d+))?(?:\.(\d+))?\.sql")
_SECTION: Final = re.compile(r"^\[[`\"](.+)[`\"]\.[`\"](.+)[`\"]\]\s*\n((?:(?!\[).*\n?)*)", re.MULTILINE)
_ROWS: Final = re.compile(r"^rows *= *(\d+)\s*$", re.MULTILINE)


def check_files(directory: Path, inventory: Inventory, *, accept_missing: bool) -> dict[TableName, int]:
    """Refuse a dump that lacks files; return the number of rows of each table, where the metadata counts them. ConfigError."""
    counts = rows_by_metadata(directory)
    made = {file.table for file in inventory.files if file.kind is not FileKind.ROWS}
    filled = {file.table for file in inventory.of(FileKind.ROWS)}
    lost = [str(table) for table, count in counts.items() if table in made and count and table not in filled]
    if lost:
        remedy = Remedy(
            "dump.copy-dump-and-compare-files",
            "Copy the dump again, or dump again. Compare the files with the sections of the file metadata",
        )
        raise _missing("the dump has no rows of tables for which its metadata counts rows", remedy, lost)
    gaps = [] if accept_missing else _gaps(inventory, counts)
    if gaps:
        raise _missing(
            "files of rows are missing in the dump: their numbers have gaps",
            Remedy(
                "dump.compare-copied-directory",
                "Compare with the directory that the dump was written to, and copy what is missing. Dumpling and mydumper write no file "
                "for a chunk without rows (--rows): if the files were never there, use --accept-missing-files, then run `applier verify`",
            ),
            gaps,
        )
    return {table: count for table, count in counts.items() if table in made}


def rows_by_metadata(directory: Path) -> dict[TableName, int]:
    """Return how many rows the metadata counts of each table; Dumpling's counts none."""
    file = directory / METADATA_FILES[0]
    if not file.is_file():
        return {}
    with open_text(file) as content:
        sections = _SECTION.findall(content.read())
    return {TableName(schema, table): int(rows[1]) for schema, table, lines in sections if (rows := _ROWS.search(lines))}


def missing_files(paths: Iterable[Path]) -> list[str]:
    """Return the names of the files that are missing among the files of one table."""
    numbers = [number for path in paths if (number := _number(path)) is not None]
    files = defaultdict[int, set[int]](set)
    for number in numbers:
        files[number.chunk].add(number.file)
    chunks = [numbers[0].name(chunk, 0) for chunk in range(max(files, default=0)) if chunk not in files]
    inside = [numbers[0].name(chunk, file) for chunk, found in files.items() for file in range(max(found)) if file not in found]
    return sorted([*chunks, *inside])


def _gaps(inventory: Inventory, counted: Collection[TableName]) -> list[str]:
    paths = defaultdict[TableName, list[Path]](list)
    for file in inventory.of(FileKind.ROWS):
        paths[file.table].append(file.path)
    return [name for table, files in paths.items() if table not in counted for name in missing_files(files)]


class _Number(NamedTuple):
    """Which of a table's files it is. ``stem`` and ``digits`` make the names of its neighbours."""

    chunk: int
    file: int
    stem: str
    digits: int

    def name(self, chunk: int, file: int) -> str:
        if self.digits >= _BOTH:
            return f"{self.stem}.{chunk:0{_BOTH - _OF_FILE}}{file:0{_OF_FILE}}.sql"
        return f"{self.stem}.{chunk:0{self.digits}}" + (f".{file:05}.sql" if file else ".sql")


def _number(path: Path) -> _Number | None:
    """Return the number of a file; None: its table has one file."""
    match = _NUMBERS.fullmatch(unpacked_name(path.name))
    if match is None or match[2] is None:
        return None
    stem, first, second = match.groups()
    if len(first) >= _BOTH:
        return _Number(int(first[:-_OF_FILE]), int(first[-_OF_FILE:]), stem, len(first))
    return _Number(int(first), int(second or 0), stem, len(first))


def _missing(message: str, remedy: Remedy, names: list[str]) -> ConfigError:
    return ConfigError(message, remedy=remedy, missing=named_some(names), count=len(names))
