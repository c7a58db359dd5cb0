"""What a server's binlog must hold so that a replica can follow it without knowing its tables: row events with full metadata."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from applier.model.errors import NeedsOperator
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy
from applier.sources.binlog.server import IN_FILES, Server


class Lack(NamedTuple):
    """What the server's settings lack, and the statement that changes it."""

    problem: str
    remedy: Remedy


class _Rule(NamedTuple):
    variable: str
    is_met: Callable[[str], bool]
    problem: str
    remedy: Remedy


_RULES: Final = (
    _Rule(
        "log_bin",
        "ON".__eq__,
        "the server writes no binlog",
        Remedy("binlog.require-log-bin", "Set log_bin and server_id in the server's configuration, and restart it"),
    ),
    _Rule(
        "binlog_storage_engine",
        "".__eq__,
        "binlog_storage_engine is set: MariaDB keeps the binlog in pages of a storage engine (.ibb files)",
        IN_FILES,
    ),
    _Rule(
        "binlog_format",
        "ROW".__eq__,
        "binlog_format is not ROW: changes are logged as statements",
        Remedy(
            "binlog.require-row-format",
            "SET GLOBAL binlog_format = ROW, also in its configuration, and let sessions that are open connect again",
        ),
    ),
    _Rule(
        "binlog_row_metadata",
        "FULL".__eq__,
        "binlog_row_metadata is not FULL: rows come without the names of their columns",
        Remedy("binlog.require-row-metadata", "SET GLOBAL binlog_row_metadata = FULL, also in its configuration"),
    ),
    _Rule(
        "binlog_row_image",
        {"FULL", "MINIMAL", "NOBLOB", "FULL_NODUP"}.__contains__,
        "binlog_row_image is one that the applier does not know",
        Remedy("binlog.require-row-image", "SET GLOBAL binlog_row_image = FULL, also in its configuration"),
    ),
    _Rule(
        "binlog_row_value_options",
        "".__eq__,
        "binlog_row_value_options is PARTIAL_JSON: updates hold parts of JSON values",
        Remedy(
            "binlog.require-no-row-value-options",
            "SET GLOBAL binlog_row_value_options = '', also in its configuration, and let sessions that are open connect again",
        ),
    ),
)
_MAY_BE_ABSENT: Final = frozenset({"binlog_format", "binlog_row_value_options", "binlog_storage_engine"})
"""MariaDB has no partial JSON, a newer MySQL may have no other format than ROW, and MariaDB has engines for the binlog from 12.3 on."""


def lacks(server: Server) -> list[Lack]:
    """Return what the server's settings lack. SourceError: it cannot be asked."""
    rows = server.rows("settings of the binlog", "SHOW GLOBAL VARIABLES WHERE Variable_name = 'log_bin' OR Variable_name LIKE 'binlog%'")
    return lacking({str(name).lower(): str(value).upper() for name, value in rows})


def lacking(variables: Mapping[str, str]) -> list[Lack]:
    """Return what some variables lack; their values in capitals."""
    return [
        Lack(rule.problem, rule.remedy)
        for rule in _RULES
        if not (rule.is_met(variables[rule.variable]) if rule.variable in variables else rule.variable in _MAY_BE_ABSENT)
    ]


def require(server: Server) -> None:
    """Refuse a server whose binlog cannot be followed. NeedsOperator with the statement to run."""
    for lack in lacks(server):
        raise NeedsOperator(
            f"the binlog of the server cannot be followed: {lack.problem}",
            remedy=Remedy("binlog.begin-after-requirement", f"{lack.remedy}. What was logged before cannot be read: begin behind it"),
            kind=FailureKind.REQUIREMENT,
            address=server.address,
        )
