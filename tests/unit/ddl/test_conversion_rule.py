"""The table of conversions, and what a statement asks by it."""

from dataclasses import replace

import pytest

from applier.ddl.column_type import ColumnType
from applier.ddl.conversion_rule import Certainty, ConversionRule, PlainValues, conversion_rule
from applier.ddl.old_values import COPIED, MARIADB, MYSQL, SERVER_KIND, TIDB, OldColumn, Question, questions, refuse_other_values
from applier.ddl.table_draft import parse_type
from applier.ddl.tokens import Cursor
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.model.position import Ts
from tests.builders.conversions import CONVERSIONS, STOP


def kind(text: str) -> ColumnType:
    return parse_type(Cursor(text))


def rule(old: str, new: str) -> ConversionRule:
    return conversion_rule(kind(old), kind(new))


@pytest.mark.parametrize(("old", "new", "value", "expected"), CONVERSIONS)
def test_the_table_agrees_with_what_servers_do(old: str, new: str, value: str, expected: str) -> None:
    found = rule(old, new)
    if expected == STOP:
        assert found.certainty is Certainty.SERVER or value == "NULL"
    else:
        assert found.certainty is Certainty.EXACT or found.plain is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tinyint", "bigint"), ("int unsigned", "bigint"), ("decimal(5,2)", "decimal(7,2)"), ("bigint", "decimal(20,0)"), ("int", "double"),
        ("varchar(5)", "text"), ("char(5)", "varchar(5)"), ("binary(3)", "varbinary(9)"), ("varchar(5)", "varbinary(20)"),
        ("enum('a')", "enum('b','a')"), ("enum('a')", "varchar(9)"), ("datetime(3)", "datetime(6)"), ("date", "datetime"),
        ("longtext", "vector(3)"),
        ("time", "time(3)"),
        ("float", "double"), ("json", "json"), ("timestamp", "datetime(3)"), ("bigint", "varchar(20)"), ("set('a','b')", "tinyint"),
    ],
)  # fmt: skip
def test_what_loses_nothing_is_exact(old: str, new: str) -> None:
    assert rule(old, new) == ConversionRule(Certainty.EXACT)


@pytest.mark.parametrize(
    ("old", "new", "plain"),
    [
        ("float", "varchar(30)", None), ("float", "int", None), ("float", "float(7,2)", None), ("int", "date", None),
        ("time", "datetime", None),
        ("int", "json", None), ("varchar(9)", "json", None), ("year", "int", None), ("json", "varchar(90)", PlainValues.AS_SENT),
        ("datetime(6)", "datetime(3)", PlainValues.WHOLE), ("int", "bit(8)", PlainValues.IN_RANGE),
        ("text", "varchar(9)", PlainValues.SHORT),
    ],
)  # fmt: skip
def test_the_rest_depends_on_the_server(old: str, new: str, plain: PlainValues | None) -> None:
    assert rule(old, new) == ConversionRule(Certainty.SERVER, plain)


def test_nothing_is_made_of_a_vector() -> None:
    assert rule("vector(3)", "json").certainty is Certainty.REFUSED


COLUMNS = {
    "a": OldColumn(name="a", type=kind("varchar(9)")),
    "n": OldColumn(name="n", type=kind("int")),
    "d": OldColumn(name="d", type=kind("datetime"), nullable=False),
}


def asked(query: str) -> list[Question]:
    return list(questions(query, COLUMNS))


def test_a_statement_asks_about_each_column_that_it_converts() -> None:
    found = asked("ALTER TABLE t MODIFY a INT, CHANGE n m BIGINT NOT NULL, MODIFY d TIMESTAMP NOT NULL, ADD c DATETIME(3) DEFAULT NOW(3)")
    assert [(one.column, one.of_nulls) for one in found] == [("a", False), ("n", True), ("d", False), ("", False)]


@pytest.mark.parametrize(
    "query",
    [
        "ALTER TABLE t MODIFY a VARCHAR(99), MODIFY n BIGINT, MODIFY nothing INT, ADD c DATETIME DEFAULT NOW(), ADD e INT, DROP COLUMN d",
        "CREATE TABLE u (c DATETIME(3) DEFAULT NOW(3))",
        "ALTER TABLE t ALTER COLUMN n SET DEFAULT 5",
    ],
)
def test_other_statements_ask_nothing(query: str) -> None:
    assert asked(query) == []


def test_a_definition_that_is_not_understood_is_asked_about() -> None:
    assert [one.column for one in asked("ALTER TABLE t MODIFY a INT UNKNOWN_OPTION")] == ["a"]


ALTER = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query="ALTER TABLE t MODIFY a INT", ddl_type=12)
LOG = (("sql_mode", ""), (SERVER_KIND, MYSQL))


@pytest.mark.parametrize(
    ("session", "sink", "stops"),
    [((), MYSQL, True), ((), MARIADB, True), ((), TIDB, False), (LOG, MYSQL, False), (LOG, MARIADB, True), (LOG[:1], MYSQL, True)],
)
def test_a_server_of_upstreams_kind_converts_as_upstream_did(session: tuple[tuple[str, str | int], ...], sink: str, *, stops: bool) -> None:
    ddl = replace(ALTER, session=session)
    if not stops:
        refuse_other_values(ddl, lambda: sink, lambda: COLUMNS, lambda _: True)
        return
    with pytest.raises(NeedsOperator, match="column a becomes int, was varchar") as raised:
        refuse_other_values(ddl, lambda: sink, lambda: COLUMNS, lambda _: True)
    assert "drop" not in raised.value.remedy.casefold()
    refuse_other_values(ddl, lambda: sink, lambda: COLUMNS, lambda _: False)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("ALTER TABLE t MODIFY a VARCHAR(5)", "column a becomes varchar"),
        ("ALTER TABLE t MODIFY n INT NOT NULL", "NULL in column n"),
        ("ALTER TABLE t ADD c DATETIME DEFAULT NOW()", "computed when upstream copied each row"),
        ("ALTER TABLE t ADD c INT DEFAULT (1 + 1)", "computed when upstream copied each row"),
        ("ALTER TABLE t ADD c INT DEFAULT 5, MODIFY a VARCHAR(99)", ""),
    ],
)
def test_rows_that_upstream_has_copied_are_asked_about_on_every_server(query: str, why: str) -> None:
    copied = replace(ALTER, query=query, session=(LOG[0], (SERVER_KIND, COPIED)))
    for sink in (MYSQL, MARIADB, TIDB):
        if why:
            with pytest.raises(NeedsOperator, match=why):
                refuse_other_values(copied, lambda sink=sink: sink, lambda: COLUMNS, lambda _: True)  # type: ignore[misc] # bound now
        else:
            refuse_other_values(copied, lambda sink=sink: sink, lambda: COLUMNS, lambda _: True)  # type: ignore[misc]
