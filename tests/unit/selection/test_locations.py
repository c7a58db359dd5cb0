"""Where the sink has upstream's tables: two never become one, and none joins after a part of its history was left out."""

import pytest

from applier.ddl import parse_ddl
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import Offset, Ts
from applier.model.range_report import TableRows
from applier.selection import EVERYTHING, Locations, moves_of
from applier.selection.locations import BEGUN, LEFT_OUT
from tests.rig.selected import selection_of


def folded(name):
    return FoldedName(*name.split("."))


def rows(upstream, sink=None):
    name = TableName(*(sink or upstream).split("."))
    routed_from = TableName(*upstream.split(".")) if sink else None
    return [TableRows(name, ("id",), 1, Ts(5), Ts(5), Offset(0), routed_from=routed_from)]


def ddl(query, selection=EVERYTHING, schema="shop", **more):
    event = DdlEvent(commit_ts=Ts(7), schema=schema, table="", query=query, ddl_type=3, **more)
    return DdlEvent(commit_ts=Ts(7), schema=schema, table="", query=query, ddl_type=3, moves=moves_of(parse_ddl(event), selection), **more)


def locations(stored=(), known=(), *, selects=True):
    return Locations(
        {folded(table): folded(place) if place else LEFT_OUT for table, place in dict(stored).items()},
        map(folded, known),
        selects=selects,
    )


def waiting(found):
    return {table: place for table, place in found.waiting.items() if table != BEGUN}


def refusal(act, *args, **more):
    with pytest.raises(NeedsOperator) as caught:
        act(*args, **more)
    assert caught.value.facts["kind"] == "selection"
    return caught.value.message


def test_a_replica_that_never_had_a_filter_stores_nothing():
    found = locations(selects=False)
    found.place_rows(rows("shop.a"))
    found.move(ddl("CREATE TABLE b (id INT)"), is_applied=True)
    assert waiting(found) == {}


def test_a_table_is_stored_once_and_waits_until_that_is_durable():
    found = locations()
    found.place_rows(rows("shop.A", "archive.a"))
    changes = found.waiting
    assert changes == {BEGUN: LEFT_OUT, folded("shop.a"): folded("archive.a")}
    found.place_rows(rows("shop.a", "archive.a"))
    found.leave_out([folded("shop.b")])
    found.stored(changes)
    assert waiting(found) == {folded("shop.b"): LEFT_OUT}


@pytest.mark.parametrize("act", ["rows", "a DDL"])
def test_two_tables_are_never_one(act):
    found = locations({"shop.s1": "shop.s"})
    if act == "rows":
        message = refusal(found.place_rows, rows("shop.s2", "shop.s"))
    else:
        merging = selection_of([], [("shop.s?", "shop.s")])
        message = refusal(found.move, ddl("CREATE TABLE s2 (id INT)", merging), is_applied=True)
    assert message == "two tables would be one in the sink: shop.s1 and shop.s2 are both shop.s"


def test_a_table_from_before_the_routes_keeps_its_name():
    found = locations(known=["archive.a", "shop.b"])
    assert "archive.a and shop.a are both archive.a" in refusal(found.place_rows, rows("shop.a", "archive.a"))
    assert refusal(found.place_rows, rows("shop.b", "archive.b")) == "shop.b had another name in the sink until now: shop.b"
    found.place_rows(rows("shop.b"))
    found.place_rows(rows("shop.c", "archive.c"))
    assert waiting(found) == {folded(one): folded(place) for one, place in (("archive.a",) * 2, ("shop.b",) * 2, ("shop.c", "archive.c"))}


def test_the_tables_from_before_the_routes_are_stored_once():
    begun = Locations({BEGUN: LEFT_OUT}, [folded("shop.a")], selects=True)
    assert begun.waiting == {}
    begun.place_rows(rows("shop.b", "shop.a"))


def test_a_table_that_joins_after_rows_of_it_were_left_out_is_refused():
    found = locations()
    found.leave_out([folded("shop.a")])
    assert "excluded until now" in refusal(found.place_rows, rows("shop.a"))
    assert "excluded until now" in refusal(locations({"shop.a": ""}, selects=False).place_rows, rows("shop.a"))
    assert "excluded until now" in refusal(locations({"shop.a": ""}, selects=False).move, ddl("ALTER TABLE a ADD x INT"), is_applied=True)


def test_a_table_that_is_made_again_begins_a_new_history():
    found = locations({"shop.a": "", "shop.b": "shop.b_v2"})
    found.move(ddl("CREATE TABLE a (id INT)"), is_applied=True)
    found.place_rows(rows("shop.a"))
    found.move(ddl("DROP TABLE b"), is_applied=True)
    found.move(ddl("CREATE TABLE c LIKE a", selection_of([], [("shop.c", "shop.b_v2")])), is_applied=True)
    assert waiting(found) == {
        folded("shop.a"): folded("shop.a"),
        folded("shop.b"): None,
        folded("shop.c"): folded("shop.b_v2"),
    }


def test_a_rename_carries_the_location_and_frees_the_old_name():
    found = locations({"shop.a": "shop.a", "shop.b": "shop.b"})
    found.move(ddl("RENAME TABLE a TO t, b TO a, t TO b"), is_applied=True)
    found.place_rows([*rows("shop.a"), *rows("shop.b")])
    assert waiting(found) == {folded("shop.a"): folded("shop.a"), folded("shop.b"): folded("shop.b"), folded("shop.t"): None}


def test_a_rename_out_of_the_filter_leaves_the_table_out():
    found = locations({"shop.a": "shop.a"})
    found.move(ddl("RENAME TABLE a TO log_a", selection_of(["shop.*", "!shop.log_*"])), is_applied=True)
    assert waiting(found) == {folded("shop.a"): None, folded("shop.log_a"): LEFT_OUT}


def test_a_ddl_that_is_skipped_is_noted_and_refuses_nothing():
    only_logs = selection_of(["shop.*", "!shop.log_*"])
    found = locations()
    found.move(ddl("CREATE TABLE log_1 (id INT)", only_logs, left_out="x"), is_applied=False)
    found.move(ddl("ALTER TABLE log_2 ADD x INT", only_logs, left_out="x"), is_applied=False)
    # The operator has loaded the table, and skips the RENAME that the filter refuses.
    found.move(ddl("RENAME TABLE log_1 TO bills", only_logs), is_applied=False)
    found.place_rows(rows("shop.bills"))
    assert waiting(found) == {folded("shop.log_1"): None, folded("shop.log_2"): LEFT_OUT, folded("shop.bills"): folded("shop.bills")}


def test_a_schema_that_is_dropped_frees_all_names_in_it():
    found = locations({"shop.a": "archive.a", "shop.b": "", "crm.a": "crm.a"})
    found.move(ddl("DROP DATABASE shop"), is_applied=True)
    assert waiting(found) == {folded("shop.a"): None, folded("shop.b"): None}
    found.place_rows(rows("hr.a", "archive.a"))


def test_views_and_the_source_of_like_have_no_location():
    found = locations()
    found.move(ddl("CREATE VIEW v AS SELECT id FROM a"), is_applied=True)
    found.move(ddl("CREATE TABLE c LIKE a"), is_applied=True)
    found.move(ddl("DROP VIEW v"), is_applied=True)
    assert waiting(found) == {folded("shop.c"): folded("shop.c")}
