"""What the sink's tables have and upstream's lack stops the replica before it loses rows; what upstream's own statements made does not."""

from collections.abc import Iterator

import pytest

from applier.model.errors import NeedsOperator
from applier.model.events import FoldedName, TableName
from applier.planner.table_check import DifferenceKind
from applier.sinks.mysql.server_check import examine
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, STRING_KEY, ddl, everywhere, log_of, resolved, row
from tests.builders.wire import column
from tests.integration.mysql_replica import read, run
from tests.rig.clean_server import clean_server
from tests.rig.fake_source import FakeSource
from tests.rig.least_privilege import make_user
from tests.rig.local_replica import Replica

CREATE = "CREATE TABLE orders (id INT PRIMARY KEY, code VARCHAR(20), n INT)"
TEXT = 15
NULLABLE, UNIQUE_TEXT = 64, 80


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, "shop")
    yield mysql_url
    clean_server(mysql_url, "shop")


def order(ts, number, code, n=0, code_flags=NULLABLE, **more):
    return row(ts, id=column(3, KEY, number), code=column(TEXT, code_flags, code), n=column(3, PLAIN, n), **more)


ROWS = [(ONE, order(20, 1, "same", 1)), (ONE, order(20, 2, "same", 2)), *everywhere(resolved(30))]


def replica_of(url, *placed, create=CREATE, prepare=(), **more):
    """A replica whose table upstream has made; ``prepare`` is what somebody then did to the sink."""
    beginning = (*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, create)), *everywhere(resolved(11)))
    source = FakeSource(log_of(*beginning, *placed), hidden=True)
    source.advance(len(beginning))
    replica = Replica(url, source, **more)
    replica.catch_up()
    run(url, *prepare)
    source.advance(len(placed))
    return replica


def loaded(url, *placed, tables, **more):
    """A replica of a dump: nothing is known of its tables but what the sink shows."""
    run(url, "CREATE SCHEMA shop DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", *tables)
    return Replica(url, FakeSource(log_of(*everywhere(resolved(6)), *placed)), **more)


def stopped(replica, **options):
    with pytest.raises(NeedsOperator) as caught:
        replica.catch_up(**options)
    return caught.value


ROWS_OF_ORDERS = "SELECT id, code, n FROM shop.orders ORDER BY id"

BY_HAND = [
    pytest.param("unique_index", ["CREATE UNIQUE INDEX by_hand ON shop.orders (code)"], "unique index by_hand", id="unique index"),
    pytest.param(
        "trigger", ["CREATE TRIGGER shop.audit BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.n = 7"], "trigger audit", id="trigger"
    ),
    pytest.param("engine", ["ALTER TABLE shop.orders ENGINE = MyISAM"], "engine MyISAM", id="engine"),
    pytest.param(
        "view",
        ["RENAME TABLE shop.orders TO shop.others", "CREATE VIEW shop.orders AS SELECT * FROM shop.others"],
        "view",
        id="view",
    ),
]


@pytest.mark.parametrize(("kind", "prepare", "what"), BY_HAND)
def test_a_difference_stops_the_replica_before_a_row_is_written(url, kind, prepare, what):
    replica = replica_of(url, *ROWS, prepare=prepare)
    error = stopped(replica)
    assert (error.exit_code, error.facts["difference"], error.facts["table"]) == (6, kind, "shop.orders")
    assert what in error.message
    assert f'"shop.orders" = ["{kind}"] under [sink.accept]' in error.remedy
    assert read(url, ROWS_OF_ORDERS) == []


@pytest.mark.parametrize(("kind", "prepare", "what"), BY_HAND)
def test_a_table_of_a_dump_is_checked_before_its_first_row(url, kind, prepare, what):
    replica = loaded(url, *ROWS, tables=["CREATE TABLE shop.orders (id INT PRIMARY KEY, code VARCHAR(20), n INT)", *prepare])
    error = stopped(replica, start_ts=5, accept_gap=True)
    assert error.facts["difference"] == kind
    assert what in error.message
    assert {name: error.facts[name] for name in ("topic", "partition", "table", "commit_ts")} == {
        "topic": "feed",
        "partition": 0,
        "table": "shop.orders",
        "commit_ts": 20,
    }
    assert read(url, ROWS_OF_ORDERS) == []


@pytest.mark.parametrize(("kind", "prepare", "what"), BY_HAND[:3])
def test_an_accepted_difference_does_not_stop_and_is_logged_once(url, kind, prepare, what):
    book = []
    replica = replica_of(url, *ROWS, prepare=prepare, accept={"shop.*": (DifferenceKind(kind),)})
    replica.observer.note = lambda message, /, **facts: book.append((message, facts.get("table")))
    replica.catch_up()
    assert book.count(("difference_accepted", "shop.orders")) == 1
    assert read(url, "SELECT COUNT(*) FROM shop.orders WHERE id = 2") == [(1,)]


@pytest.mark.parametrize("charset", ["CHARSET=gbk", "CHARACTER SET 'GBK'"])
def test_a_key_with_the_default_collation_of_its_charset_passes(url, charset):
    create = f"CREATE TABLE orders (id INT PRIMARY KEY, code VARCHAR(20) UNIQUE, n INT) {charset}"
    replica_of(url, *ROWS, create=create).catch_up()
    assert read(url, "SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'shop' AND COLUMN_NAME = 'code'") == [
        ("gbk_chinese_ci",)
    ]


def test_an_index_that_upstream_made_passes_whatever_the_flags_say(url):
    unflagged = [(ONE, order(20, 1, "a")), (ONE, order(20, 2, "b")), *everywhere(resolved(30))]
    replica = replica_of(url, *unflagged, create="CREATE TABLE orders (id INT PRIMARY KEY, code VARCHAR(20) UNIQUE, n INT)")
    replica.catch_up()
    assert read(url, ROWS_OF_ORDERS) == [(1, "a", 0), (2, "b", 0)]


def test_an_index_that_the_wire_flags_passes_without_any_statement(url):
    flagged = [(ONE, order(20, 1, "a", code_flags=UNIQUE_TEXT)), *everywhere(resolved(30))]
    table = "CREATE TABLE shop.orders (id INT PRIMARY KEY, code VARCHAR(20) UNIQUE, n INT)"
    loaded(url, *flagged, tables=[table]).catch_up(start_ts=5, accept_gap=True)
    assert read(url, ROWS_OF_ORDERS) == [(1, "a", 0)]


@pytest.mark.parametrize(
    ("column_sql", "stops"),
    [
        ("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", True),
        ("VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_general_cs", True),
        ("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", False),
        ("VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin", False),
    ],
)
def test_a_key_of_a_dump_must_keep_apart_what_tidbs_default_collation_keeps_apart(url, column_sql, stops):
    def word(ts, code, n):
        return row(ts, "words", code=column(TEXT, STRING_KEY | 8, code), n=column(3, PLAIN, n))

    words = [(ONE, word(20, "bob", 1)), (ONE, word(20, "Bob", 2)), *everywhere(resolved(30))]
    replica = loaded(url, *words, tables=[f"CREATE TABLE shop.words (code {column_sql} PRIMARY KEY, n INT)"])
    if stops:
        error = stopped(replica, start_ts=5, accept_gap=True)
        assert error.facts["difference"] == "collation"
        assert "key column code" in error.message
        assert read(url, "SELECT COUNT(*) FROM shop.words") == [(0,)]
    else:
        replica.catch_up(start_ts=5, accept_gap=True)
        assert read(url, "SELECT COUNT(*) FROM shop.words") == [(2,)]


def test_keys_must_keep_spaces_at_the_end_where_upstream_has_no_new_collations(url):
    words = [row(20, "words", code=column(TEXT, STRING_KEY | 8, code), n=column(3, PLAIN, n)) for n, code in enumerate(("a", "a ", "a  "))]
    placed = [*((ONE, word) for word in words), *everywhere(resolved(30))]
    padded = "CREATE TABLE shop.words (code VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, n INT)"
    replica = loaded(url, *placed, tables=[padded], new_collations=False)
    error = stopped(replica, start_ts=5, accept_gap=True)
    assert error.facts["difference"] == "collation"
    assert read(url, "SELECT COUNT(*) FROM shop.words") == [(0,)]
    exact = "utf8mb4_nopad_bin" if "MariaDB" in read(url, "SELECT VERSION()")[0][0] else "utf8mb4_0900_bin"
    run(url, f"ALTER TABLE shop.words MODIFY code VARCHAR(20) CHARACTER SET utf8mb4 COLLATE {exact}")
    replica.catch_up(start_ts=5, accept_gap=True)
    assert read(url, "SELECT CONCAT(code, '.') FROM shop.words ORDER BY n") == [("a.",), ("a .",), ("a  .",)]


def test_a_collation_that_upstreams_statement_names_is_upstreams(url):
    create = "CREATE TABLE orders (id INT PRIMARY KEY, code VARCHAR(20) COLLATE utf8mb4_general_ci UNIQUE, n INT) CHARSET=utf8mb4"
    replica = replica_of(url, (ONE, order(20, 1, "a", code_flags=UNIQUE_TEXT)), *everywhere(resolved(30)), create=create)
    replica.catch_up()
    assert read(url, ROWS_OF_ORDERS) == [(1, "a", 0)]


def test_a_known_table_is_checked_at_a_start_without_rows(url):
    replica = replica_of(url, prepare=["CREATE TRIGGER shop.audit BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.n = 7"])
    assert stopped(replica).facts["difference"] == "trigger"


def test_all_differences_of_a_start_are_named_at_once(url):
    prepare = [
        "CREATE TRIGGER shop.audit BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.n = 7",
        "ALTER TABLE shop.orders ENGINE = MyISAM",
    ]
    error = stopped(replica_of(url, prepare=prepare))
    assert "engine MyISAM" in error.message
    assert error.facts["also"] == "shop.orders: trigger audit"


def test_a_table_is_checked_again_after_each_of_its_ddls(url):
    """Within one run: what was done to the table before the DDL shows behind it."""
    add = everywhere(ddl(25, "ALTER TABLE orders ADD COLUMN m INT", t=5))
    first = [(ONE, order(20, 1, "a")), *everywhere(resolved(21))]
    replica = replica_of(url, *first, *add, (ONE, order(40, 2, "b")), *everywhere(resolved(50)))
    sink_of = replica.wrap

    def wrap(sink):
        ran = sink.run_ddl

        def run_ddl(*arguments, **more):
            run(url, "CREATE TRIGGER shop.audit BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.n = 7")
            return ran(*arguments, **more)

        sink.run_ddl = run_ddl
        return sink_of(sink)

    replica.wrap = wrap
    assert stopped(replica).facts["difference"] == "trigger"
    assert read(url, "SELECT id, n, m FROM shop.orders") == [(1, 0, None)]


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_foreign_key_actions_of_the_sink_do_nothing_to_rows_that_reference_a_replaced_or_deleted_one(url, action):
    tables = [
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, code VARCHAR(20) UNIQUE, n INT)",
        "CREATE TABLE shop.items (id INT PRIMARY KEY, of_order INT, of_code VARCHAR(20))",
        f"ALTER TABLE shop.items ADD FOREIGN KEY (of_order) REFERENCES shop.orders (id) ON DELETE {action} ON UPDATE {action}",
        f"ALTER TABLE shop.items ADD FOREIGN KEY (of_code) REFERENCES shop.orders (code) ON DELETE {action} ON UPDATE {action}",
        "INSERT INTO shop.orders VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
        "INSERT INTO shop.items VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')",
    ]
    placed = [
        (ONE, order(20, 1, "a", 9, code_flags=UNIQUE_TEXT)),
        (ONE, order(20, 2, "b", 2, code_flags=UNIQUE_TEXT, deleted=True)),
        (ONE, order(20, 3, "x", 3, code_flags=UNIQUE_TEXT)),
        *everywhere(resolved(30)),
    ]
    loaded(url, *placed, tables=tables).catch_up(start_ts=5, accept_gap=True)
    assert read(url, ROWS_OF_ORDERS) == [(1, "a", 9), (3, "x", 3)]
    assert read(url, "SELECT * FROM shop.items ORDER BY id") == [(1, 1, "a"), (2, 2, "b"), (3, 3, "c")]


def test_a_user_who_may_not_see_triggers_gets_the_grant_as_remedy(url):
    run(url, "CREATE SCHEMA shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, code VARCHAR(20), n INT)")
    replica = Replica(make_user(url, user="applier_blind"), FakeSource(log_of(*everywhere(resolved(6)), *ROWS)))
    account = read(replica.url, "SELECT CURRENT_USER()")[0][0].replace("@", "'@'")
    run(url, f"REVOKE TRIGGER ON `shop`.* FROM '{account}'")
    error = stopped(replica, start_ts=5, accept_gap=True)
    assert error.facts["difference"] == "trigger"
    assert "GRANT TRIGGER ON shop.*" in error.remedy


def test_thousands_of_tables_are_examined_in_a_few_statements(url):
    names = [TableName("shop", f"t{number}") for number in range(200)]
    run(url, "CREATE SCHEMA shop", *(f"CREATE TABLE shop.{name.table} (id INT PRIMARY KEY)" for name in names))
    run(url, "CREATE TRIGGER shop.audit BEFORE INSERT ON shop.t77 FOR EACH ROW SET NEW.id = 7")
    with open_session(SinkSettings(url=url), Purpose.CONTROL) as session:

        def questions() -> int:
            return int(session.exec_driver_sql("SHOW SESSION STATUS LIKE 'Questions'").fetchall()[0][1])

        # What the server is, is asked once in a session.
        examine(session, names[:1])
        before = questions()
        found = examine(session, names[:100])
        few = questions() - before
        before = questions()
        assert len(examine(session, names)) == 200
        assert questions() - before == few
    assert [folded for folded, table in found.items() if table.triggers] == [FoldedName("shop", "t77")]
