"""The schemas that upstream's events must not touch: the bookkeeping's, and the system schemas of the database.

A cascade of replicas has such events: the second applier sees the first one's bookkeeping among upstream's tables, and a ``DROP
DATABASE applier`` there would drop the bookkeeping here. Names are compared without regard to case, as TiDB does.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final, NamedTuple

from applier.ddl import parse_ddl
from applier.ddl.tokens import DdlSyntaxError, scan
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, TableName

_ELSEWHERE: Final = Remedy(
    "sink.move-bookkeeping",
    'Move the bookkeeping to another schema ([sink] schema = "…"; `applier docs sink`), or exclude upstream\'s schema: '
    'tables = ["*.*", "!schema.*"] under [source]',
)
_LEAVE_OUT: Final = Remedy("sink.exclude-bookkeeping-schema", 'Exclude upstream\'s schema: tables = ["*.*", "!schema.*"] under [source]')


class Reserved(NamedTuple):
    """``bookkeeping`` is the name of its schema ('': it needs none); ``system`` are casefolded names."""

    bookkeeping: str
    system: frozenset[str]

    def holds(self, table: TableName) -> bool:
        """Return whether the table is in a reserved schema."""
        folded = table.schema.casefold()
        return folded in self.system or (folded == self.bookkeeping.casefold() != "")

    def refuse_rows(self, table: TableName, **place: object) -> None:
        """Raise NeedsOperator if the table is in a reserved schema."""
        self._refuse([table.schema], mentions=(), facts={"table": str(table), **place})

    def refuse_ddl(self, ddl: DdlEvent) -> None:
        """Raise NeedsOperator if the DDL touches a reserved schema. Reading a system schema (a view does) is allowed."""
        statement = parse_ddl(ddl)
        facts: dict[str, Any] = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
        if statement is None:
            self._refuse([ddl.schema, *_schemas_in(ddl.query)], mentions=(), facts=facts)
            return
        mentioned = {name.schema for name in statement.mentions}
        touched = [name.schema for name in statement.names if name not in statement.mentions]
        self._refuse([ddl.schema, statement.schema, *touched], mentions=mentioned, facts=facts)

    def _refuse(self, schemas: Iterable[str], *, mentions: Iterable[str], facts: dict[str, Any]) -> None:
        own = self.bookkeeping.casefold()
        names = {schema.casefold() for schema in schemas}
        if own and own in names | {schema.casefold() for schema in mentions}:
            message = "an upstream event touches the schema of the applier's bookkeeping"
            raise NeedsOperator(message, remedy=_ELSEWHERE, schema=self.bookkeeping, **facts)
        for schema in sorted(names & self.system):
            message = "an upstream event touches a system schema of the sink's database"
            raise NeedsOperator(message, remedy=_LEAVE_OUT, schema=schema, **facts)


def _schemas_in(query: str) -> list[str]:
    """Return the names of schemas in a statement that cannot be parsed: the names before a dot, or after DATABASE or SCHEMA."""
    try:
        tokens = scan(query)
    except DdlSyntaxError:
        return []
    qualifiers = [token.text for token, following in pairwise(tokens) if following.kind == "."]
    # Four tokens: between DATABASE and the name there is at most IF NOT EXISTS.
    wholes = [token.text for at, token in enumerate(tokens) if {t.keyword for t in tokens[max(0, at - 4) : at]} & {"DATABASE", "SCHEMA"}]
    return qualifiers + wholes
