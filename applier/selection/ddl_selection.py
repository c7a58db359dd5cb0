"""How a filter and routes change a DDL: it is skipped, refused, or gets the sink's names.

The rule is what is never wrong. A statement about tables that are all skipped is skipped. One that moves a table into the selection is
refused, because the table's rows were never read; one that moves a table out of it is applied (as TiCDC does): the sink's table then has
a name that gets no more rows. A statement that mixes tables of both kinds is refused, since only its names may change.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Final

from applier.ddl import DdlKind, DdlStatement, ddl_type_name, parse_ddl
from applier.ddl.renaming import renamed
from applier.ddl.tree import quoted_name
from applier.model.errors import Remedy
from applier.model.events import CutOver, DdlEvent, DdlRefusal, TableName
from applier.selection.locations import moves_of
from applier.selection.selection import TableSelection
from applier.selection.table_filter import SchemaPart

BY_FILTER: Final = "source.tables excludes it"
BY_EVENT_FILTER: Final = "source.event_filter excludes it"
BY_ONLINE_DDL: Final = "source.online_ddl excludes it"

_BY_HAND: Final = Remedy(
    "selection.change-by-hand-and-skip", "Make its change in the sink by hand, then skip it: `applier ddl skip --ts … --table …`"
)
_OUT_TOO: Final = Remedy(
    "selection.exclude-other-object",
    "Exclude this object by source.tables too, or change it in the sink by hand and skip the DDL: `applier ddl skip --ts … --table …`",
)
_NEW_TABLE: Final = Remedy(
    "selection.make-table-under-new-name",
    "Make the table in the sink under the new name, with the rows that upstream's had at this commit_ts (none, if upstream rotates a "
    "log), then skip the DDL: `applier ddl skip --ts … --table …`. Or exclude the new name by source.tables",
)
_SWAPPED: Final = Remedy(
    "selection.move-table-out-of-the-way",
    "In the sink, rename the table that has the new name to one that upstream does not use. Make this one under its new name, with the "
    "rows that upstream's had at this commit_ts (none, if upstream rotates a log). "
    "Then skip the DDL: `applier ddl skip --ts … --table …`. Later ones are applied if source.tables takes the table in under both names",
)
_BOTH_OR_NONE: Final = Remedy(
    "selection.exclude-or-include-both",
    "Exclude this table by source.tables too, or include the copy as well. This time: make the change in the sink by hand, "
    "then skip it: `applier ddl skip --ts … --table …`",
)
_OTHER_ROUTES: Final = Remedy(
    "selection.route-to-distinct-names", 'Give each table a name of its own: use {schema} and {table} in the "to" of source.route'
)

SCHEMA_KINDS: Final = frozenset({DdlKind.CREATE_SCHEMA, DdlKind.ALTER_SCHEMA, DdlKind.DROP_SCHEMA})
SEVERAL_TABLES: Final = frozenset({"rename_table", "rename_tables", "exchange_partition", "create_tables", "create_view", "drop_view"})
"""Types whose statements may name other tables than the event's."""


def select_ddl(ddl: DdlEvent, selection: TableSelection) -> DdlEvent:
    """Return the DDL with the sink's names, or marked as excluded or refused. Asked once per copy; copies of one DDL are equal."""
    return ddl if selection.is_everything else _selected(ddl, selection)


@lru_cache(maxsize=1024)
def _selected(ddl: DdlEvent, selection: TableSelection) -> DdlEvent:
    statement = parse_ddl(ddl)
    if statement is None:
        return _unread(ddl, selection)
    found = _of_statement(ddl, statement, selection)
    if found.left_out == BY_EVENT_FILTER:
        return found
    return replace(found, moves=moves_of(statement if found.cut_over is None else _without_swap(found.cut_over), selection))


def _of_statement(ddl: DdlEvent, statement: DdlStatement, selection: TableSelection) -> DdlEvent:
    return _of_schema(ddl, statement, selection) if statement.kind in SCHEMA_KINDS else _of_tables(ddl, statement, selection)


def _unread(ddl: DdlEvent, selection: TableSelection) -> DdlEvent:
    """Decide by the event's own name and type: the statement is not understood."""
    if selection.ignores(ddl, [ddl.name]):
        return replace(ddl, left_out=BY_EVENT_FILTER)
    is_of_several = not ddl.table or ddl_type_name(ddl.ddl_type) in SEVERAL_TABLES
    is_out = not selection.has(ddl.name) if ddl.table else selection.part_of(ddl.schema) is SchemaPart.NONE
    if is_out and (not is_of_several or not ddl.table):
        return replace(ddl, left_out=BY_FILTER)
    if selection.routes or (selection.tables.rules and is_of_several):
        return _refused(ddl, "the applier cannot read this statement, so it does not know which tables it names", _BY_HAND)
    return ddl


def _of_schema(ddl: DdlEvent, statement: DdlStatement, selection: TableSelection) -> DdlEvent:
    schema = statement.schema
    part = selection.part_of(schema)
    if part is SchemaPart.NONE:
        return replace(ddl, left_out=BY_FILTER)
    if selection.ignores(ddl, [TableName(schema, "")]):
        return replace(ddl, left_out=BY_EVENT_FILTER)
    if statement.kind is DdlKind.DROP_SCHEMA and part is SchemaPart.SOME:
        return _refused(ddl, "source.tables takes only a part of the schema, and the sink's schema may hold other tables too", _BY_HAND)
    if statement.kind is not DdlKind.CREATE_SCHEMA and not selection.is_apart(schema):
        return _refused(ddl, "routes put tables of several schemas into one, or of one into several", _BY_HAND)
    return _with_sink_names(ddl, selection)


def _of_tables(ddl: DdlEvent, statement: DdlStatement, selection: TableSelection) -> DdlEvent:
    changed = changed_tables(statement)
    taken = [new for _, new in statement.renames]
    is_in = [selection.has(table) for table in changed]
    if not any(is_in) and not any(map(selection.has, taken)):
        return replace(ddl, left_out=BY_ONLINE_DDL if any(map(selection.tables.has, changed)) else BY_FILTER)
    if selection.ignores(ddl, [*changed, *taken]):
        return replace(ddl, left_out=BY_EVENT_FILTER)
    if not any(is_in):
        return _refused(ddl, "a table that source.tables excludes gets a name that it includes: its rows were never read", _NEW_TABLE)
    if not all(is_in):
        return _of_swap(ddl, statement, selection) or _of_both_kinds(ddl, statement, changed, selection)
    routed = _with_sink_names(ddl, selection, [*changed, *taken])
    left_out = [table for table in read_tables(statement) if not selection.has(table)]
    return _unless_kept(routed, ddl, statement.kind, left_out[0]) if left_out else routed


def _of_both_kinds(ddl: DdlEvent, statement: DdlStatement, changed: Iterable[TableName], selection: TableSelection) -> DdlEvent:
    entering = [(old, new) for old, new in statement.renames if not selection.has(old) and selection.has(new)]
    if entering:
        old, new = entering[0]
        return _refused(ddl, f"source.tables excludes {old}, which becomes {new}: its rows were never read", _SWAPPED)
    return _refused(ddl, f"source.tables excludes some of its tables: {_listed(changed, selection)}", _BY_HAND)


def _unless_kept(routed: DdlEvent, ddl: DdlEvent, kind: DdlKind, source: TableName) -> DdlEvent:
    """Refuse a statement that reads an excluded table. LIKE is applied if the sink has that table: a RENAME took it out of the filter."""
    refused = _refused(ddl, f"it reads a table that source.tables excludes: {source}", _OUT_TOO)
    if kind is not DdlKind.CREATE_TABLE_LIKE or routed.refusal is not None or refused.refusal is None:
        return refused
    return replace(routed, refusal=refused.refusal._replace(kept=source))


def _of_swap(ddl: DdlEvent, statement: DdlStatement, selection: TableSelection) -> DdlEvent | None:
    """Return a RENAME that replaces a table by an excluded copy, as a change of that table; None for another statement.

    Its text is a change that touches what the ALTER TABLE of the copy touches; the driver, who knows the ledger, writes that one into it.
    """
    if len(statement.renames) != 2 or statement.kind is not DdlKind.RENAME_TABLE:
        return None
    (table, leftover), (copy, taken) = statement.renames
    if taken.fold() != table.fold() or not selection.has(table):
        return None
    if selection.online.is_leftover(copy, table) and selection.online.is_copy(leftover, table):
        return _refused(
            ddl, "it takes the cut-over of an online schema change back: the rows of before return, which were not read", _SWAPPED
        )
    if not (selection.online.is_copy(copy, table) and selection.online.is_leftover(leftover, table)):
        return None
    if selection.has(leftover):
        return _refused(ddl, f"source.tables includes {leftover}, and excludes the copy that replaces the table", _BOTH_OR_NONE)
    text = ddl.query.replace("*/", "* /")
    query = f"ALTER TABLE {quoted_name(table.schema)}.{quoted_name(table.table)} FORCE /* {text} */"
    changed = _with_sink_names(replace(ddl, schema=table.schema, table=table.table, query=query), selection)
    own = selection.name(table)
    return replace(changed, schema=own.schema, table=own.table, cut_over=CutOver(table, copy, is_routed=own != table))


def _without_swap(cut_over: CutOver) -> DdlStatement:
    """Return what a cut-over does to the tables of the replica: the table stays, and its copy is gone."""
    return DdlStatement(kind=DdlKind.ALTER_TABLE, needs=(cut_over.table,), drops=(cut_over.copy,))


def changed_tables(statement: DdlStatement) -> list[TableName]:
    """Return the tables that a statement makes, changes, drops or renames, under the names that they have before it."""
    needs = () if statement.kind is DdlKind.CREATE_TABLE_LIKE else statement.needs
    return [*needs, *statement.creates, *statement.drops, *(old for old, _ in statement.renames)]


def read_tables(statement: DdlStatement) -> Iterable[TableName]:
    """Return the tables without which a statement cannot run: the source of LIKE, the tables of a view's query. Foreign keys need none."""
    if statement.kind is DdlKind.CREATE_TABLE_LIKE:
        return statement.needs
    return statement.mentions if statement.kind is DdlKind.CREATE_VIEW else ()


def _listed(tables: Iterable[TableName], selection: TableSelection) -> str:
    return ", ".join(str(table) for table in tables if not selection.has(table))


def _with_sink_names(ddl: DdlEvent, selection: TableSelection, tables: Iterable[TableName] = ()) -> DdlEvent:
    if not selection.routes:
        return ddl
    for one, other in combinations({table.fold(): table for table in tables}.values(), 2):
        if selection.name(one).fold() == selection.name(other).fold():
            return _refused(ddl, f"two tables would be one in the sink: {one} and {other} are both {selection.name(one)}", _OTHER_ROUTES)

    def name_of(name: TableName) -> TableName:
        return selection.name(name) if name.table else TableName(selection.schema_name(name.schema), "")

    routed = renamed(ddl, name_of)
    return routed or _refused(ddl, "the applier cannot give the tables of this statement the sink's names", _BY_HAND)


def _refused(ddl: DdlEvent, why: str, remedy: Remedy) -> DdlEvent:
    return replace(ddl, refusal=DdlRefusal(why, remedy))
