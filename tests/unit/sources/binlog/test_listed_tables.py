"""Upstream's tables at a position: those of now, where the log shows no DDL since."""

import time

import pytest

from applier.model.errors import SourceError
from applier.model.events import TableName
from applier.selection import EVERYTHING, EventFilter, TableFilter, TableSelection
from applier.sources.binlog import catalogue
from applier.sources.binlog.catalogue import FollowedLog, UpstreamCatalogue
from tests.unit.sources.binlog.test_log_start import SIZE, MemoryFeed, MemoryServer, place

ORDERS, LINES = TableName("shop", "orders"), TableName("shop", "lines")


class Catalogued(MemoryServer):
    """A server in memory with tables; ``tables`` are the answers to one listing after the other, the last one again and again."""

    def __init__(self, *tables, files=(["0-2-1", "0-2-2"],), grants="GRANT ALL PRIVILEGES ON *.* TO `a`@`%`"):
        super().__init__(*files)
        self.tables, self.grants = list(tables), grants

    def rows(self, _what, _statement):
        return [(self.grants,)]

    def ask(self, _what, work):
        return work(self)


@pytest.fixture(autouse=True)
def session(monkeypatch):
    """The server is its own session; ``statements`` are what it was asked."""
    statements = []

    def read(server, statement):
        statements.append(statement)
        if statement.startswith("SHOW CREATE"):
            return []
        return server.tables.pop(0) if len(server.tables) > 1 else server.tables[0]

    monkeypatch.setattr(catalogue, "execute_text", lambda _session, statement: statements.append(statement))
    monkeypatch.setattr(catalogue, "read_rows", read)
    return statements


def listed(server, ts, selection=EVERYTHING):
    return UpstreamCatalogue(server, selection, server.open_feed).listed_at(ts)


def saying(monkeypatch, server, sql):
    """Let each group of the log be this statement."""
    query = bytes(19) + bytes(13) + b"\0" + sql

    class Feed(MemoryFeed):
        def read(self, timeout_s):
            return [event._replace(data=query) if b"ANALYZE" in event.data else event for event in super().read(timeout_s)]

    monkeypatch.setattr(server, "open_feed", lambda _name, at: Feed(server, at))


def test_at_the_end_of_the_log_the_tables_of_now_are_those_of_the_position():
    found = listed(Catalogued([LINES, ORDERS, ("mysql", "user")]), place(1, 2))
    assert (dict(found.names), found.is_whole) == ({ORDERS: ORDERS, LINES: LINES}, True)


@pytest.mark.parametrize(
    "sql",
    [
        b"CREATE TABLE `Orders` (id INT)",
        b"/* app */ rename table shop.orders TO a, b TO shop.`orders`",
        b"DROP DATABASE IF EXISTS `shop`",
        b"CREATE TABLE orders (id INT) START TRANSACTION",
    ],
)
def test_a_table_that_a_later_ddl_may_be_about_is_not_told(monkeypatch, sql):
    server = Catalogued([ORDERS, LINES])
    saying(monkeypatch, server, sql)
    found = listed(server, place(1, 1))
    assert ORDERS not in found.names
    assert (LINES in found.names, found.is_exact, found.is_whole) == (b"DATABASE" not in sql, False, False)


def test_a_name_that_is_not_one_word_is_not_told_behind_any_ddl(monkeypatch):
    odd = TableName("shop", "größe-2")
    server = Catalogued([ORDERS, odd])
    saying(monkeypatch, server, b"DROP TABLE shop.other")
    assert list(listed(server, place(1, 1)).names) == [ORDERS]
    assert list(listed(server, place(1, 2)).names) == [odd, ORDERS]


def test_ten_thousand_tables_and_ddls_are_no_product_of_both(monkeypatch):
    server = Catalogued([TableName("shop", f"t{number}") for number in range(10_000)], files=(["0-2-1"] * 10_000,))
    saying(monkeypatch, server, b"CREATE TABLE other (" + b", ".join(b"c%d INT" % number for number in range(10)) + b")")
    monkeypatch.setattr(catalogue, "MOST_WALKED_BYTES", SIZE * 20_000)
    began_s = time.process_time()
    assert len(listed(server, place(1, 0)).names) == 10_000
    assert time.process_time() - began_s < 5


@pytest.mark.parametrize("sql", [b"ANALYZE TABLE orders", b"GRANT SELECT ON shop.orders TO a", b"CREATE USER orders", b"TRUNCATE orders"])
def test_a_statement_that_makes_and_removes_no_table_leaves_the_list_exact(monkeypatch, sql):
    server = Catalogued([ORDERS])
    saying(monkeypatch, server, sql)
    assert listed(server, place(1, 0)).is_exact


def test_between_two_files_nothing_is_logged():
    assert listed(Catalogued([ORDERS], files=(["0-2-1"], [])), place(1, 1)) is not None


def test_statements_that_hold_a_table_are_waited_for_and_not_for_long(session):
    assert listed(Catalogued([ORDERS]), place(1, 2)).names
    UpstreamCatalogue(server := Catalogued([ORDERS]), EVERYTHING, server.open_feed).listed_at(place(1, 2), [ORDERS])
    waited = ["SET SESSION lock_wait_timeout = 2", "SHOW CREATE TABLE `shop`.`orders`", catalogue.NAMES_WITH_ROWS]
    assert session[3:] == [*waited, "SET SESSION lock_wait_timeout = DEFAULT"]


def test_of_tables_of_an_event_filter_nothing_is_known():
    ignoring = TableSelection(event_filters=(EventFilter(TableFilter.parse(["shop.orders"]), frozenset({"insert"})),))
    found = listed(Catalogued([ORDERS, LINES]), place(1, 2), ignoring)
    assert (list(found.names), found.is_whole) == ([LINES], False)


def test_what_the_user_may_not_see_is_not_taken_for_missing():
    server = Catalogued([], grants="GRANT REFERENCES ON `shop`.* TO `a`@`%`")
    assert listed(server, place(1, 2)).is_whole is False


def test_tables_that_the_replica_does_not_have_are_not_listed():
    chosen = TableSelection(TableFilter.parse(["shop.orders"]))
    assert list(listed(Catalogued([LINES, ORDERS]), place(1, 2), chosen).names) == [ORDERS]


@pytest.mark.parametrize("ts", [place(1, 2, 1), place(7, 0), place(1, 3)])
def test_a_position_that_is_none_of_this_log_is_not_judged(ts):
    assert listed(Catalogued([ORDERS]), ts) is None


def test_far_behind_the_end_the_log_is_not_looked_through(monkeypatch):
    monkeypatch.setattr(catalogue, "MOST_WALKED_BYTES", SIZE - 1)
    server = Catalogued([ORDERS])
    server.open_feed = None
    assert listed(server, place(1, 1)) is None


def test_a_log_that_cannot_be_read_tells_nothing():
    def refuse(*_):
        message = "all server ids are in use"
        raise SourceError(message)

    server = Catalogued([ORDERS])
    server.open_feed = refuse
    assert listed(server, place(1, 1)) is None


def test_another_server_behind_the_address_is_not_asked():
    server = Catalogued([ORDERS])
    upstream = UpstreamCatalogue(server, EVERYTHING, server.open_feed)
    upstream.follow(FollowedLog("2", 0, "b"))
    assert upstream.listed_at(place(1, 2)) is not None
    server.number = "3"
    assert upstream.listed_at(place(1, 2)) is None


def test_transactions_of_later_leave_the_tables_as_they_were(monkeypatch):
    class Transactions(MemoryFeed):
        def read(self, timeout_s):
            commit = bytes(32) + b"\0XA COMMIT X'61',X'',1"
            return [event._replace(data=commit) if b"ANALYZE" in event.data else event for event in super().read(timeout_s)]

    server = Catalogued([ORDERS])
    monkeypatch.setattr(server, "open_feed", lambda _name, at: Transactions(server, at))
    assert listed(server, place(1, 0)).is_exact
