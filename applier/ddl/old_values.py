"""How a DDL converts the values in old rows, where servers differ: questions for a sink to answer. Pure.

Upstream has converted its rows, and the stream does not say how. So a sink asks its rows whether the question matters, before
anything has changed: a column without values, or with plain ones, is converted; anything else stops.

Finds values that a DDL gives to existing rows and that depend on the server: numbers, and what a default computes. Pure.

A default may ask for random values, the user, a variable, the modes or the language of its session, or how many digits a division has.
So what it computes counts as upstream's only if it is on the list of portable expressions.

Writes the default that MySQL and TiDB give old rows of a new JSON column without one, for a sink that is a MariaDB. Pure.

MySQL and TiDB put the JSON value ``null`` into old rows of ``ADD COLUMN j JSON NOT NULL``, and the SQLite sink does too. MariaDB's JSON is
a text with a check: it puts '' there, which its own check refuses as soon as such a row is written again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from applier.ddl.charset import NARROW
from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.conversion_rule import EXACT, SERVER, Certainty, ConversionRule, PlainValues, conversion_rule
from applier.ddl.parser import CONVERTED, parse, parse_or_none
from applier.ddl.portable_expression import Columns, is_portable_default
from applier.ddl.table_draft import DefaultKind, ParsedColumn, charset_within, converted_text, defined_columns, parse_column, parse_default
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import AlterClause, AlterTableStatement, ClauseKind, Edit, Element, ElementKind, Span, Tree, edited
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent

SERVER_KIND: Final = "server"
"""The entry of ``DdlEvent.session`` that names the kind of a log's server."""
MARIADB, MYSQL, TIDB = "mariadb", "mysql", "tidb"
"""Kinds of servers: servers of one kind convert alike."""
COPIED: Final = "copied"
"""Instead of such a kind: INSERT IGNORE … SELECT has put the rows into a copy of the table, at several times, and has converted them."""

_ALIKE_IN_LOGS: Final = frozenset(
    {
        PlainValues.IN_RANGE, PlainValues.SHORT, PlainValues.LABELS, PlainValues.IN_CHARSET, PlainValues.DECIMAL_TEXT,
        PlainValues.YEAR_TEXT, PlainValues.WHOLE, PlainValues.MIDNIGHT, PlainValues.DATE_TEXT, PlainValues.DATETIME_TEXT,
        PlainValues.TIME_TEXT,
    }
)  # fmt: skip
"""Where MySQL and MariaDB convert other values alike too, under the modes of upstream's session, which a log names (``query_session``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldColumn:
    """A column as it is before the DDL."""

    name: str
    type: ColumnType
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a sink asks its rows: whether they have values in ``column`` ('': whether there are rows) that are not certain by ``rule``.

    ``new`` is None where the values become no other type: with ``of_nulls`` NULLs matter.
    """

    what: str
    column: str = ""
    rule: ConversionRule = SERVER
    old: ColumnType | None = None
    new: ColumnType | None = None
    of_nulls: bool = False


def refuse_other_values(
    ddl: DdlEvent, sink_kind: Callable[[], str], columns: Callable[[], Mapping[str, OldColumn]], matters: Callable[[Question], bool]
) -> None:
    """Raise NeedsOperator if the sink's server may make other values of old rows than upstream's.

    ``sink_kind``: asks for its kind; ``columns``: for the table's columns by casefolded name; ``matters``: asks the rows. Nothing is asked
    that does not matter.
    """
    if not _may_change_rows(ddl.query) or kind_of_upstream(ddl) == sink_kind():
        return
    is_copied = kind_of_upstream(ddl) == COPIED
    for question in questions(ddl.query, columns(), is_copied=is_copied):
        is_alike = ddl.is_of_log and not is_copied and _is_alike_in_logs(question)
        if not is_alike and matters(question):
            raise NeedsOperator(
                f"the DDL changes values of old rows, and servers convert them differently: {question.what}",
                remedy=CONVERTED,
                table=str(ddl.name),
                commit_ts=ddl.commit_ts,
                query=ddl.query,
            )


def kind_of_upstream(ddl: DdlEvent) -> str:
    """Return the kind of server that ran the DDL upstream; '' of a log: it was not stored with the DDL."""
    return str(dict(ddl.session).get(SERVER_KIND, "")) if ddl.is_of_log else TIDB


def _is_alike_in_logs(question: Question) -> bool:
    # The time of a log's statement is known to the microsecond; what becomes of NULLs depends on the mode, and is alike.
    return question.new is None or question.rule.certainty is Certainty.EXACT or question.rule.plain in _ALIKE_IN_LOGS


def _may_change_rows(query: str) -> bool:
    tree = parse_or_none(query)
    if tree is None:
        return False
    node = tree.node
    return isinstance(node, AlterTableStatement) and any(clause.kind in _KINDS for clause in node.clauses)


_KINDS: Final = frozenset({ClauseKind.ADD, ClauseKind.MODIFY, ClauseKind.CHANGE, ClauseKind.CONVERT})


def questions(query: str, columns: Mapping[str, OldColumn], *, is_copied: bool = False) -> Iterator[Question]:
    """Yield what must be asked before an ALTER TABLE that can be parsed runs. ``is_copied``: upstream has copied the rows instead."""
    tree = parse(query)
    clauses = tree.node.clauses if isinstance(tree.node, AlterTableStatement) else ()
    for clause in clauses:
        if clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE}:
            yield from _of_changed(tree, clause, columns)
        elif clause.kind is ClauseKind.CONVERT:
            yield from _of_converted(tree, clause, columns)
        for element in clause.elements:
            if element.kind is ElementKind.COLUMN and element.name is not None:
                yield from _of_added(tree, (element.body, element.span[1]), element.name.text, is_copied=is_copied)


def _of_changed(tree: Tree, clause: AlterClause, columns: Mapping[str, OldColumn]) -> Iterator[Question]:
    name = "" if clause.name is None else clause.name.text
    old, parsed = columns.get(name.casefold()), _parsed(tree, (clause.body, clause.span[1]), name)
    if old is None:
        return  # nothing is converted, or the statement fails
    if parsed is None:
        yield Question(what=f"column {name}, whose new definition the applier does not understand", column=old.name, new=old.type)
        return
    new = parsed.definition
    yield from _of_type(old, new.type, charset_within(tree.part(clause.body, clause.span[1])))
    if old.nullable and not new.nullable:
        yield Question(what=f"NULL in column {name}, which becomes NOT NULL", column=old.name, rule=EXACT, of_nulls=True)


def _of_converted(tree: Tree, clause: AlterClause, columns: Mapping[str, OldColumn]) -> Iterator[Question]:
    """CONVERT TO CHARACTER SET is a MODIFY of each text."""
    charset = charset_within(tree.part(clause.body, clause.span[1]))
    for old in columns.values() if charset not in {"", "default"} else ():
        if old.type.family is TypeFamily.CHARACTER:
            yield from _of_type(old, converted_text(old.type, charset), charset)


def _of_type(old: OldColumn, new: ColumnType, charset: str) -> Iterator[Question]:
    """Ask how the values of another type are converted. ``charset``: as the statement names it."""
    rule = conversion_rule(old.type, new)
    if charset in NARROW and old.type.family is new.family is TypeFamily.CHARACTER:
        new, rule = replace(new, charset=charset), ConversionRule(Certainty.SERVER, PlainValues.IN_CHARSET)
    if rule.certainty is not Certainty.EXACT or is_made_a_point(old.type, new):
        beside = "" if rule.plain is None else f"; only {rule.plain.value} are certain"
        what = f"column {old.name} becomes {new}, was {old.type}{beside}"
        yield Question(what=what, column=old.name, rule=rule, old=old.type, new=new)


def is_made_a_point(old: ColumnType, new: ColumnType) -> bool:
    """Return whether times become points in time: an hour that comes twice in the zone of upstream's session is not certain."""
    return new.family is TypeFamily.TIMESTAMP and old.family is not TypeFamily.TIMESTAMP


def _of_added(tree: Tree, body: Span, name: str, *, is_copied: bool) -> Iterator[Question]:
    parsed = _parsed(tree, body, name)
    if parsed is None or parsed.definition.default is None:
        return
    if is_copied and parsed.definition.default.kind is not DefaultKind.LITERAL:
        yield Question(what=f"column {name} gets a default that was computed when upstream copied each row")
        return
    # TiDB's versions differ in whether they keep the fraction; none says which it was.
    if parsed.definition.default.kind is DefaultKind.NOW and parsed.definition.type.scale:
        yield Question(what=f"column {name} gets the fraction of a second in which upstream began the DDL")


def _parsed(tree: Tree, body: Span, name: str) -> ParsedColumn | None:
    try:
        return parse_column(tree.part(*body), name)
    except DdlSyntaxError:
        return None


OWN_VALUES: Final = "the DDL numbers existing rows, or a default computes values for them: those may differ from upstream's"
OLD_TIMESTAMPS: Final = ("explicit_defaults_for_timestamp", "OFF")
"""The session's variable (``DdlEvent.session``) of an ALTER TABLE whose TIMESTAMP columns get what the whole table decides."""

_OPTIONS: Final = frozenset({"COLUMN_FORMAT", "STORAGE", "SET"})
"""DEFAULT after them is not a value."""


def own_values(query: str, columns: Callable[[], Columns]) -> str:
    """Return the column that gets such values; '' if there is none. ``columns``: asks for the table's columns before the DDL."""
    tree = parse_or_none(query)
    return "" if tree is None else next(_columns(tree, columns), "")


def _columns(tree: Tree, columns: Callable[[], Columns]) -> Iterator[str]:
    if not isinstance(tree.node, AlterTableStatement):
        return
    for clause in tree.node.clauses:
        for element in clause.elements:
            if element.kind is ElementKind.COLUMN and element.name is not None:
                words = {token.keyword for token in tree.tokens[element.body : element.span[1] + 1]}
                if words & {"AUTO_INCREMENT", "SERIAL"} or _is_computed(tree, element, element.name.text, columns):
                    yield element.name.text


def _is_computed(tree: Tree, element: Element, name: str, columns: Callable[[], Columns]) -> bool:
    """Return whether the default of an added column computes what another server may compute differently."""
    at = _place_of_default(tree, element)
    if at is None:
        return False
    try:
        default = parse_default(tree.part(at + 1, element.span[1]))
        if default is None or default.kind is not DefaultKind.EXPRESSION:
            return False
        added = parse_column(tree.part(element.body, element.span[1]), name).definition.type
    except DdlSyntaxError:
        return True
    return not is_portable_default(default.text, columns(), added)


def _place_of_default(tree: Tree, element: Element) -> int | None:
    depth, before = 0, ""
    for at in range(element.body, element.span[1] + 1):
        word = tree.tokens[at].keyword
        depth += (word == "(") - (word == ")")
        if word == "DEFAULT" and depth == 0 and before not in _OPTIONS:
            return at
        before = word
    return None


_DEFAULT: Final = " /*M! DEFAULT 'null' */"
"""MariaDB alone executes it; MySQL takes no default of JSON that is a literal."""


def with_json_defaults(query: str) -> str:
    """Return an ALTER TABLE of a MySQL or TiDB with that default of each new JSON column that is NOT NULL; other statements unchanged."""
    tree = parse_or_none(query)
    if tree is None:
        return query
    if not isinstance(tree.node, AlterTableStatement):
        return query
    edits = []
    for column in defined_columns(tree):
        is_json = column.type is not None and column.type.family is TypeFamily.JSON
        not_null = [last for first, last in column.nullability if tree.tokens[first].keyword == "NOT"]
        if is_json and not_null and not (column.formerly or column.has_default or column.generation):
            end = tree.tokens[not_null[-1]].end
            edits.append(Edit(end, end, _DEFAULT))
    return edited(query, edits)
