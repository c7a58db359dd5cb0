"""The timestamp of a dump: what Dumpling, mydumper, mysqldump and mariadb-dump write about upstream's position.

TiDB shows its TSO where MySQL shows the position in a binlog whose name is ``tidb-binlog``. A position in any other binlog is no TSO.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from applier.dump.compressed import open_text
from applier.model.errors import ConfigError
from applier.model.position import MAX_TS, Ts
from applier.model.remedy import Remedy

METADATA: Final = ("metadata", "metadata.partial")
TIDB_LOG: Final = "tidb-binlog"
HEADER_LINES: Final = 60
"""How far into a file of mysqldump its position stands."""
OLDEST: Final = 1 << 58
"""A TSO of October 2004: a smaller number is a position in a binlog."""
REMEDY: Final = Remedy("dump.give-tso-of-dump", "Give the TSO of the dump with --start-ts, or make the dump with Dumpling")

# Dumpling and old mydumper: "Log: tidb-binlog", "Pos: 42"; new mydumper: "File = tidb-binlog", "Position = 42", with or without quotes.
_LOG: Final = re.compile(r"^\s*#?\s*(?:Log|File|SOURCE_LOG_FILE)\s*[:=]\s*[\"']?([^\"'\s]*)", re.IGNORECASE | re.MULTILINE)
_POSITION: Final = re.compile(r"^\s*#?\s*(?:Pos|Position|SOURCE_LOG_POS)\s*[:=]\s*[\"']?(\d+)", re.IGNORECASE | re.MULTILINE)
_HEADER: Final = re.compile(r"(?:MASTER|SOURCE)_LOG_FILE\s*=\s*'([^']*)'\s*,\s*(?:MASTER|SOURCE)_LOG_POS\s*=\s*(\d+)", re.IGNORECASE)
_FINISHED: Final = re.compile(r"Finished dump at", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DumpMoment:
    """A dump's timestamp, and the file that it was read from."""

    start_ts: Ts
    source: Path


def moment_of(directory: Path) -> DumpMoment | None:
    """Return the timestamp of the dump in ``directory``; None if no file tells it. ConfigError: it is wrong, or there are several.

    One file is a dump, too.
    """
    if directory.is_file():
        return of_header(directory)
    if not directory.is_dir():
        raise ConfigError(
            "there is no such dump",
            remedy=Remedy(
                "dump.give-dump-directory-or-file", "Give the directory that Dumpling wrote, or the file of mysqldump or mariadb-dump"
            ),
            directory=directory,
        )
    file = directory / METADATA[0]
    if file.is_file():
        return _of_metadata(file)
    if (directory / METADATA[1]).exists():
        raise _unfinished(directory / METADATA[1])
    found = [moment for path in sorted(directory.glob("*.sql*")) if (moment := of_header(path)) is not None]
    if len({moment.start_ts for moment in found}) > 1:
        raise ConfigError(
            "the directory holds dumps of different moments",
            remedy=Remedy("dump.separate-dump-files", "Put each dump into a directory of its own"),
            files=", ".join(f"{moment.source.name}: {moment.start_ts}" for moment in found),
        )
    return found[0] if found else None


def of_header(file: Path) -> DumpMoment | None:
    """Return the timestamp in the header of a file of mysqldump or mariadb-dump; None if it has none."""
    with open_text(file) as lines:
        match = _HEADER.search("\n".join(_headers(lines)))
    return None if match is None else DumpMoment(_checked(match[1], match[2], file), file)


def _headers(lines: Iterable[str]) -> list[str]:
    return list(islice(lines, HEADER_LINES))


def _unfinished(file: Path) -> ConfigError:
    return ConfigError(
        "the dump is not finished: its metadata has no end",
        remedy=Remedy("dump.wait-for-dump", "Wait until the dump has ended, or dump again"),
        file=file,
    )


def _of_metadata(file: Path) -> DumpMoment | None:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(
            f"the dump's metadata cannot be read: {error.strerror}",
            remedy=Remedy("dump.check-metadata-permissions", "Check its permissions"),
            file=file,
        ) from error
    if _FINISHED.search(text) is None:
        raise ConfigError(
            "the dump is not finished: its metadata has no end",
            remedy=Remedy("dump.wait-for-metadata", "Wait until the dump has ended, or dump again"),
            file=file,
        )
    # Before a part about a replica's own source, which has a position too.
    log, position = _LOG.search(text), _POSITION.search(text)
    if position is None:
        return None
    return DumpMoment(_checked("" if log is None else log[1], position[1], file), file)


def _checked(log: str, position: str, file: Path) -> Ts:
    """Return a position as a TSO; ConfigError if it cannot be one."""
    number = int(position)
    if (log and log != TIDB_LOG) or not OLDEST <= number <= MAX_TS:
        message = f"the dump is not of TiDB: its position {position} is in {log or 'an unknown log'}, and not a TSO"
        raise ConfigError(message, remedy=REMEDY, file=file)
    return Ts(number)
