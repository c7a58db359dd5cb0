"""What a dump consists of: its files by kind, in the order in which they are loaded. No file is skipped silently.

Dumpling and mydumper name them alike: ``shop-schema-create.sql``, ``shop.orders-schema.sql``, ``shop.orders.000000000.sql`` (rows),
``shop.v-schema-view.sql``, ``shop.s-schema-sequence.sql``, ``shop.orders-schema-triggers.sql``, ``shop-schema-post.sql`` (routines).
mysqldump and mariadb-dump write one file with everything.

A file of mysqldump or mariadb-dump with everything makes tables and views. Its values hold no line ends, so a line that begins a statement
is one.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from applier.model.errors import ConfigError, Remedy
from applier.model.events import TableName
from applier.sources.dump_text import OTHERS, open_text, unpacked_name

_NAME: Final = r"(?:`((?:[^`]|``)+)`|(\w+))"
HEADER_LINES: Final = 20
_DATABASE: Final = re.compile(r"-- Host: .*?\bDatabase: (\S+)\s*$")
_USE: Final = re.compile(rf"USE\s+{_NAME}\s*;", re.IGNORECASE)
_TABLE: Final = re.compile(rf"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:{_NAME}\.)?{_NAME}", re.IGNORECASE)
_VIEW: Final = re.compile(
    rf"(?:/\*!50001 )?(?:CREATE\s+)?(?:OR\s+REPLACE\s+)?(?:ALGORITHM\s*=\s*\w+\s+)?VIEW\s+(?:{_NAME}\.)?{_NAME}", re.IGNORECASE
)
"""Also where it begins a line within a statement: the dumpers divide that of a view."""


def objects_of(file: Path) -> tuple[list[TableName], list[TableName]]:
    """Return the tables and the views. A table whose schema no line names is skipped: the load refuses such a file."""
    schema = schema_of(file)
    tables, views = dict[TableName, None](), dict[TableName, None]()
    with open_text(file) as lines:
        for line in lines:
            if match := _USE.match(line):
                schema = _name(match[1], match[2])
                continue
            for pattern, found in ((_TABLE, tables), (_VIEW, views)):
                if (match := pattern.match(line)) and (owner := _name(match[1], match[2]) or schema):
                    found[TableName(owner, _name(match[3], match[4]))] = None
    return list(tables), list(views)


def schema_of(file: Path) -> str:
    """Return the schema that a file is of by its header; '' if it is of several."""
    with open_text(file) as lines:
        return next((match[1] for line in islice(lines, HEADER_LINES) if (match := _DATABASE.match(line))), "")


def _name(quoted: str | None, plain: str | None) -> str:
    return quoted.replace("``", "`") if quoted else plain or ""


IGNORED: Final = re.compile(
    r"\..*|(?!.*\.sql(\.\w+)?$)(metadata(\..*)?|.*-metadata|.*-checksum|checkpoint.*|README.*|.*\.log)", re.IGNORECASE
)
"""Files about a dump, which hold none of its rows. A schema may be called ``checkpoint`` or ``metadata``, too."""


class FileKind(IntEnum):
    """What a file holds; the numbers are the order of loading."""

    SCHEMA = 1
    TABLE = 2
    SEQUENCE = 3
    ROWS = 4
    WHOLE = 5
    """Everything, as mysqldump writes it."""
    VIEW = 6


_KINDS: Final = (
    (re.compile(r"(?P<schema>.+)-schema-create"), FileKind.SCHEMA),
    (re.compile(r"(?P<schema>[^.]+)\.(?P<table>.+)-schema-view"), FileKind.VIEW),
    (re.compile(r"(?P<schema>[^.]+)\.(?P<table>.+)-schema-sequence"), FileKind.SEQUENCE),
    (re.compile(r"(?P<schema>[^.]+)\.(?P<table>.+)-schema"), FileKind.TABLE),
    (re.compile(r"(?P<schema>[^.]+)\.(?P<table>.+?)(?:\.\d+)*"), FileKind.ROWS),
)
_UNWANTED: Final = re.compile(r".+-schema-(triggers|post)")
"""Triggers would change rows that upstream's triggers have changed already; TiDB has neither triggers nor routines."""


@dataclass(frozen=True, slots=True)
class DumpFile:
    """One file. ``table``: what it is of; a schema has no table, and a file with everything has neither."""

    path: Path
    kind: FileKind
    table: TableName
    holds: tuple[TableName, ...] = ()
    """The tables that a file with everything makes."""
    views: tuple[TableName, ...] = ()
    """The same of views."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """All files of a dump, in the order of loading."""

    files: tuple[DumpFile, ...]

    @property
    def tables(self) -> list[TableName]:
        """The tables that the dump makes, without views."""
        views = {file.table for file in self.of(FileKind.VIEW)}
        held = [table for file in self.files for table in file.holds]
        return [*(file.table for file in self.of(FileKind.TABLE) if file.table not in views), *held]

    @property
    def views(self) -> list[TableName]:
        """The views that the dump makes."""
        return [*(file.table for file in self.of(FileKind.VIEW)), *(view for file in self.files for view in file.views)]

    def of(self, kind: FileKind) -> list[DumpFile]:
        """Return the files of one kind."""
        return [file for file in self.files if file.kind is kind]


def inventory_of(directory: Path) -> Inventory:
    """Return the files of a dump: a directory, or one file. ConfigError: a file cannot be loaded, or nothing is there."""
    try:
        paths = [directory] if directory.is_file() else sorted(path for path in directory.iterdir() if not IGNORED.fullmatch(path.name))
    except OSError as error:
        message = f"the dump's directory cannot be read: {error.strerror}"
        raise ConfigError(
            message, remedy=Remedy("dump.give-dumpling-directory", "Give the directory that Dumpling wrote"), directory=directory
        ) from error
    files = [_file(path) for path in paths]
    refused = [path.name for path, file in zip(paths, files, strict=True) if file is None]
    if refused:
        raise _refused(directory, refused)
    if not any(file is not None and file.kind in {FileKind.SCHEMA, FileKind.TABLE} for file in files):
        # backup.2026-11-22.sql looks like rows of a table.
        files = [None if file is None else replace(file, kind=FileKind.WHOLE, table=TableName("", "")) for file in files]
    found = sorted((file for file in files if file is not None), key=lambda file: (file.kind, file.path.name))
    if not found:
        raise ConfigError(
            "the directory holds no dump",
            remedy=Remedy("dump.give-directory-with-metadata", "Give the directory that Dumpling wrote"),
            directory=directory,
        )
    _check_whole(found)
    return Inventory(tuple(_opened(file) if file.kind is FileKind.WHOLE else file for file in found))


def _opened(file: DumpFile) -> DumpFile:
    tables, views = objects_of(file.path)
    return replace(file, holds=tuple(tables), views=tuple(views))


def _file(path: Path) -> DumpFile | None:
    """Return what a file is; None: it cannot be loaded."""
    name = unpacked_name(path.name)
    if not path.is_file() or not name.endswith(".sql"):
        return None
    stem = name.removesuffix(".sql")
    if _UNWANTED.fullmatch(stem):
        return None
    for pattern, kind in _KINDS:
        if match := pattern.fullmatch(stem):
            parts = match.groupdict(default="")
            return DumpFile(path, kind, TableName(unquote(parts["schema"]), unquote(parts.get("table", ""))))
    return DumpFile(path, FileKind.WHOLE, TableName("", ""))


def _refused(directory: Path, names: list[str]) -> ConfigError:
    compressed = [name for name in names if name.endswith(OTHERS)]
    remedy = (
        Remedy("dump.decompress-dump", "Decompress the files first, or dump with gzip or zstd")
        if compressed
        else Remedy(
            "dump.dump-as-sql",
            "Dump with `--filetype sql` into an empty directory, without triggers and routines. Remove files that are not of the dump",
        )
    )
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return ConfigError("the directory holds files that cannot be loaded", remedy=remedy, directory=directory, files=shown)


def _check_whole(files: Sequence[DumpFile]) -> None:
    """Refuse rows of a table that no file makes, files that are there twice, and files of two kinds of dumps."""
    made = {file.table for file in files if file.kind is FileKind.TABLE}
    kinds = {file.kind for file in files}
    names = Counter(unpacked_name(file.path.name) for file in files)
    if twice := [name for name, times in names.items() if times > 1]:
        raise ConfigError(
            "the dump has a file both plain and compressed",
            remedy=Remedy("dump.remove-duplicate-file", "Remove one of the two, or dump again into an empty directory"),
            file=twice[0],
        )
    if FileKind.WHOLE in kinds and len(kinds) > 1:
        raise ConfigError(
            "the directory holds two kinds of dumps", remedy=Remedy("dump.separate-dumps", "Put each dump into a directory of its own")
        )
    for file in files:
        if file.kind is FileKind.ROWS and file.table not in made:
            raise ConfigError(
                f"the dump has rows of {file.table}, and no file that makes the table",
                remedy=Remedy("dump.dump-into-new-directory", "Dump again, into an empty directory"),
                file=file.path,
            )
