"""A statement names what exists as the sink spells it, and nothing else in it changes."""

import pytest

from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import Ts
from applier.sinks.mysql.ddl.rewrite import respelled, sink_statement
from tests.rig.rewritten_case import rewritten_cases

PRESENT = [TableName("Shop", ""), TableName("Shop", "Orders"), TableName("Shop", "Items"), TableName("crm", ""), TableName("crm", "Kunde")]
SPELLED = {name.fold(): name for name in PRESENT}


def event(query: str) -> DdlEvent:
    return DdlEvent(commit_ts=Ts(1), schema="shop", table="orders", query=query, ddl_type=0)


@pytest.mark.parametrize(("query", "wanted"), rewritten_cases("ddl_spellings.txt"))
def test_names_are_spelled_as_in_the_sink(query: str, wanted: str) -> None:
    assert respelled(query, event(query), SPELLED) == wanted


def test_names_are_found_in_the_text_that_has_been_rewritten() -> None:
    query = "ALTER TABLE /*!50100 orders */ ALGORITHM=COPY, ADD a CHAR(3) CHARSET utf8mb4, RENAME TO items"
    wanted = "ALTER TABLE `Orders` ADD a CHAR(3) CHARSET utf8mb4 COLLATE utf8mb4_bin, RENAME TO `Items`"
    assert " ".join(sink_statement(event(query), SPELLED).split()) == wanted


def test_a_name_with_a_backtick_is_quoted() -> None:
    strange = TableName("shop", "O`rders")
    assert respelled("TRUNCATE `o``rders`", event(""), {strange.fold(): strange}) == "TRUNCATE `O``rders`"


def test_without_the_sinks_names_nothing_changes() -> None:
    assert sink_statement(event("DROP TABLE orders")) == "DROP TABLE orders"
    assert respelled("DROP TABLE orders", event(""), {FoldedName("crm", "orders"): TableName("crm", "Orders")}) == "DROP TABLE orders"
