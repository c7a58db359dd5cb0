"""Tables of the sink as the planner needs them: columns, generated columns, unique keys. Read from the sink again after each DDL."""

from collections.abc import Iterable
from dataclasses import dataclass

from applier.model.events import FoldedName
from applier.planner.table_check import UniqueIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDescription:
    """A column of a table of the sink. ``sql_type`` is the dialect's full type text (``enum('a','b')``, ``bigint(20) unsigned``)."""

    name: str
    sql_type: str
    nullable: bool
    generated: bool = False
    computes_otherwise: bool = False
    """Of a generated column: whether the sink may compute other values than upstream."""
    has_default: bool = False
    default: str | None = None
    """What a REPLACE writes for the column's default; None: it does not have one, or none that can be written."""
    binary: bool = False
    """Whether it holds bytes and not text (the sink knows it even where the wire's flags are stale)."""
    labels: tuple[str, ...] = ()
    """Element list of ENUM and SET, in order, where the sink stores labels and not ordinals."""
    is_set: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """A table of the sink.

    ``unique_keys`` are column names per unique index without prefix lengths, expressions or nullable columns, the primary key first.
    ``unique_indexes`` are all unique indexes that upstream is not known to have: rows are compared with them.
    ``explained_indexes``: the others.
    """

    schema: str
    table: str
    columns: tuple[ColumnDescription, ...]
    # A prefix, an expression or a NULL lets several rows have one key: a DELETE by it could hit rows of others.
    unique_keys: tuple[tuple[str, ...], ...]
    primary_key: tuple[str, ...] = ()
    unique_indexes: tuple[UniqueIndex, ...] = ()
    explained_indexes: tuple[UniqueIndex, ...] = ()
    early_columns: frozenset[str] = frozenset()
    """Casefolded names of columns that a DDL behind the rows adds: rows may carry them already, with the value that the DDL gives them."""

    @property
    def folded(self) -> FoldedName:
        """Identity of the table."""
        return FoldedName(self.schema.casefold(), self.table.casefold())

    def has_unique_key(self, names: Iterable[str]) -> bool:
        """Return whether one of the unique keys consists of exactly these columns, in any order and case."""
        wanted = {name.casefold() for name in names}
        return any({name.casefold() for name in unique} == wanted for unique in self.unique_keys)
