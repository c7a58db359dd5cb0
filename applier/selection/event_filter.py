"""Event filters: kinds of events of chosen tables that are left out, as in a changefeed's ``[[filter.event-filters]]``.

What they leave out of the rows makes the sink differ from upstream: that is what the operator asks for.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from applier.ddl import ddl_type_name
from applier.ddl.ddl_type import DDL_TYPE_NAMES
from applier.model.events import DdlEvent, RowOperation, TableName
from applier.selection.pattern import PatternError, compiled
from applier.selection.table_filter import TableFilter

ALL_ROWS: Final = "all_dml"
ALL_DDLS: Final = "all_ddl"

KINDS: Final = frozenset({*RowOperation, ALL_ROWS, ALL_DDLS, *DDL_TYPE_NAMES.values()})
"""What ``ignore`` may name: kinds of rows and DDL types. TiCDC's spelling, with blanks for the underscores, is read too."""

_REMEDY: Final = "Name insert, update, delete, all_dml, all_ddl or a DDL type, as under [ddl]"


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Leaves events of some tables out. ``ignored``: of KINDS. ``statements``: of DDLs, found anywhere in the text."""

    tables: TableFilter
    ignored: frozenset[str] = frozenset()
    statements: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def parse(cls, tables: TableFilter, ignored: Iterable[str], statements: Iterable[str] = ()) -> "EventFilter":
        """Read one filter. PatternError."""
        kinds = frozenset(kind.strip().lower().replace(" ", "_") for kind in ignored)
        for kind in sorted(kinds - KINDS):
            raise PatternError(f"has an unknown kind of event: {kind!r}", _REMEDY)
        try:
            return cls(tables, kinds, tuple(map(compiled, statements)))
        except re.error as error:
            raise PatternError(f"has a regular expression that cannot be read ({error})", "Correct ignore_sql") from None

    def ignored_rows(self, table: TableName) -> frozenset[RowOperation]:
        """Return which row changes of a table are left out."""
        if not self.tables.has(table):
            return frozenset()
        return frozenset(RowOperation) if ALL_ROWS in self.ignored else frozenset(kind for kind in RowOperation if kind in self.ignored)

    def ignores(self, ddl: DdlEvent, tables: Iterable[TableName]) -> bool:
        """Return whether a DDL that touches ``tables`` is left out."""
        if not (self.ignored & {ALL_DDLS, ddl_type_name(ddl.ddl_type)} or any(one.search(ddl.query) for one in self.statements)):
            return False
        return any(self.tables.has(table) for table in tables)
