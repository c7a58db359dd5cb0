"""Clauses that TiDB ignores do not reach the sink; everything else does, byte by byte."""

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from applier.ddl.clause import ADD_FULLTEXT_INDEX, CLAUSES, Clause, ClauseScope, without_ignored_clauses
from applier.model.events import DdlEvent
from applier.model.position import Ts
from applier.sinks.mysql.ddl.rewrite import sink_statement
from tests.rig.rewritten_case import rewritten_cases

DOCUMENT = Path(__file__).parents[3] / "docs" / "ddl_clauses.md"


@pytest.mark.parametrize("engine", ["MyISAM", "Aria", "MEMORY", "'CSV'", "TokuDB", "`BLACKHOLE`", '"myisam"', "MyRocks"])
@pytest.mark.parametrize("equals", [" = ", "=", " "])
def test_a_table_is_made_on_the_transactional_engine(engine: str, equals: str) -> None:
    query = f"CREATE TABLE t (id INT PRIMARY KEY) ENGINE{equals}{engine} COMMENT='x'"
    assert without_ignored_clauses(query) == f"CREATE TABLE t (id INT PRIMARY KEY) ENGINE{equals}InnoDB COMMENT='x'"


@pytest.mark.parametrize("engine", ["InnoDB", "innodb", "'INNODB'"])
def test_the_transactional_engine_stays_as_it_is_written(engine: str) -> None:
    query = f"CREATE TABLE t (id INT PRIMARY KEY) ENGINE = {engine}"
    assert without_ignored_clauses(query) == query


@pytest.mark.parametrize(("query", "wanted"), rewritten_cases("ddl_clauses.txt"))
def test_what_tidb_ignores_does_not_reach_the_sink(query: str, wanted: str) -> None:
    assert without_ignored_clauses(query) == wanted


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE engine (`ENGINE` INT, storage INT COMMENT 'ENGINE=MyISAM CHECK (a)', `check` INT) COMMENT='ENGINE=Aria, FORCE'",
        "CREATE TABLE t (a INT /* CHECK (a) */) -- ENGINE=MyISAM",
        "CREATE TABLE t (a INT) /*T![ttl] TTL=`a` + INTERVAL 1 DAY */ /*T! TTL_ENABLE='OFF' */",
        "CREATE TABLE t (a ENUM('CHECK (a)','ENGINE=MyISAM') DEFAULT 'STORAGE DISK', b INT GENERATED ALWAYS AS (`engine` + lock) STORED)",
        "CREATE TABLE t LIKE engine",
        "CREATE VIEW v AS SELECT engine, lock FROM t FORCE INDEX (i)",
        "ALTER TABLE t DROP COLUMN engine, RENAME COLUMN lock TO algorithm, RENAME INDEX force TO visible, DROP KEY type",
        "ALTER TABLE t RENAME TO engine",
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE x",
        "ALTER TABLE t ADD INDEX visible (a), ADD COLUMN comment INT DEFAULT 3 AFTER storage",
        "ALTER TABLE t COMMENT 'x', AUTO_INCREMENT = 5, CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "DROP TABLE engine",
        "CREATE TABLE t (a INT) COMMENT='never closed",
        "",
    ],
)
def test_names_strings_and_comments_stay_as_they_are(query: str) -> None:
    assert without_ignored_clauses(query) == query


def test_an_index_for_full_text_that_upstream_has_is_made_without_its_parser() -> None:
    query = "ALTER TABLE t ADD FULLTEXT INDEX f (a) WITH PARSER MULTILINGUAL"
    assert without_ignored_clauses(query, ADD_FULLTEXT_INDEX) == "ALTER TABLE t ADD FULLTEXT INDEX f (a)"


def test_comments_of_mysql_are_code_and_those_of_mariadb_are_not() -> None:
    query = "CREATE TABLE t (a INT) /*!50100 ENGINE=MyISAM */ /*M!100100 PAGE_CHECKSUM=1 */ /*!99999 COMMENT='/*! x */' */"
    ddl = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query=query, ddl_type=3)
    assert sink_statement(ddl).split() == ["CREATE", "TABLE", "t", "(a", "INT)", "ENGINE=InnoDB", "COMMENT='/*!", "x", "*/'"]


def test_what_mysql_acts_on_stays_where_upstream_is_one() -> None:
    query = "CREATE TABLE t (a INT CHECK (a > 0), b TEXT, FULLTEXT f (b) WITH PARSER ngram, CONSTRAINT c CHECK (a < 9)) ENGINE=MyISAM"
    ddl = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query=query, ddl_type=3, session=(("sql_mode", ""),))
    assert sink_statement(ddl) == query.replace("MyISAM", "InnoDB")
    assert sink_statement(replace(ddl, query="ALTER TABLE t DROP CONSTRAINT c")) == "ALTER TABLE t DROP CONSTRAINT c"


def _rows() -> list[str]:
    """Write the table as the document shows it."""
    lines = []
    for place in ClauseScope:
        lines += [f"### {place.value.capitalize()}", "", "| clause | the sink gets | why |", "|---|---|---|"]
        lines += [_row(list(alike)) for _, alike in groupby(CLAUSES[place], key=lambda clause: (clause.decision, clause.why))]
        lines.append("")
    return lines


def _row(alike: list[Clause]) -> str:
    return f"| {', '.join(f'`{clause.words}`' for clause in alike)} | {alike[0].decision} | {alike[0].why} |"


def test_the_document_shows_the_table() -> None:
    assert "\n".join(_rows()) in DOCUMENT.read_text()
