"""A definition in a dump of MySQL or MariaDB as a DDL of their binlog: the same reader, the same words for what it does not say. Pure."""

from dataclasses import replace
from typing import Final

from applier.ddl.tokens import DdlSyntaxError
from applier.model.events import DdlEvent
from applier.sources.binlog.ddl_refusal import refusal_of, unreadable
from applier.sources.binlog.ddl_text import completed, read_tree
from applier.sources.binlog.query_session import DUMPED
from applier.sources.binlog.query_type import ddl_type_of

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
