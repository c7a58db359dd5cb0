"""The options that name a transaction of a binlog: ``--position`` and ``--gtid``."""

from typing import Annotated, Final, TypeAlias

import typer

from applier.config import Config
from applier.config.binlog_source import BinlogSourceConfig
from applier.model.errors import ConfigError
from applier.model.position import Offset
from applier.sources.binlog.gtid_set import Gtid
from applier.sources.binlog.position import MAX_FILE, MAX_POSITION, BinlogPosition, split_file_name

LogPosition: TypeAlias = Annotated[
    str | None, typer.Option("--position", metavar="FILE:POS", help="Of a binlog: where the transaction begins.")
]
LogGtid: TypeAlias = Annotated[str | None, typer.Option("--gtid", metavar="GTID", help="Of a binlog: the transaction's GTID.")]

POSITION_FORM: Final = "Write FILE:POS, for instance mariadb-bin.000042:1234. `applier inspect` shows the positions of all transactions"
GTID_FORM: Final = "Write it as the server does: 0-1-42 (MariaDB), 3e11fa47-71ca-11e1-9e33-c80aa9429562:42 (MySQL)"


def is_log(settings: Config) -> bool:
    """Whether the source is a binlog."""
    return isinstance(settings.source, BinlogSourceConfig)


def parse_position(text: str, generation: int = 0) -> Offset:
    """Read ``FILE:POS`` as an offset. ConfigError if it is not of that form."""
    name, _, position = text.rpartition(":")
    try:
        _, number = split_file_name(name)
        at = int(position)
    except ValueError:
        number = at = -1
    if not (0 <= number <= MAX_FILE and 0 <= at <= MAX_POSITION):
        raise ConfigError(f"{text!r} is not a place in a binlog", remedy=POSITION_FORM)
    return Offset(BinlogPosition(generation, number, at).number)


def parse_gtid(text: str) -> str:
    """Read a GTID of either server, and spell it as its server does. ConfigError if it is none."""
    try:
        return str(Gtid.parse(text))
    except ValueError:
        raise ConfigError(f"{text!r} is not the GTID of one transaction", remedy=GTID_FORM) from None


def refuse_log_options(settings: Config, *given: str | None) -> None:
    """Refuse the options of a binlog where the source is Kafka. ConfigError."""
    if not is_log(settings) and any(given):
        raise ConfigError("--position and --gtid are for a binlog, and the source is Kafka", remedy="Use --stream and --offset, or --ts")
