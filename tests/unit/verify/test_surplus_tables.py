"""Which tables of the sink are too many: those that upstream lacks, and none that the configuration excludes."""

import pytest

from applier.cli.verify import compared_tables
from applier.config import load_config
from applier.model.events import TableName

A, B, SECRET, OTHER = (TableName("shop", name) for name in ("a", "b", "secret", "other"))


def surplus(upstream, sink, *, tables=(), routes=(), known=(), rules=()):
    source = {"bootstrap_servers": "k:1", "topics": ["t"], "tables": list(tables), "route": list(routes)}
    config = load_config(None, {"source": source, "sink": {"url": "sqlite:///r.db"}}, environment={})
    return compared_tables(config, rules).surplus(upstream, sink, {name.fold() for name in known})


def test_a_table_that_upstream_lacks_is_too_many():
    assert surplus([A], [A, OTHER]) == [OTHER]


@pytest.mark.parametrize("known", [(), (SECRET,)], ids=["of others", "written before it was excluded"])
@pytest.mark.parametrize("upstream", [(A, SECRET), (A,)], ids=["there", "dropped"])
def test_an_excluded_table_is_no_concern(upstream, known):
    assert surplus(upstream, [A, SECRET], tables=["shop.*", "!shop.secret"], known=known) == []


def test_an_excluded_table_of_the_sinks_name_is_found_behind_a_route():
    route = {"from": "shop.*", "to": "archive.{table}"}
    sink = [TableName("archive", name) for name in ("a", "secret", "other")]
    found = surplus([A, SECRET], sink, tables=["shop.*", "!shop.secret"], routes=[route])
    assert found == [TableName("archive", "other")]


def test_a_table_of_another_schema_counts_only_if_the_replica_has_written_it():
    foreign = TableName("mine", "t")
    assert surplus([A], [A, foreign]) == []
    assert surplus([A], [A, foreign], known=[foreign]) == [foreign]
    assert surplus([A, B], [A, B, OTHER], rules=["shop.a"]) == []


def test_an_excluded_table_of_upstreams_own_schema_is_no_namesake_of_routed_ones():
    route = {"from": "shop.*", "to": "archive.{table}"}
    extra = TableName("archive", "extra")
    assert surplus([A, extra], [TableName("archive", "a"), extra], tables=["shop.*"], routes=[route]) == [extra]
