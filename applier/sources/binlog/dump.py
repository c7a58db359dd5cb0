"""What a dump of MySQL or MariaDB says in terms of their binlog: its position, and its definitions as DDLs of that log."""

import gzip
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from os import SEEK_END
from pathlib import Path
from typing import IO, Final, NamedTuple

import zstandard

from applier.ddl.ddl_type import ddl_type_of
from applier.ddl.tokens import DdlSyntaxError
from applier.model.errors import ConfigError, Remedy
from applier.model.events import DdlEvent
from applier.sources.binlog.query import DUMPED, completed, read_tree, refusal_of, unreadable
from applier.sources.changefeed import HEADER_LINES
from applier.sources.dump_text import open_text

HEAD_BYTES: Final = 1 << 20
"""The position comes before the first table."""
TAIL_BYTES: Final = 1 << 16
"""mariadb-dump writes the GTIDs after the last one. Of a compressed dump only the beginning is read: the position suffices."""

_REMEDY: Final = Remedy(
    "binlog.give-dump-with-coordinates",
    "Give the file of mariadb-dump --master-data=2 --single-transaction, of mysqldump --source-data=2 --single-transaction, "
    "or the directory of mydumper",
)
DIRECTORY_REMEDY: Final = Remedy(
    "binlog.give-mydumper-directory", "Give the directory of mydumper, or one that holds one file of mariadb-dump or mysqldump"
)
METADATA: Final = "metadata"
_CHANGE: Final = re.compile(r"^(?:-- *)?(?:/\*!\d* *)?CHANGE (?:MASTER|REPLICATION SOURCE) TO (.*);", re.MULTILINE | re.IGNORECASE)
_FILE: Final = re.compile(r"(?:MASTER|SOURCE)_LOG_FILE *= *'([^']+)'", re.IGNORECASE)
_POSITION: Final = re.compile(r"(?:MASTER|SOURCE)_LOG_POS *= *(\d+)", re.IGNORECASE)
_SLAVE_POS: Final = re.compile(r"^(?:-- *)?SET GLOBAL gtid_slave_pos *= *'([^']*)'", re.MULTILINE | re.IGNORECASE)
_PURGED: Final = re.compile(r"^(?:-- *)?SET @@GLOBAL\.GTID_PURGED *= *(?:/\*!80000 '\+'\*/ *)?'([^']*)'", re.MULTILINE | re.IGNORECASE)

# mydumper: "SHOW MASTER STATUS:\n\tLog: f\n\tPos: 4\n\tGTID:set" up to 0.12, then an INI file with "[master]" or "[source]".
_OLD_SECTION: Final = re.compile(r"SHOW MASTER STATUS:\s*\n((?:\t.*\n?)+)")
_OLD: Final = re.compile(r"^\t(Log|Pos|GTID): *(.*(?:\n(?!\t|\n).+)*)$", re.MULTILINE)
_SECTION: Final = re.compile(r"^\[(?:master|source)\]\s*\n((?:[^\[].*\n?)*)", re.MULTILINE)
_NEW: Final = re.compile(r"^#? *(File|Position|Executed_Gtid_Set|SOURCE_LOG_FILE|SOURCE_LOG_POS) *= *\"?([^\"\n]*)\"?$", re.MULTILINE)


class DumpPosition(NamedTuple):
    """The position of a dump: ``FILE:POS``, and the executed set, '' where it names none."""

    position: str
    gtid_set: str


def position_of_dump(path: str) -> DumpPosition:
    """Read the position of a dump. ConfigError: there is none, or the file cannot be read."""
    file = file_of_dump(Path(path))
    try:
        text = _head(file)
    except (OSError, EOFError, zstandard.ZstdError) as error:
        raise ConfigError(f"the dump {path} cannot be read", remedy=_REMEDY, key="source.start", cause=str(error)) from error
    position = _of_text(text) or _of_metadata(text)
    if position is None:
        raise ConfigError(f"the dump {path} does not say at which position of the binlog it was made", remedy=_REMEDY, key="source.start")
    return position


def file_of_dump(path: Path) -> Path:
    """Return the file of a dump that says its position: mydumper's metadata, or the one file of a directory. ConfigError: there is none."""
    if not path.is_dir():
        return path
    if (path / METADATA).is_file():
        return path / METADATA
    files = sorted(path.glob("*.sql*"))
    if len(files) != 1:
        message = "the directory holds no dump that says its position in the binlog"
        raise ConfigError(message, remedy=DIRECTORY_REMEDY, directory=path, files=len(files))
    return files[0]


def _head(file: Path) -> str:
    with file.open("rb") as raw:
        return b"".join(_unpacked(file.suffix, raw)).decode(errors="replace")


def _unpacked(suffix: str, raw: IO[bytes]) -> Iterator[bytes]:
    match suffix:
        case ".gz":
            with gzip.open(raw) as unpacked:
                yield unpacked.read(HEAD_BYTES)
        case ".zst":
            with zstandard.ZstdDecompressor().stream_reader(raw) as reader:
                yield reader.read(HEAD_BYTES)
        case _:
            yield raw.read(HEAD_BYTES)
            raw.seek(max(raw.tell(), raw.seek(0, SEEK_END) - TAIL_BYTES))
            yield raw.read()


def _of_text(text: str) -> DumpPosition | None:
    positions = [
        f"{file[1]}:{position[1]}"
        for change in _CHANGE.findall(text)
        if (file := _FILE.search(change)) and (position := _POSITION.search(change))
    ]
    gtids = _SLAVE_POS.search(text) or _PURGED.search(text)
    return DumpPosition(positions[0] if positions else "", _plain(gtids[1]) if gtids else "") if positions or gtids else None


def _of_metadata(text: str) -> DumpPosition | None:
    for section, line in ((_OLD_SECTION, _OLD), (_SECTION, _NEW)):
        if found := section.search(text):
            values = {name.lower(): value.strip() for name, value in line.findall(found[1])}
            file = values.get("log") or values.get("file") or values.get("source_log_file")
            position = values.get("pos") or values.get("position") or values.get("source_log_pos")
            if file and position:
                return DumpPosition(f"{file}:{position}", _plain(values.get("gtid") or values.get("executed_gtid_set") or ""))
    return None


def _plain(gtid_set: str) -> str:
    return "".join(gtid_set.split())


_MODES: Final = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"


def as_of_log(ddl: DdlEvent, zone: str) -> DdlEvent:
    """Return the DDL as a binlog would have it. Its refusal says why the sink cannot repeat it.

    ``zone`` is that of the TIMESTAMP values in its text.
    """
    of_log = replace(ddl, session=(("sql_mode", _MODES), ("time_zone", zone)))
    try:
        tree = read_tree(ddl.query)
    except DdlSyntaxError as error:
        return replace(of_log, refusal=unreadable(str(error)))
    return replace(of_log, query=completed(tree, DUMPED), ddl_type=ddl_type_of(tree), refusal=refusal_of(tree, 0, 0))


_CHANGES_THE_SINK: Final = re.compile(
    r"^(?:CHANGE (?:MASTER|REPLICATION SOURCE) TO|SET @@GLOBAL\.GTID_PURGED|SET GLOBAL gtid_slave_pos)", re.MULTILINE | re.IGNORECASE
)


def start_of_dump(directory: Path) -> str:
    """Return the value of ``source.start`` for the dump in a directory. ConfigError: it does not say its position, or there are several."""
    file = file_of_dump(directory)
    if file.name == METADATA:
        return f"dump:{directory}"
    if not file.is_file():
        raise ConfigError("there is no such dump", remedy=DIRECTORY_REMEDY, directory=directory)
    with open_text(file) as lines:
        found = _CHANGES_THE_SINK.search("\n".join(islice(lines, HEADER_LINES)))
    if found is not None:
        raise ConfigError(
            f"the dump would make a replica of the sink: {found[0]}",
            remedy=Remedy(
                "dump.dump-with-master-data",
                "Dump with --master-data=2 (mariadb-dump), or with --source-data=2 --set-gtid-purged=COMMENTED (mysqldump)",
            ),
            file=file,
        )
    position_of_dump(str(file))
    return f"dump:{file}"
