"""Makes the statement that the sink runs from a DDL of upstream: the sink's spelling of names, its server's words, its columns.

Everything that sends a DDL's text to a server, or looks for it there, takes it from here. So the text that runs, the text that a dead run's
session still executes, and the text that makes a scratch table are the same.

Upstream's TiDB ignores the case of names; a server on Linux does not. The names come from the sink's catalogue, not from the text:
``DROP TABLE IF EXISTS orders`` would keep ``Orders`` and succeed. A table that does not exist keeps the statement's spelling, and so does
the new name of a RENAME. Columns and indexes have no case anywhere. IF [NOT] EXISTS is resolved against the table as the server has it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Connection, text

from applier.ddl import DdlKind, Site, parse_ddl, read_ddl
from applier.ddl.adaptation import MARIADB_COLLATIONS, UPSTREAM, Target, adapted
from applier.ddl.charset import with_latin1_as_utf8, with_tidb_collations
from applier.ddl.clause import in_words_of, without_ignored_clauses
from applier.ddl.conditions import Present, Resolved, has_conditions, resolved
from applier.ddl.generated import (
    Known,
    defines_generated,
    in_generated_words_of,
    keyed_virtual,
    makes_unique_of_expression,
    unknown_values,
    without_unportable_uniqueness,
)
from applier.ddl.old_values import MARIADB, MYSQL, TIDB, with_json_defaults
from applier.ddl.parser import PLAIN_COLUMN
from applier.ddl.renaming import with_names
from applier.ddl.tokens import as_tidb_reads
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.mysql.catalogue import holds_row, known_columns, read_structures
from applier.mysql.names import namesakes, spellings
from applier.mysql.session_variables import asked_once, version_of
from applier.sinks.settings import Collations

_COLLATIONS: Final = text("SELECT COLLATION_NAME FROM information_schema.COLLATIONS WHERE COLLATION_NAME LIKE 'utf8mb4\\_0900\\_%'")
_NUMBER: Final = re.compile(r"\d+")
_VECTORS, _EXPRESSIONS = (9, 0), (8, 0, 13)
"""Since when MySQL has the type VECTOR, and indexes of expressions."""


def target_of(connection: Connection, collations: Collations = ()) -> Target:
    """Ask the server what it has. ``collations``: the operator's names (``[ddl.collations]``), which come before ours."""
    version = version_of(connection)
    if "tidb" in version:
        return UPSTREAM._replace(collations=dict(collations))
    number = tuple(map(int, _NUMBER.findall(version)[:3]))
    is_mysql = "mariadb" not in version
    known = asked_once(connection, "0900 collations", lambda: {str(name).casefold() for name in connection.scalars(_COLLATIONS)})
    ours = {} if is_mysql else {name: own for name, own in MARIADB_COLLATIONS.items() if name not in known}
    return Target(
        # MariaDB's own VECTOR (11.7) takes bytes and no text.
        has_vectors=is_mysql and number >= _VECTORS,
        has_vector_indexes=False,
        has_expression_indexes=is_mysql and number >= _EXPRESSIONS,
        has_intervals=False,
        has_or_replace=not is_mysql,
        has_generated_keys=is_mysql,
        has_unenforced_checks=is_mysql,
        has_column_visibility=is_mysql,
        has_srid=is_mysql,
        has_periods=not is_mysql,
        keeps_foreign_keys_apart=False,
        collations={**ours, **dict(collations)},
    )


def kind_of(connection: Connection) -> str:
    """Return which kind of server it is: servers of one kind convert values alike."""
    version = version_of(connection)
    return TIDB if "tidb" in version else MARIADB if "mariadb" in version else MYSQL


COLUMN_EXISTS: Final = 1060
INDEX_EXISTS: Final = 1061


def without_satisfied(connection: Connection, ddl: DdlEvent, table: TableName | None = None) -> tuple[DdlEvent, list[int]]:
    """Return a DDL without the clauses that have nothing to do, and the codes by which MariaDB reports what exists. In a transaction.

    ``table``: the table that the statement finds, where that is not its own. A DDL of topics keeps its clauses if none would be
    left: upstream's has changed something, or there would be no event.
    """
    found = _resolved(connection, ddl, table) if has_conditions(ddl.query) else Resolved(ddl.query)
    if not found.query and not ddl.is_of_log:
        return ddl, []
    return replace(ddl, query=found.query), [COLUMN_EXISTS] * len(found.columns) + [INDEX_EXISTS] * len(found.indexes)


def _resolved(connection: Connection, ddl: DdlEvent, table: TableName | None) -> Resolved:
    parsed = parse_ddl(ddl)
    if table is None and parsed is not None and parsed.needs:
        table = spellings(connection, parsed.needs[:1]).get(parsed.needs[0].fold())
    found = None if table is None else read_structures(connection, [table]).get(table.fold())
    if found is None:
        return Resolved(ddl.query)
    names = [column.name for column in found.columns], [index.name for index in found.indexes]
    constraints = [key.name for key in found.foreign_keys], [check.name for check in found.checks]
    columns, indexes = (frozenset(name.casefold() for name in some) for some in names)
    return resolved(ddl.query, Present(columns, indexes, frozenset(name.casefold() for some in constraints for name in some)))


NO_INDEX: Final = Remedy(
    "mysql.change-without-index",
    "Make the same change in the sink by hand, without the index or key. Then skip the DDL with `applier ddl skip --ts … --table …`",
)

_ALTERS: Final = frozenset({DdlKind.ALTER_TABLE, DdlKind.CREATE_INDEX})
"""Other statements define no column or index of an existing table, and need not wait for the catalogue (3 ms)."""


def known_to(connection: Connection, ddl: DdlEvent) -> Known:
    """Return the columns of the DDL's table, if the statement's text depends on them."""
    depends = defines_generated(ddl.query) or makes_unique_of_expression(ddl.query)
    return _known(connection, ddl)[0] if depends else {}


def refuse_generated(connection: Connection, ddl: DdlEvent, target: Target) -> None:
    """Raise NeedsOperator if the sink would have to compute values that only upstream knows."""
    known, actual = _known(connection, ddl)
    facts: dict[str, Any] = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
    if column := keyed_virtual(ddl.query, target, known):
        message = "an index or key depends on a VIRTUAL column, for which the sink would compute other values than upstream"
        raise NeedsOperator(message, remedy=NO_INDEX, column=column, **facts)
    column = unknown_values(ddl.query, target, known) if actual is not None else ""
    if column and actual is not None and holds_row(connection, actual):
        message = "the DDL gives old rows values of a STORED column, which only upstream can compute"
        raise NeedsOperator(message, remedy=PLAIN_COLUMN, column=column, **facts)


def _known(connection: Connection, ddl: DdlEvent) -> tuple[Known, TableName | None]:
    statement = parse_ddl(ddl)
    if statement is None or statement.kind not in _ALTERS or not statement.needs:
        return {}, None
    name = statement.needs[0]
    actual = spellings(connection, [name]).get(name.fold())
    return ({}, None) if actual is None else (known_columns(connection, [actual]).get(actual.fold(), {}), actual)


Spellings = Mapping[FoldedName, TableName]
"""What exists in the sink: tables, and schemas with table ''."""
NOTHING: Spellings = MappingProxyType({})


def spelled_in_sink(connection: Connection, ddl: DdlEvent) -> Spellings:
    """Find the names of a statement, and the event's own, in the sink. NeedsOperator if the sink has several of one name."""
    found = read_ddl(ddl)
    names = [ddl.name, *(site.name for site in (found[1] if found else ()))]
    spelled: dict[FoldedName, TableName] = {}
    for folded, candidates in namesakes(connection, [name for name in names if name.schema]).items():
        # Upstream the two are the same. Which one the DDL means must not be guessed: DROP would drop the wrong one.
        if len(candidates) > 1:
            raise NeedsOperator(
                "the sink has several names that differ only in case; upstream they are the same name",
                remedy=Remedy("mysql.rename-tables", "Rename the names that upstream does not have, then start the applier again"),
                found=", ".join(sorted(map(str, candidates))),
                table=str(ddl.name),
                commit_ts=ddl.commit_ts,
                query=ddl.query,
            )
        spelled[folded] = candidates[0]
    return spelled


def respelled(query: str, ddl: DdlEvent, spelled: Spellings) -> str:
    """Return the statement with the sink's names in it; ``query`` is the text, whatever has been rewritten in it before."""
    found = read_ddl(_with_text(ddl, query)) if spelled else None
    if found is None:
        return query
    statement, sites = found
    return with_names(query, statement, sites, list(_names(sites, spelled)))


def _with_text(ddl: DdlEvent, query: str) -> DdlEvent:
    return DdlEvent(commit_ts=ddl.commit_ts, schema=ddl.schema, table=ddl.table, query=query, ddl_type=ddl.ddl_type)


def _names(sites: tuple[Site, ...], spelled: Spellings) -> Iterator[TableName]:
    """Spell each name as it is when its RENAME runs: a list of RENAMEs takes names and frees them."""
    present = dict(spelled)
    renamed: FoldedName | None = None
    for site in sites:
        folded = site.name.fold()
        schema = spelled.get(folded.schema_name)
        as_written = TableName(schema.schema if schema else site.name.schema, site.name.table)
        # RENAME TABLE a TO A: the new spelling is what upstream asks for, so the sink's spelling of the old name must not replace it.
        if site.is_new_name and renamed is not None:
            present.pop(renamed, None)
            name = present.setdefault(folded, as_written)
        else:
            name = present.get(folded, as_written)
        renamed = folded
        yield name


NO_COLUMNS: Final[Known] = MappingProxyType({})


def sink_statement(ddl: DdlEvent, spelled: Spellings = NOTHING, target: Target = UPSTREAM, known: Known = NO_COLUMNS) -> str:
    """Return the statement that the sink runs; '' if it runs none, because it does not need what the statement makes.

    ``spelled``: its names as the sink spells them, if they exist. ``target``: what the server has.
    ``known``: the columns of an existing table whose generated columns the statement changes, or to which it adds a unique index of
    an expression.
    """
    if ddl.is_of_log:
        # A source that says what session a statement had has written out everything else in its text.
        statement = in_words_of(target, ddl.query)
    else:
        as_read = with_json_defaults(as_tidb_reads(ddl.query))
        statement = with_tidb_collations(with_latin1_as_utf8(without_ignored_clauses(as_read, ddl.ddl_type, target)))
    # A STORED column that is a plain one by now has upstream's values, so an index of it may be unique.
    statement = without_unportable_uniqueness(in_generated_words_of(target, statement, known), known)
    return respelled(adapted(statement, target), ddl, spelled)
