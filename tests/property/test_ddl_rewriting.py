"""A statement's clauses are rewritten, and nothing beside them: no name, no string, no comment; and no text breaks the rewriting."""

from hypothesis import given
from hypothesis import strategies as st

from applier.ddl.comment import as_tidb_reads
from applier.model.events import DdlEvent
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
]


def rewritten(query: str) -> str:
    return sink_statement(DdlEvent(commit_ts=Ts(1), schema="s", table="t", query=query, ddl_type=0))


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
        assert rewritten(query) == query


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
