"""The tables in the query of a view: every form of a table reference, and nothing that only looks like one."""

import pytest

from applier.ddl import parse_ddl, read_ddl
from applier.model.events import DdlEvent
from applier.model.position import Ts
from tests.rig.view_queries import NO_QUERIES, QUERIES


def view(query: str) -> DdlEvent:
    return DdlEvent(commit_ts=Ts(1), schema="S", table="v", query=f"CREATE VIEW v AS {query}", ddl_type=21)


@pytest.mark.parametrize(("query", "tables"), QUERIES)
def test_every_table_of_a_query_is_found_and_nothing_else(query: str, tables: str) -> None:
    statement = parse_ddl(view(query))
    assert statement is not None
    found = [str(name) for name in statement.mentions]
    assert found == [name if "." in name else f"S.{name}" for name in tables.split()]


@pytest.mark.parametrize(("query", "tables"), QUERIES)
@pytest.mark.parametrize("form", ["CREATE VIEW v AS {}", "CREATE OR REPLACE VIEW q.v (a, `from`) AS ({}) WITH LOCAL CHECK OPTION"])
def test_it_does_not_matter_what_stands_around_it(query: str, tables: str, form: str) -> None:
    text = form.format(query)
    found = read_ddl(DdlEvent(commit_ts=Ts(1), schema="S", table="v", query=text, ddl_type=21))
    assert found is not None
    assert len(found[0].mentions) == len(tables.split())
    # The sites are the places of the names, in the order of the text.
    places = [site.table.start for site in found[1] if site.table is not None]
    assert places == sorted(places)
    assert all(text[site.table.start :].lstrip("`").startswith(site.table.text) for site in found[1] if site.table is not None)


@pytest.mark.parametrize("query", NO_QUERIES)
def test_what_is_not_understood_is_no_statement(query: str) -> None:
    assert parse_ddl(view(query)) is None


@pytest.mark.parametrize("query", ["CREATE VIEW v", "CREATE VIEW v SELECT 1", "CREATE VIEW v (a", "CREATE VIEW v AS WITH CHECK OPTION"])
def test_a_view_without_a_query_is_no_statement(query: str) -> None:
    assert parse_ddl(DdlEvent(commit_ts=Ts(1), schema="S", table="v", query=query, ddl_type=21)) is None
