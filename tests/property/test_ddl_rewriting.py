"""A statement's clauses are rewritten, and nothing beside them: no name, no string, no comment; and no text breaks the rewriting."""

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from applier.ddl import parse_ddl
from applier.ddl.adaptation import (
    MARIADB_COLLATIONS,
    UPSTREAM,
    Target,
    indexes_by_name,
    left_out,
    refuse_inexpressible,
    without_missing_indexes,
)
from applier.ddl.conditions import background_form, may_run_in_background
from applier.ddl.renaming import renamed
from applier.ddl.tokens import as_tidb_reads
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.position import Ts
from applier.sinks.mysql.ddl.rewrite import sink_statement

CLAUSES = [
    "ENGINE=MyISAM", "ROW_FORMAT = FIXED", "CHECK (a > 0)", "STORAGE DISK", "DATA DIRECTORY '/x'", "ALGORITHM=COPY", "LOCK=NONE", "FORCE",
    "PARTITION BY LINEAR HASH (a)", "FULLTEXT KEY (a)", "REFERENCES p (id) ON DELETE CASCADE", "INVISIBLE", "ORDER BY a", "CHARSET utf8mb4",
]  # fmt: skip
TEXTS = st.lists(
    st.sampled_from([*CLAUSES, "x", " ", "'", "`", '"', "\\", "--", "#", "/*!", "*/", ",", "(", ")", "é", "\n"]), max_size=6
).map("".join)
WORDS = [
    *(
        "CREATE",
        "ALTER",
        "TABLE",
        "DATABASE",
        "INDEX",
        "DROP",
        "ADD",
        "COLUMN",
        "IF",
        "NOT",
        "EXISTS",
        "t",
        "`s`.`t`",
        ".",
        "(",
        ")",
        ",",
        "=",
    ),
    *("INT", "KEY", "UNIQUE", "CONSTRAINT", "PARTITION", "BY", "VALUES", "LESS", "THAN", "SUBPARTITION", "TTL", "USING", "HASH", "ON"),
    *("MODIFY", "CHANGE", "'x'", "/*T!", "/*!50100", "*/", "-", "5", "IGNORE", "SET", "AFTER", "DEFAULT", "CHARACTER", "COLLATE", "BINARY"),
    *("VECTOR", "HYBRID", "COLUMNAR", "WHERE", "RENAME", "TO", "FIRST", "LAST", "MERGE", "INTERVAL", "utf8mb4_0900_bin", "LOWER"),
]


MARIADB = Target(
    has_vectors=False, has_vector_indexes=False, has_expression_indexes=False, has_intervals=False, collations=MARIADB_COLLATIONS
)


def event(query: str) -> DdlEvent:
    return DdlEvent(commit_ts=Ts(1), schema="s", table="t", query=query, ddl_type=0)


def rewritten(query: str, target: Target = UPSTREAM) -> str:
    return sink_statement(event(query), target=target)


def name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def comment(text: str) -> str:
    return "/* " + text.replace("*/", "").replace("/*", "") + " */"


@given(text=TEXTS)
def test_names_strings_and_comments_stay_as_they_are(text: str) -> None:
    quoted, literal, remark = name(text or "x"), string(text), comment(text)
    for query in (
        f"CREATE TABLE {quoted} ({quoted} INT COMMENT {literal}, KEY {quoted} ({quoted})) COMMENT={literal} {remark}",
        f"ALTER TABLE {quoted} ADD {quoted} ENUM({literal}) DEFAULT {literal} {remark} AFTER {quoted}, RENAME INDEX {quoted} TO {quoted}",
        f"CREATE INDEX {quoted} ON {quoted}.{quoted} ({quoted}) COMMENT {literal} {remark}",
        f"CREATE TABLE t (a INT) {remark} PARTITION BY LIST COLUMNS ({quoted}) (PARTITION {quoted} VALUES IN ({literal}))",
    ):
        assert rewritten(query) == rewritten(query, MARIADB) == query


@given(text=TEXTS)
def test_a_clause_beside_them_is_rewritten_alone(text: str) -> None:
    quoted, literal, remark = name(text or "x"), string(text), comment(text)

    def made(engine: str, check: str) -> str:
        return f"CREATE TABLE {quoted} ({quoted} INT COMMENT {literal}{check}) {remark} ENGINE={engine} COMMENT={literal}"

    assert rewritten(made("MyISAM", f" CHECK ({quoted} <> {literal})")) == made("InnoDB", "")


@given(query=st.lists(st.sampled_from([*WORDS, *CLAUSES]), max_size=16).map(" ".join) | st.text(max_size=40) | TEXTS)
def test_no_text_breaks_the_rewriting(query: str) -> None:
    rewritten(query)
    assert len(as_tidb_reads(query)) == len(query)


SPELLINGS = st.sampled_from(["a", "A", "`a`", "shop.a", "`shop`.`a`", "`s p`.`a.b`", "crm.`A`", "SHOP.b", "`b```"])
FORMS = [
    "CREATE TABLE {0} (a INT PRIMARY KEY, b INT COMMENT {2}, FOREIGN KEY (b) REFERENCES {1} (a)) COMMENT={2}",
    "CREATE TABLE {0} LIKE {1}",
    "ALTER TABLE {0} ADD a INT DEFAULT {2} {3}, RENAME TO {1}",
    "ALTER TABLE {0} EXCHANGE PARTITION a WITH TABLE {1}",
    "RENAME TABLE {0} TO {1}, {1} TO {0}",
    "DROP TABLE IF EXISTS {0}, {1} {3}",
    "TRUNCATE TABLE {0} {3}",
    "CREATE INDEX a ON {0} (a) COMMENT {2}",
    "CREATE VIEW {0} AS SELECT a.a, {2} AS b FROM {1} AS a JOIN {0} ON a.a = 1",
    "CREATE VIEW {0} AS WITH a AS (SELECT 1 AS x) SELECT a.x FROM a, {1}",
]


def archived(table: TableName) -> TableName:
    return TableName(f"{table.schema.upper()} copy", f"{table.table}`x" if table.table else "")


@given(form=st.sampled_from(FORMS), one=SPELLINGS, other=SPELLINGS, text=TEXTS)
def test_a_route_changes_every_name_of_a_table_and_nothing_else(form: str, one: str, other: str, text: str) -> None:
    ddl = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query=form.format(one, other, string(text), comment(text)), ddl_type=0)
    there = renamed(ddl, archived)
    before = parse_ddl(ddl)
    assert before is not None
    if there is None:
        # Beside a part a, a column a.x may be of a table a.
        assert "a" in before.parts
        assert any(name.table.casefold() == "a" for name in before.mentions)
        return
    after = parse_ddl(there)
    assert after is not None
    assert (there.schema, there.table) == archived(ddl.name)
    assert list(after.names) == list(dict.fromkeys(map(archived, before.names)))
    for piece in (string(text), comment(text)):
        assert there.query.count(piece) >= (piece in ddl.query)


@given(query=st.lists(st.sampled_from([*WORDS, *CLAUSES]), max_size=16).map(" ".join) | st.text(max_size=40) | TEXTS)
def test_no_text_breaks_the_routing(query: str) -> None:
    ddl = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query=query, ddl_type=0)
    there = renamed(ddl, archived)
    if there is not None:
        assert renamed(there, lambda name: name) == there


@given(query=st.lists(st.sampled_from([*WORDS, *CLAUSES]), max_size=16).map(" ".join) | st.text(max_size=40) | TEXTS)
@example(query="ALTER TABLE t ADD a VECTOR ( 5")
@example(query="CREATE INDEX t ON t ( (")
def test_no_text_breaks_the_adaptation_to_a_server(query: str) -> None:
    sent = rewritten(query, MARIADB)
    left_out(query, MARIADB)
    indexes_by_name(query)
    without_missing_indexes(query, ())
    with suppress(NeedsOperator):
        refuse_inexpressible(event(query), MARIADB)
    # What is adapted is not adapted again.
    assert rewritten(sent, MARIADB) == sent or not sent or "/*" in sent
    if may_run_in_background(sent):
        assert may_run_in_background(background_form(sent))
