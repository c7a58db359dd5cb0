"""The bookkeeping's schema on a real server: reserved, and wherever the configuration says."""

from collections.abc import Iterator

import pytest

from applier.ddl import identity
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import TableRows
from applier.replica.sink_tables import SinkTables
from applier.sinks.ledger_entry import DdlState
from applier.sinks.mysql.ownership import lock_name
from applier.sinks.mysql.sink import MysqlSink
from tests.integration.mysql_replica import SHOP, clean, commit_at, read, replica, run, settings
from tests.rig.clean_server import drop_bookkeeping

BOOKS = "applier_test_books"


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean(mysql_url)
    run(mysql_url, f"DROP SCHEMA IF EXISTS {BOOKS}", f"CREATE SCHEMA {SHOP}")
    yield mysql_url
    clean(mysql_url)
    run(mysql_url, f"DROP SCHEMA IF EXISTS {BOOKS}")


@pytest.mark.parametrize(
    "query", ["DROP DATABASE applier", "DROP TABLE `APPLIER`.progress", "DROP DATABASE mysql", "DROP TABLE mysql.user"]
)
def test_a_ddl_on_a_reserved_schema_changes_nothing(url: str, query: str) -> None:
    with replica(url) as shop:
        ddl = DdlEvent(commit_ts=shop.tick(), schema="", table="", query=query, ddl_type=2)
        progress = shop.sink.load()
        assert progress is not None
        with pytest.raises(NeedsOperator, match="schema"):
            SinkTables(shop.sink).new_with_ddl(ddl, progress)
        with pytest.raises(NeedsOperator, match="schema"):
            shop.sink.run_ddl(shop.fence, identity(ddl), ddl, before=commit_at(ddl.commit_ts), after=commit_at(ddl.commit_ts))
    assert read(url, "SELECT COUNT(*) FROM applier.progress") == [(1,)]
    assert read(url, "SELECT COUNT(*) > 0 FROM mysql.user") == [(1,)]


@pytest.mark.parametrize("name", [TableName("Applier", "progress"), TableName("mysql", "user")])
def test_rows_of_a_reserved_schema_are_not_written(url: str, name: TableName) -> None:
    rows = TableRows(name=name, handle_key=("id",), stream=Stream("feed", 1), first_offset=Offset(7), min_ts=Ts(5), max_ts=Ts(5), rows=1)
    with replica(url) as shop:
        progress = shop.sink.load()
        assert progress is not None
        with pytest.raises(NeedsOperator, match="schema") as caught:
            SinkTables(shop.sink).new_with_rows([rows], progress)
    assert caught.value.facts | {"topic": "feed", "partition": 1, "offset": 7, "commit_ts": 5} == caught.value.facts


def test_a_drop_of_the_bookkeeping_that_an_older_applier_has_begun_is_not_run_again(url: str) -> None:
    with replica(url) as shop:
        shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
        run(
            url, "UPDATE applier.ddl_ledger SET state = 'intent', query = 'DROP DATABASE applier', schema_name = 'applier', table_name = ''"
        )
        with pytest.raises(NeedsOperator, match="bookkeeping"):
            shop.sink.settle(shop.fence)
    assert read(url, "SELECT COUNT(*) FROM applier.progress") == [(1,)]


def test_the_bookkeeping_lies_where_the_configuration_says(url: str) -> None:
    drop_bookkeeping(url)
    with replica(url, schema=BOOKS) as shop:
        shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
        assert shop.write(f"REPLACE INTO {SHOP}.t VALUES (1)").state == "committed"
        run(url, "CREATE SCHEMA applier")
        ddl = DdlEvent(commit_ts=shop.tick(), schema="applier", table="", query="DROP DATABASE applier", ddl_type=2)
        shop.fence = shop.sink.run_ddl(shop.fence, identity(ddl), ddl, before=commit_at(ddl.commit_ts), after=commit_at(ddl.commit_ts))
        assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE] * 2
        assert shop.sink.bookkeeping.overview().progress is not None
        assert shop.sink.bookkeeping.quarantine.entries() == []
    assert read(url, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'applier'") == []
    assert read(url, "SELECT DISTINCT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_NAME = 'owner_session'") == [(BOOKS,)]
    with replica(url, schema=BOOKS) as again:
        progress = again.sink.load()
        assert progress is not None
        assert progress.checkpoint_ts == ddl.commit_ts


def test_a_replica_that_has_begun_in_the_default_schema_does_not_begin_again_in_another(url: str) -> None:
    with replica(url) as shop:
        shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
    with MysqlSink(settings(url, schema=BOOKS)) as sink:
        sink.migrate()
        sink.acquire()
        with pytest.raises(NeedsOperator, match="is not in the schema that"):
            sink.begin(Ts(0))
    tables = [name for (name,) in read(url, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'applier'")]
    run(url, f"DROP SCHEMA {BOOKS}", f"CREATE SCHEMA {BOOKS}", *(f"RENAME TABLE applier.{table} TO {BOOKS}.{table}" for table in tables))
    with replica(url, schema=BOOKS) as moved:
        progress = moved.sink.load()
        assert progress is not None
        assert progress.checkpoint_ts == shop.ts


def test_replicas_of_one_name_in_two_schemas_are_two(url: str) -> None:
    with replica(url, schema=BOOKS), replica(url):
        pass
    names = {lock_name(settings(url, schema=schema)) for schema in ("applier", BOOKS, BOOKS.upper())}
    assert len(names) == 2
    # A run of an older version holds this one.
    assert lock_name(settings(url)) == "applier:2739d8fb6e0621dfd38a911b26966c2e388476c7"
