"""Gives a charset that a DDL names without a collation the collation that TiDB gives it.

TiDB's default for utf8mb4 is utf8mb4_bin, MariaDB's utf8mb4_general_ci, MySQL's utf8mb4_0900_ai_ci. Under those 'a' and 'A' are one key:
a REPLACE of the one would silently delete the other. No server lets a session change that default in general, so the text is completed.
Only definitions are (CREATE and ALTER of tables and schemas); expressions in parentheses are left alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from applier.ddl.edit import Edit, edited
from applier.ddl.parser import parse_or_none
from applier.ddl.tokens import Token
from applier.ddl.tree import AlterTableStatement, CreateTableStatement, SchemaStatement, Span, Tree

# binary is not here: it has one collation only.
TIDB_DEFAULTS: Final = {
    "utf8mb4": "utf8mb4_bin",
    "utf8": "utf8_bin",
    "utf8mb3": "utf8mb3_bin",
    "ascii": "ascii_bin",
    "latin1": "latin1_bin",
    "gbk": "gbk_chinese_ci",
    "gb18030": "gb18030_chinese_ci",
}
"""TiDB's default collation per charset. Those of gbk and gb18030 (with new collations, the default) are those of other servers too: written
out, they show in the statement, which explains them to the table check, and ``[ddl.collations]`` finds them."""


def with_tidb_collations(query: str) -> str:
    """Return the statement with ``COLLATE`` after each charset that has none in its column's definition, or among its options."""
    tree = parse_or_none(query)
    if tree is None:
        return query
    return edited(query, collation_edits(tree, TIDB_DEFAULTS))


def collation_edits(tree: Tree, defaults: Mapping[str, str]) -> Iterator[Edit]:
    """Yield what completes charsets without a collation; ``defaults``: upstream's collation of a charset."""
    return (edit for span in _scopes(tree) for edit in _completed(_outer_tokens(tree, span), defaults))


def _scopes(tree: Tree) -> Iterator[Span]:
    """Yield the parts in which a charset and its collation belong together: a column, the options of a table or schema, a clause."""
    match tree.node:
        case SchemaStatement(verb="CREATE" | "ALTER", options=options):
            yield options
        case CreateTableStatement(elements=elements, options=options):
            yield from (element.span for element in elements)
            # With the commas between them: MySQL takes options with commas and without.
            yield options
        case AlterTableStatement(clauses=clauses):
            for clause in clauses:
                yield from ([element.span for element in clause.elements] if clause.is_list else [clause.span])


def _outer_tokens(tree: Tree, span: Span) -> list[Token]:
    """Return the tokens of a part outside of parentheses."""
    found, depth = list[Token](), 0
    for token in tree.tokens[span[0] : span[1] + 1]:
        # The inside of CAST(… AS CHAR CHARACTER SET x) is an expression, which has no collation to complete.
        depth -= token.kind == ")"
        if depth <= 0:
            found.append(token)
        depth += token.kind == "("
    return found


def _completed(tokens: list[Token], defaults: Mapping[str, str]) -> Iterator[Edit]:
    words = [token.keyword for token in tokens]
    # Wherever it stands: COLLATE x CHARSET y is one definition, in either order.
    if "COLLATE" in words or _is_binary(tokens):
        return
    for name in charset_names(tokens):
        collation = defaults.get(name.text.strip("'\"").casefold())
        if collation:
            yield Edit(name.end, name.end, f" COLLATE {collation}")


def _is_binary(tokens: list[Token]) -> bool:
    """Return whether BINARY stands before or after a charset: that is its binary collation already."""
    charsets = {token.end for token in charset_names(tokens)}
    return any(
        (before.end in charsets and token.keyword == "BINARY")
        or (before.keyword == "BINARY" and token.keyword in {"CHARACTER", "CHARSET", "CHAR"})
        for before, token in pairwise(tokens)
    )


def charset_names(tokens: Sequence[Token]) -> list[Token]:
    """Return the names that follow CHARSET [=] and CHARACTER SET [=]."""
    found = []
    words = [*(token.keyword for token in tokens), "", ""]
    for index, word in enumerate(words[:-2]):
        is_pair = word in {"CHARACTER", "CHAR"} and words[index + 1] == "SET"
        if is_pair or word == "CHARSET":
            at = index + 1 + is_pair
            at += words[at] == "="
            if at < len(tokens):
                found.append(tokens[at])
    return found
