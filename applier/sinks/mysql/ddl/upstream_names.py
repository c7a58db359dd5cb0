"""Writes upstream's names into a DDL before it begins: what is unnamed gets the name that upstream gave it, foreign keys one that is free.

The statement with the names is the intent's, and the ledger's. So a run that takes it up has the same names, whatever has become of the
tables meanwhile. A check is dropped under the name that the sink's server gave it. This module also decides whether an index that the
statement drops, renames or hides may be missing: only if the sink does without it, as the ledger's statements say. An index that is missing
otherwise has another name in the sink, and would stay.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, text

from applier.ddl import parse_ddl
from applier.ddl.adaptation import Target
from applier.ddl.generated_name import (
    MYSQL_NAMING,
    TIDB_NAMING,
    DroppedCheck,
    TableHistory,
    TableNames,
    dropped_checks,
    has_foreign_keys,
    with_dropped_checks,
    with_free_names,
    with_generated_names,
)
from applier.ddl.old_values import MARIADB, MYSQL, kind_of_upstream
from applier.ddl.stated_keys import depends_on_names, found_by_name
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, TableName
from applier.mysql.catalogue import read_check_names, whole_columns_of_indexes
from applier.mysql.names import spellings
from applier.mysql.structure import Expression
from applier.sinks.bookkeeping.ledger import PastDdls

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
    history = past.history(connection, table.fold(), ddl.commit_ts, (target, MYSQL_NAMING))
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


MISSING_INDEX: Final = Remedy(
    "mysql.rename-index",
    "If the sink's table has this index under another name: ALTER TABLE … RENAME INDEX … TO …, and start the applier again. Otherwise make "
    "the rest of the change in the sink by hand, then `applier ddl skip --ts … --table …`",
)
_FOREIGN_KEYS: Final = text(
    "SELECT TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = :schema"
)


def with_upstream_names(connection: Connection, past: PastDdls, ddl: DdlEvent, target: Target) -> DdlEvent:
    """Return the DDL with upstream's names in its text; NeedsOperator if it is about an index that the sink should have and lacks."""
    named = _with_index_names(connection, past, with_check_names(connection, past, ddl, target), target)
    # TiDB has a set of names for each table; a MySQL upstream's are free in their schema already.
    if ddl.is_of_log or target.keeps_foreign_keys_apart or not has_foreign_keys(named.query):
        return named
    return replace(named, query=_with_foreign_keys(connection, named))


def _with_index_names(connection: Connection, past: PastDdls, ddl: DdlEvent, target: Target) -> DdlEvent:
    naming, before = MYSQL_NAMING if ddl.is_of_log else TIDB_NAMING, TableNames()
    statement = parse_ddl(ddl)
    if statement is not None and statement.needs and depends_on_names(ddl.query):
        name = spellings(connection, statement.needs[:1]).get(statement.needs[0].fold())
        # Without its table the statement fails anyway.
        if name is None:
            return ddl
        history = past.history(connection, name.fold(), ddl.commit_ts, (target, naming))
        present = whole_columns_of_indexes(connection, name)
        _refuse_missing(ddl, present, history)
        known = max(history.foreign_keys, sum(table == name.table for table, _ in _keys(connection, name.schema)))
        before = TableNames({**dict.fromkeys(history.left_out, ()), **present}, known)
    return replace(ddl, query=with_generated_names(ddl.query, before, naming))


def _keys(connection: Connection, schema: str) -> list[tuple[str, str]]:
    return [(str(table), str(name)) for table, name in connection.execute(_FOREIGN_KEYS, {"schema": schema})]


def _refuse_missing(ddl: DdlEvent, present: Collection[str], history: TableHistory) -> None:
    for name in found_by_name(ddl.query, is_of_log=ddl.is_of_log):
        if name.casefold() not in present and name.casefold() not in history.left_out:
            message = "the sink's table has no index of the name that the DDL drops, renames or hides"
            facts: dict[str, Any] = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query, "index": name}
            raise NeedsOperator(message, remedy=MISSING_INDEX, **facts)


def _with_foreign_keys(connection: Connection, ddl: DdlEvent) -> str:
    statement = parse_ddl(ddl)
    if statement is None:
        return ddl.query
    (table,) = (*statement.needs, *statement.creates, *(old for old, _ in statement.renames))[:1]
    actual = spellings(connection, [table]).get(table.fold(), table)
    keys = _keys(connection, actual.schema)
    own = [name for of_table, name in keys if of_table == actual.table]
    others = [name for of_table, name in keys if of_table != actual.table]
    return with_free_names(ddl.query, actual.table, own, others)
