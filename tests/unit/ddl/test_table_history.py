"""What the ledger's statements say about a table: indexes that the sink does without, numbers of foreign keys."""

from collections.abc import Sequence

from applier.ddl import generated_name as table_history
from applier.ddl import touches
from applier.ddl.adaptation import MARIADB_COLLATIONS, UPSTREAM, Target
from applier.ddl.generated_name import Past, PastDdl, TableHistory
from applier.model.events import DdlEvent, FoldedName
from applier.model.position import Ts

MARIADB = Target(has_vector_indexes=False, has_expression_indexes=False, collations=MARIADB_COLLATIONS)


def past(*queries: str, skipped: str = "", ddl_type: int = 0) -> list[PastDdl]:
    ddls = [DdlEvent(commit_ts=Ts(ts), schema="S", table="", query=query, ddl_type=ddl_type) for ts, query in enumerate(queries)]
    return [PastDdl(ddl, touches(ddl), is_skipped=ddl.query == skipped) for ddl in ddls]


def history(statements: Sequence[PastDdl], table: str = "t", target: Target = MARIADB) -> TableHistory:
    found = Past(target)
    for one in statements:
        found.add(one)
    return found.history(FoldedName("s", table))


def test_an_index_that_the_server_cannot_have_is_out_until_it_is_dropped():
    made = past("CREATE TABLE t (a INT, KEY ((a + 1)), KEY k (a))", "CREATE INDEX e ON t ((a + 2))", "ALTER TABLE t ADD KEY ((a + 3))")
    assert history(made).left_out == {"expression_index", "e", "expression_index_2"}
    assert history(made).indexes == {"expression_index", "k", "e", "expression_index_2"}
    assert history(made, target=UPSTREAM).left_out == set()
    dropped = [*made, *past("DROP INDEX E ON t", "ALTER TABLE t DROP INDEX expression_index, RENAME INDEX expression_index_2 TO f")]
    assert history(dropped).left_out == {"f"}
    assert history([*dropped, *past("ALTER TABLE t DROP KEY f, ADD INDEX f (a)")]).left_out == set()


def test_a_fulltext_index_is_made_by_a_statement_of_its_own_only():
    queries = ("CREATE TABLE t (a TEXT, FULLTEXT KEY f (a))", "CREATE FULLTEXT INDEX g ON t (a)")
    assert history(past(*queries), target=UPSTREAM).left_out == {"f", "g"}
    assert history(past(*queries, ddl_type=230), target=UPSTREAM).left_out == set()


def test_what_a_skipped_statement_makes_is_out():
    query = "ALTER TABLE t ADD INDEX k (a)"
    assert history(past("CREATE TABLE t (a INT)", query, skipped=query)).left_out == {"k"}


def test_a_table_is_followed_to_its_creation():
    begun = past("CREATE TABLE t (a INT, KEY old ((a)))", "DROP TABLE t", "CREATE TABLE a (x INT, KEY ((x + 1)))", "ALTER TABLE a RENAME b")
    assert history([*begun, *past("CREATE TABLE t LIKE b", "RENAME TABLE t TO c, c TO t")]).left_out == {"expression_index"}
    assert history([*begun, *past("DROP TABLE b")], "b").left_out == set()
    assert history([*begun, *past("DROP DATABASE s")], "b").left_out == set()
    assert history([*begun, *past("nonsense")], "b").left_out == {"expression_index"}
    assert history([]) == TableHistory()


def test_all_foreign_keys_that_a_table_ever_had_count():
    one = "FOREIGN KEY (a) REFERENCES p (i)"
    made = past(f"CREATE TABLE t (a INT, {one}, CONSTRAINT x {one})", "ALTER TABLE t DROP FOREIGN KEY fk_1", f"ALTER TABLE t ADD {one}")
    assert history(made).foreign_keys == 3


def test_a_history_that_is_known_goes_on_as_if_all_were_read_again():
    queries = [
        "CREATE TABLE t (a INT, KEY ((a + 1)))",
        "ALTER TABLE t ADD KEY ((a + 2)), ADD FOREIGN KEY (a) REFERENCES p (i)",
        "CREATE TABLE u LIKE t",
        "RENAME TABLE t TO x, u TO t, x TO u",
        "ALTER TABLE u DROP INDEX expression_index",
        "nonsense",
        "DROP TABLE t",
        "CREATE TABLE t (a INT, KEY e ((a)))",
        "ALTER TABLE u RENAME TO v",
        "ALTER TABLE v ADD KEY f ((a))",
        "DROP DATABASE s",
        "CREATE TABLE v (a INT, KEY g ((a)))",
    ]
    statements, asked = past(*queries), Past(MARIADB)
    for number, one in enumerate(statements, 1):
        asked.add(one)
        for table in ("t", "u", "v", "x")[number % 2 :]:
            assert asked.history(FoldedName("s", table)) == history(statements[:number], table), (number, table)


def test_statements_that_are_not_kept_leave_no_trace():
    first, second = past("CREATE TABLE t (a INT, KEY e ((a)))", "ALTER TABLE t DROP INDEX e, ADD KEY f ((a))")
    asked, name = Past(MARIADB), FoldedName("s", "t")
    asked.add(first)
    assert asked.history(name, [second]).left_out == {"f"}
    assert asked.history(name).left_out == {"e"}


def test_a_thousand_statements_about_a_table_are_each_applied_once(monkeypatch):
    applied = []
    monkeypatch.setattr(table_history, "_apply", lambda _, one, *__: applied.append(one))
    asked, name = Past(MARIADB), FoldedName("s", "t")
    statements = past("CREATE TABLE t (a INT)", *(f"ALTER TABLE t ADD INDEX i{number} (a)" for number in range(1_000)))
    for one in statements:
        asked.add(one)
        asked.history(name)
    assert applied == statements
