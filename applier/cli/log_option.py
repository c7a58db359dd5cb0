"""The options that name a transaction of a binlog: ``--position`` and ``--gtid``."""

from typing import Annotated, Final, TypeAlias

import typer

from applier.config import Config
from applier.config.binlog_source import BinlogSourceConfig
from applier.model.errors import ConfigError
from applier.model.position import Offset
from applier.model.remedy import Remedy
from applier.sources.binlog.gtid_set import Gtid
from applier.sources.binlog.position import BinlogPosition, file_name, parse_place

LogPosition: TypeAlias = Annotated[
    str | None, typer.Option("--position", metavar="FILE:POS", help="Of a binlog: where the transaction begins.")
]
LogGtid: TypeAlias = Annotated[str | None, typer.Option("--gtid", metavar="GTID", help="Of a binlog: the transaction's GTID.")]

POSITION_FORM: Final = Remedy(
    "cli.write-file-pos", "Write FILE:POS, for instance mariadb-bin.000042:1234. `applier inspect` shows the positions of all transactions"
)
START_OF_LOG: Final = Remedy(
    "cli.remove-log-option", "Remove it. Set source.start, or load a dump with `applier load`: the dump says where it was made"
)
GTID_FORM: Final = Remedy(
    "cli.write-gtid-as-server", "Write it as the server does: 0-1-42 (MariaDB), 3e11fa47-71ca-11e1-9e33-c80aa9429562:42 (MySQL)"
)


def is_log(settings: Config) -> bool:
    """Whether the source is a binlog."""
    return isinstance(settings.source, BinlogSourceConfig)


def parse_position(text: str, generation: int = 0, base_name: str | None = None) -> Offset:
    """Read ``FILE:POS`` as an offset. ConfigError: it is not of that form, or its file is not one of ``base_name``'s."""
    place = parse_place(text)
    if place is None:
        raise ConfigError(f"{text!r} is not a place in a binlog", remedy=POSITION_FORM)
    given, file, position = place
    if base_name is not None and given != base_name:
        files = file_name(base_name, file)
        raise ConfigError(
            f"the replica follows no file {given}",
            remedy=Remedy("cli.show-binlog-file-names", f"Its files are called like {files}"),
            position=text,
        )
    return Offset(BinlogPosition(generation, file, position).number)


def parse_gtid(text: str) -> str:
    """Read a GTID of either server, and spell it as its server does. ConfigError if it is none."""
    try:
        return str(Gtid.parse(text))
    except ValueError:
        raise ConfigError(f"{text!r} is not the GTID of one transaction", remedy=GTID_FORM) from None


def refuse_start_ts(settings: Config, start_ts: int | None) -> None:
    """Refuse ``--start-ts`` where the source is a binlog: it would be ignored. ConfigError."""
    if is_log(settings) and start_ts is not None:
        raise ConfigError("--start-ts is for topics: a replica of a binlog begins at source.start", remedy=START_OF_LOG)


def refuse_log_options(settings: Config, *given: str | None) -> None:
    """Refuse the options of a binlog where the source is Kafka. ConfigError."""
    if not is_log(settings) and any(given):
        raise ConfigError(
            "--position and --gtid are for a binlog, and the source is Kafka",
            remedy=Remedy("cli.use-stream-or-ts", "Use --stream and --offset, or --ts"),
        )
