"""Each statement that TiDB's parser accepts is read as TiDB reads it, or not at all: type, tables, old and new names."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.ddl.clause import without_ignored_clauses
from applier.ddl.generated_name import TableNames, with_generated_names
from applier.ddl.tokens import as_tidb_reads
from applier.model.events import DdlEvent, TableName
from applier.model.position import Ts
from tests.rig.tidb_parser import TidbParser, tidb_parser
from tests.rig.view_queries import BEYOND_TIDB, NO_QUERIES, QUERIES

DATA: Final = Path(__file__).parents[1] / "data"
DDL: Final = re.compile(r"\s*(?:/\*.*?\*/\s*)?(?:create|alter|drop|rename|truncate|recover|flashback)\b", re.IGNORECASE | re.DOTALL)
UNREAD: Final = re.compile(
    r"SECONDARY_(?:UN)?LOAD|TABLESPACE|STORAGE DISK|LOCATION LABELS|STATS_OPTIONS|READ (?:ONLY|WRITE)|AFFINITY|AS OF TIMESTAMP|TABLESAMPLE",
    re.IGNORECASE,
)
"""What is not read, and may touch everything: TiCDC sends none of it."""

SURROGATE: Final = re.compile("[\ud800-\udfff]")

Reading = tuple[str, dict[str, Any], DdlStatement | None]


def corpus() -> Iterator[str]:
    """Yield the project's own statements."""
    yield from (record["query"] for record in json.loads((DATA / "ddl_statements.json").read_text()))
    yield from (json.loads(line)["query"] for line in (DATA / "ddl_identities.jsonl").read_text().splitlines())
    for name in ("ddl_clauses.txt", "ddl_spellings.txt"):
        yield from (line.removeprefix("=> ") for line in (DATA / name).read_text().splitlines() if line)
    yield from (f"CREATE VIEW v AS {query}" for query, _ in QUERIES)
    yield from (f"CREATE VIEW v AS {query}" for query in NO_QUERIES)


@pytest.fixture(scope="module")
def oracle() -> TidbParser:
    return tidb_parser()


@pytest.fixture(scope="module")
def readings(oracle: TidbParser) -> list[Reading]:
    """What TiDB and we say of each statement that TiDB accepts."""
    # A text that is not UTF-8 reaches no program.
    texts = (text for text in (*oracle.cases(), *corpus()) if DDL.match(text) and not SURROGATE.search(text))
    statements = list(dict.fromkeys(texts))
    said = zip(statements, oracle.read(statements), strict=True)
    return [(text, theirs, parse_ddl(event(text))) for text, theirs in said if "error" not in theirs]


def event(query: str) -> DdlEvent:
    return DdlEvent(commit_ts=Ts(1), schema="S", table="t", query=query, ddl_type=0)


def folded(names: list[Any]) -> list[tuple[str, str]]:
    """Return names of the oracle, or of ours, as they are compared."""
    return [((schema or "S").casefold(), table.casefold()) for schema, table in names]


def summary(statement: DdlStatement | None) -> tuple[object, ...]:
    if statement is None:
        return ()
    pairs = [folded(list(pair)) for pair in statement.renames]
    return statement.kind, statement.schema.casefold(), sorted(folded(list(statement.names))), pairs


def test_the_corpus_is_as_large_as_it_was(readings: list[Reading]) -> None:
    assert len(readings) > 2_500
    kinds = Counter(theirs["kind"] for _, theirs, _ in readings)
    assert kinds.keys() >= {kind.value for kind in DdlKind}


def test_a_statement_is_of_the_kind_that_tidb_says(readings: list[Reading]) -> None:
    # "other": no DDL. ALTER TABLE … ANALYZE PARTITION is one for us, and changes nothing.
    wrong = [
        (text, theirs["kind"], ours.kind)
        for text, theirs, ours in readings
        if ours is not None and ours.kind != theirs["kind"] and not (theirs["kind"] == "other" and "ANALYZE" in text.upper())
    ]
    assert wrong == []


def test_what_is_not_read_is_listed(readings: list[Reading]) -> None:
    unread = [text for text, theirs, ours in readings if ours is None and theirs["kind"] in set(DdlKind)]
    assert [text for text in unread if not UNREAD.search(text)] == []


def test_a_statement_names_the_tables_that_tidb_says(readings: list[Reading]) -> None:
    wrong = []
    for text, theirs, ours in readings:
        # The name of a table that comes back is all that we ask of its statement. A schema has no name if it is the event's own.
        if ours is None or ours.kind is DdlKind.RECOVER_TABLE or theirs["kind"] == "other":
            continue
        if ours.schema:
            names = folded([TableName(theirs["schema"], "")]) == folded([TableName(ours.schema, "")]) or "``" in text
        else:
            names = set(folded(theirs["names"] or [])) == set(folded(list(ours.names)))
        roles = folded(theirs["creates"]) == folded(list(ours.creates)) and folded(theirs["drops"]) == folded(list(ours.drops))
        renames = [folded(pair) for pair in theirs["renames"]] == [folded(list(pair)) for pair in ours.renames]
        if not (names and roles and renames):
            wrong.append((text, theirs, ours))
    assert wrong == []


def test_tidbs_own_words_for_a_statement_are_read_as_the_statement(readings: list[Reading]) -> None:
    # A statement in a comment is for TiDB only, and none for us.
    restored = [(text, theirs["restored"], ours) for text, theirs, ours in readings if theirs["kind"] != "other" and ours is not None]
    wrong = [
        (text, again)
        for text, again, ours in restored
        if not again.startswith("/*T!") and summary(parse_ddl(event(again))) != summary(ours)
    ]
    assert wrong == []


def test_the_named_statement_is_one_for_tidb_and_nothing_in_it_is_unnamed(oracle: TidbParser, readings: list[Reading]) -> None:
    named = [(text, with_generated_names(text, TableNames()), ours) for text, theirs, ours in readings if theirs["kind"].endswith("_table")]
    again = oracle.read([one for _, one, _ in named])
    wrong = [
        (text, one, theirs)
        for (text, one, ours), theirs in zip(named, again, strict=True)
        if "error" in theirs or theirs["unnamed"] or summary(parse_ddl(event(one))) != summary(ours)
    ]
    assert wrong == []


def test_what_a_sink_gets_is_a_statement_for_tidb_too(oracle: TidbParser, readings: list[Reading]) -> None:
    # REFERENCES inside of a column makes nothing in TiDB, and is taken out with the table that it names.
    read = [(text, without_ignored_clauses(as_tidb_reads(text)), ours) for text, _, ours in readings if ours is not None]
    again = oracle.read([one for _, one, _ in read])
    wrong = [
        (text, one, theirs)
        for (text, one, ours), theirs in zip(read, again, strict=True)
        if one and ("error" in theirs or (summary(parse_ddl(event(one))) != summary(ours) and "REFERENCES" not in text.upper()))
    ]
    assert wrong == []


def test_the_queries_that_tidb_has_are_queries_for_tidb(oracle: TidbParser) -> None:
    texts = [f"CREATE VIEW v AS {query}" for query, _ in QUERIES if (query, _) not in BEYOND_TIDB]
    assert [text for text, theirs in zip(texts, oracle.read(texts), strict=True) if "error" in theirs] == []
