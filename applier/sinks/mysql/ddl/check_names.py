"""Drops a check under the name that the sink's server gave it, where upstream's server gave it another one."""

from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from applier.ddl import parse_ddl
from applier.ddl.generated_name import MYSQL_NAMING as NAMING
from applier.ddl.generated_name import DroppedCheck, dropped_checks, with_dropped_checks
from applier.ddl.old_values import MARIADB, MYSQL, kind_of_upstream
from applier.ddl.target import Target
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.remedy import Remedy
from applier.mysql.names import spellings
from applier.sinks.bookkeeping.past_ddls import PastDdls
from applier.sinks.mysql.structure.expression import Expression
from applier.sinks.mysql.structure.reader import read_check_names

MISSING_CHECK: Final = Remedy(
    "mysql.drop-check-by-hand",
    "Make the change in the sink by hand: drop the check under the name that SHOW CREATE TABLE has there, or redefine its column "
    "without it. Then skip the DDL: `applier ddl skip --ts … --table …`",
)


def with_check_names(connection: Connection, past: PastDdls, ddl: DdlEvent, target: Target) -> DdlEvent:
    """Return the DDL with the sink's names of the checks that it drops. NeedsOperator: upstream's name may mean any of them."""
    dropped = dropped_checks(ddl.query) if ddl.is_of_log else []
    statement = parse_ddl(ddl) if dropped else None
    # MySQL alone has checks that are not enforced.
    is_mysql, upstream = target.has_unenforced_checks, kind_of_upstream(ddl)
    if statement is None or upstream not in {MYSQL, MARIADB} or (upstream == MYSQL) is is_mysql:
        return ddl
    table = spellings(connection, statement.needs[:1]).get(statement.needs[0].fold())
    if table is None:
        return ddl
    names = [(one, _name_of(connection, past, ddl, table, one, target)) for one in dropped]
    return replace(ddl, query=with_dropped_checks(ddl.query, names, says_constraint=not is_mysql))


def _name_of(connection: Connection, past: PastDdls, ddl: DdlEvent, table: TableName, dropped: DroppedCheck, target: Target) -> str:
    """Return the sink's name: upstream's, if it has that; of a check with the same expression otherwise."""
    present, checks = read_check_names(connection, table)
    if dropped.name.casefold() in present:
        return dropped.name
    history = past.history(connection, table.fold(), ddl.commit_ts, (target, NAMING))
    expression = Expression(history.checks.get(dropped.name.casefold(), ""))
    found = [name for name, clause in checks if expression.text and clause == expression]
    # Of two that are equal, the one may have been dropped before.
    if len(found) == 1 and [Expression(text) for text in history.checks.values()].count(expression) == 1:
        return found[0]
    if dropped.clause.condition is not None:
        return dropped.name
    raise NeedsOperator(
        "the DDL drops a check that the sink's server has under another name, and which one it is, is not certain",
        remedy=MISSING_CHECK,
        table=str(ddl.name),
        commit_ts=ddl.commit_ts,
        query=ddl.query,
        check=dropped.name,
    )
