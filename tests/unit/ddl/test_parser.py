"""The tree of a statement: its clauses and elements, and their places in the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.ddl.parser import KEPT_TREES, parse, parse_or_none
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import AlterTableStatement, ClauseKind, CreateTableStatement, IndexStatement, Span, Tree

K = ClauseKind


def text_of(tree: Tree, span: Span) -> str:
    return tree.text[tree.tokens[span[0]].start : tree.tokens[span[1]].end] if span[0] <= span[1] else ""


def test_a_table_is_cut_into_elements_options_and_partitioning() -> None:
    tree = parse("CREATE TABLE s.t (a INT /* , b */, KEY k (a, b), CHECK (a IN (1, 2))) ENGINE=x, COMMENT='(' PARTITION BY HASH (a) ;")
    node = tree.node
    assert isinstance(node, CreateTableStatement)
    assert [text_of(tree, element.span) for element in node.elements] == ["a INT", "KEY k (a, b)", "CHECK (a IN (1, 2))"]
    assert text_of(tree, node.options) == "ENGINE=x, COMMENT='('"
    assert text_of(tree, node.partitioning) == "PARTITION BY HASH (a)"


@pytest.mark.parametrize(
    ("clauses", "wanted"),
    [
        ("ADD a INT, ADD KEY (a)", [("ADD a INT", K.ADD), ("ADD KEY (a)", K.ADD)]),
        ("DROP PARTITION p, q, COMMENT 'x'", [("DROP PARTITION p, q", K.DROP_PARTITION), ("COMMENT 'x'", K.OTHER)]),
        ("ORDER BY a, b, DROP c,", [("ORDER BY a, b", K.OTHER), ("DROP c", K.DROP_COLUMN)]),
        ("RENAME TO u, RENAME KEY a TO b", [("RENAME TO u", K.RENAME_TABLE), ("RENAME KEY a TO b", K.RENAME_INDEX)]),
        ("EXCHANGE PARTITION p WITH TABLE q.u", [("EXCHANGE PARTITION p WITH TABLE q.u", K.EXCHANGE_PARTITION)]),
        ("EXCHANGE x", [("EXCHANGE x", K.OTHER)]),
        ("ADD (a INT, b INT", [("ADD (a INT, b INT", K.ADD)]),
        ("", []),
    ],
)
def test_an_alter_is_cut_into_clauses(clauses: str, wanted: list[tuple[str, ClauseKind]]) -> None:
    tree = parse(f"ALTER TABLE t {clauses}")
    node = tree.node
    assert isinstance(node, AlterTableStatement)
    assert node.is_understood
    assert [(text_of(tree, clause.span), clause.kind) for clause in node.clauses] == wanted


@pytest.mark.parametrize("clauses", ["SOMETHING", "ADD a INT, b INT", "RENAME a b", "EXCHANGE PARTITION p", ", ADD a INT"])
def test_a_clause_that_may_name_any_table_is_not_understood(clauses: str) -> None:
    node = parse(f"ALTER TABLE t {clauses}").node
    assert isinstance(node, AlterTableStatement)
    assert not node.is_understood


def test_an_index_has_its_parts_and_options() -> None:
    tree = parse("CREATE UNIQUE INDEX i USING BTREE ON t (a, b(3)) COMMENT 'x'")
    node = tree.node
    assert isinstance(node, IndexStatement)
    assert (node.index_kind, text_of(tree, node.before_table)) == ("UNIQUE", "USING BTREE")
    assert (text_of(tree, node.parts), text_of(tree, node.options)) == ("a, b(3)", "COMMENT 'x'")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DROP TABLE a b", "expected the end of the statement before 'b'"),
        ("DROP TABLE `a", "expected the end of a quote or comment before '`a'"),
        ("DROP SEQUENCE a", "expected a table, index, view or schema before 'SEQUENCE'"),
        ("GRANT ALL", "expected a DDL statement before 'GRANT'"),
        ("CREATE 'x'", "expected a keyword before \"'x'\""),
        ("RENAME TABLE a TO", "expected a name before ''"),
        ("DROP USER a", "expected a table, index, view or schema before 'USER'"),
        ("CREATE DEFINER", "expected another word before ''"),
    ],
)
def test_an_error_says_what_was_expected_and_what_was_found(query: str, message: str) -> None:
    with pytest.raises(DdlSyntaxError) as caught:
        parse(query)
    assert str(caught.value) == message


WORDS = """CREATE ALTER TABLE INDEX t ( ) , ; . ADD DROP COLUMN IF NOT EXISTS PRIMARY KEY UNIQUE CONSTRAINT FOREIGN CHECK PARTITION BY
    RENAME TO EXCHANGE WITH ORDER CHANGE MODIFY FULLTEXT USING BTREE LIKE `a` 'b' 5 INT"""


@given(st.lists(st.sampled_from(WORDS.split())).map(" ".join))
def test_any_text_gives_a_tree_or_the_one_error(text: str) -> None:
    try:
        tree = parse(text)
    except DdlSyntaxError:
        return
    spans = [clause.span for clause in tree.node.clauses] if isinstance(tree.node, AlterTableStatement) else []
    assert spans == sorted(spans)


def test_the_texts_of_one_ddl_are_read_once_and_those_of_ten_thousand_are_not_kept() -> None:
    texts = [f"ALTER TABLE t ADD COLUMN kept{number} INT" for number in range(KEPT_TREES + 1)]
    first = parse(texts[0])
    assert parse_or_none(texts[0]) is first
    assert isinstance(first.tokens, tuple)
    for text in texts:
        parse(text)
    assert parse(texts[0]) is not first
    assert parse(texts[0]) == first


@pytest.mark.parametrize("text", ["", "SELECT 1", "ALTER TABLE", "CREATE TABLE t (a INT COMMENT 'open"])
def test_a_text_that_is_not_understood_has_no_tree(text: str) -> None:
    assert parse_or_none(text) is None
    with pytest.raises(DdlSyntaxError):
        parse(text)
