"""Creates the tables and views of a dump in the sink: each definition is selected, routed and rewritten as a DDL of the stream.

The ledger keeps them as done at the dump's timestamp, where the table check finds what upstream has.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from applier.ddl import identity, policy
from applier.ddl.parser import parse_or_none
from applier.ddl.session_words import without_session_words
from applier.ddl.tokens import Cursor, DdlSyntaxError
from applier.ddl.tree import CreateTableStatement, ElementKind
from applier.dump.statements import Piece, PieceKind
from applier.model.errors import ConfigError, FatalSinkError, NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import Ts
from applier.selection import TableSelection, select_ddl
from applier.sinks.dump_loader import DumpForm
from applier.sinks.port import Sink

_TYPES: Final = {PieceKind.SCHEMA: 1, PieceKind.TABLE: 3, PieceKind.VIEW: 21}
"""TiDB's types of DDLs."""
_STORED: Final = frozenset({"STORED", "PERSISTENT"})
_NAMED_BYTES: Final = frozenset({"uuid", "inet4", "inet6"})
_FLOATS: Final = frozenset({"float", "float4"})
_HAS_CONDITION: Final = re.compile(r"IF\s+NOT\s+EXISTS", re.IGNORECASE)
_CREATE_SCHEMA: Final = re.compile(r"^(\s*CREATE\s+(?:DATABASE|SCHEMA)\s+)", re.IGNORECASE)

ToLog = Callable[[DdlEvent, str], DdlEvent]


@dataclass(slots=True, kw_only=True)
class Definitions:
    """The definitions of one dump. Not thread-safe. ``to_log``: what a dump of MySQL or MariaDB needs; None: upstream is TiDB."""

    sink: Sink
    selection: TableSelection
    policies: Mapping[str, str]
    start_ts: Ts
    zone: str
    to_log: ToLog | None
    made: list[TableName] = field(default_factory=list)
    """Tables and views, by upstream's names."""
    left_out: list[str] = field(default_factory=list)
    floats: list[str] = field(default_factory=list)
    """FLOAT columns of MySQL and MariaDB: their dumpers write six digits, without a warning."""
    named_bytes: dict[FoldedName, dict[str, str]] = field(default_factory=dict)
    """The columns of MariaDB's types whose values a dump writes as text and a binlog has as bytes, by the sink's tables."""
    _views: dict[TableName, Piece] = field(default_factory=dict)
    _without_rows: set[TableName] = field(default_factory=set)
    """Sequences, which mydumper dumps as tables."""
    _schemas: set[str] = field(default_factory=set)
    """Of the sink."""

    @property
    def form(self) -> DumpForm:
        """How the dump writes values."""
        return DumpForm(zone=self.zone, named_bytes=self.named_bytes, is_of_log=self.to_log is not None)

    def make(self, piece: Piece, schema: str) -> None:
        """Make what a statement defines; of a view only the last definition counts, at the end (``finish``)."""
        match piece.kind:
            case PieceKind.VIEW:
                self._views[TableName(piece.schema or schema, piece.name)] = piece
            case PieceKind.LEFT_OUT:
                self.left_out.append(piece.name)
                self._without_rows.add(TableName(piece.schema or schema, piece.name.partition(" ")[2]))
            case PieceKind.SCHEMA:
                self._run(piece, TableName(piece.schema, ""))
            case _:
                self._run(piece, TableName(piece.schema or schema, piece.name))

    def finish(self) -> None:
        """Make the views, each after the views that it reads."""
        waiting = dict(self._views)
        failure: FatalSinkError | NeedsOperator | None = None
        while waiting:
            before = len(waiting)
            for name, piece in list(waiting.items()):
                try:
                    self._run(piece, name)
                # A sink without views of what is not there says that it cannot translate one.
                except (FatalSinkError, NeedsOperator) as error:
                    failure = error
                else:
                    del waiting[name]
            if failure is not None and len(waiting) == before:
                raise failure

    def has(self, table: TableName) -> bool:
        """Return whether the rows of a table are loaded."""
        return self.selection.has(table) and table not in self._without_rows

    def _run(self, piece: Piece, name: TableName) -> None:
        if not name.schema:
            raise ConfigError(
                "the dump does not say to which schema its tables belong",
                remedy=Remedy("dump.dump-with-databases", "Dump with --databases, which writes the schemas into the file"),
                table=name.table,
            )
        event = select_ddl(self._event(piece, name), self.selection)
        if policy.is_skipped(event, self.policies):
            return
        if name.table:
            self._require_schema(event.schema)
        elif event.schema.casefold() in self._schemas:
            # Routes put several schemas of upstream into one.
            return
        else:
            self._schemas.add(event.schema.casefold())
        self.sink.load_ddl(identity(event), event)
        if name.table:
            self.made.append(name)
            self.named_bytes[event.name.fold()] = _of_types(event.query, _NAMED_BYTES)
            self.floats += [f"{name}.{column}" for column in _of_types(event.query, _FLOATS)] if self.to_log is not None else []
            self._check_values(event)

    def _event(self, piece: Piece, name: TableName) -> DdlEvent:
        query = piece.text.decode(errors="surrogateescape")
        if not name.table and not _HAS_CONDITION.search(query):
            query = _CREATE_SCHEMA.sub(r"\1IF NOT EXISTS ", query)
        session = (("time_zone", self.zone),)
        ddl = DdlEvent(
            commit_ts=self.start_ts, schema=name.schema, table=name.table, query=query, ddl_type=_TYPES[piece.kind], session=session
        )
        if self.to_log is not None:
            return replace(self.to_log(ddl, self.zone), schema=name.schema, table=name.table)
        try:
            # The account of upstream that a view belongs to need not be in the sink.
            return replace(ddl, query=without_session_words(query)) if piece.kind is PieceKind.VIEW else ddl
        except DdlSyntaxError:
            return ddl

    def _require_schema(self, schema: str) -> None:
        """Make a schema that the dump does not define, with TiDB's default collation."""
        if schema.casefold() not in self._schemas:
            self._schemas.add(schema.casefold())
            quoted = "`" + schema.replace("`", "``") + "`"
            query = f"CREATE DATABASE IF NOT EXISTS {quoted} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
            made = DdlEvent(commit_ts=self.start_ts, schema=schema, table="", query=query, ddl_type=1)
            self.sink.load_ddl(identity(made), made)

    def _check_values(self, ddl: DdlEvent) -> None:
        """Refuse a stored generated column that is a plain one in the sink: a dump does not have its values."""
        stored = _stored_columns(ddl.query)
        if not stored:
            return
        for table in self.sink.describe([ddl.name]).values():
            plain = [column.name for column in table.columns if column.name.casefold() in stored and not column.generated]
            if plain:
                raise NeedsOperator(
                    "the sink cannot compute a stored generated column as upstream does, and the dump has no values of it",
                    remedy=Remedy(
                        "dump.exclude-table-or-plain-column",
                        "Exclude the table by source.tables, or make the column a plain one upstream before the dump",
                    ),
                    table=str(ddl.name),
                    columns=", ".join(plain),
                )


def _of_types(query: str, wanted: Collection[str]) -> dict[str, str]:
    """Return the columns of these types that a CREATE TABLE makes, with the type."""
    types = {name: cursor.rest[0].text.casefold() for name, cursor in _columns(query).items() if not cursor.is_done}
    return {name: word for name, word in types.items() if word in wanted}


def _stored_columns(query: str) -> set[str]:
    return {name for name, cursor in _columns(query).items() if _is_stored(cursor)}


def _columns(query: str) -> dict[str, Cursor]:
    """Return the columns of a CREATE TABLE, with the text of each after its name."""
    tree = parse_or_none(query)
    if tree is None or not isinstance(tree.node, CreateTableStatement):
        return {}
    columns = [element for element in tree.node.elements if element.kind is ElementKind.COLUMN]
    return {column.name.text.casefold(): tree.part(column.body, column.span[1]) for column in columns if column.name is not None}


def _is_stored(cursor: Cursor) -> bool:
    words = {token.keyword for token in cursor.rest}
    return "AS" in words and bool(words & _STORED)
