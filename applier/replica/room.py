"""Makes room for a table that leaves the selection by RENAME, where its new name is that of one that has left before.

A log that upstream rotates: RENAME log TO log_old, a new log, DROP log_old, RENAME log TO log_old. The filter takes ``log`` alone. The sink
keeps its rows as log_old, and the DROP was left out with everything else about that name. So the second RENAME finds the first table. It is
no table of upstream any more, and its rows were chosen: the sink keeps them under a name that says when the next one came.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.ddl.parser import parse
from applier.ddl.tree import AlterTableStatement
from applier.model.events import DdlEvent, FoldedName, TableName

LONGEST_NAME: Final = 64
Describe = Callable[[Collection[TableName]], Mapping[FoldedName, Any]]


def with_room(ddl: DdlEvent, known: Collection[FoldedName], describe: Describe) -> DdlEvent:
    """Return a RENAME out of the selection with what first renames the sink's tables of the new names.

    ``known``: the replica's own tables. One that it has not made stays, and the RENAME stops at it.
    """
    leaving = [move.after for move in ddl.moves if move.before not in {None, move.after} and move.after is not None and move.sink is None]
    statement = parse_ddl(ddl) if leaving and not ddl.left_out else None
    if statement is None or not _only_renames(ddl, statement):
        return ddl
    # Upstream's names; the sink's are those of the statement, in the same order. A name that changes in case only is none that moves.
    moved = [move for move in ddl.moves if move.before != move.after]
    if len(moved) != len(statement.renames):
        return ddl
    taken = [
        new
        for move, (_, new) in zip(moved, statement.renames, strict=True)
        if move.sink is None and new.fold() in known and new.fold() not in {old.fold() for old, _ in statement.renames}
    ]
    present = describe(taken) if taken else {}
    aside = [(new, _aside(new, ddl)) for new in taken if new.fold() in present]
    if not aside:
        return ddl
    pairs = ", ".join(f"{_quoted(old)} TO {_quoted(new)}" for old, new in [*aside, *statement.renames])
    return replace(ddl, query=f"RENAME TABLE {pairs}")


def _only_renames(ddl: DdlEvent, statement: DdlStatement) -> bool:
    if statement.kind is DdlKind.RENAME_TABLE:
        return True
    node = parse(ddl.query).node
    return bool(statement.renames) and isinstance(node, AlterTableStatement) and len(node.clauses) == 1


def _aside(name: TableName, ddl: DdlEvent) -> TableName:
    end = f"_{ddl.commit_ts}"
    return TableName(name.schema, name.table[: LONGEST_NAME - len(end)] + end)


def _quoted(name: TableName) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in (name.schema, name.table))
