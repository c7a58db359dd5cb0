"""Finds what a DDL gives to existing rows that only the server knows on which it runs: numbers, random values. Pure.

TiDB cannot do either. MySQL refuses the second; MariaDB does both, and its own replicas differ then.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from applier.ddl.parser import parse_or_none
from applier.ddl.tree import AlterTableStatement, ElementKind, Tree

OWN_VALUES: Final = "the DDL numbers existing rows, or gives them random values: they would differ from upstream's"
OLD_TIMESTAMPS: Final = ("explicit_defaults_for_timestamp", "OFF")
"""The session's variable (``DdlEvent.session``) of an ALTER TABLE whose TIMESTAMP columns get what the whole table decides."""

_RANDOM: Final = frozenset({"UUID", "UUID_SHORT", "RAND", "RANDOM_BYTES", "SYS_GUID", "CONNECTION_ID", "SYSDATE"})


def own_values(query: str) -> str:
    """Return which column gets such values; '' if none does."""
    tree = parse_or_none(query)
    if tree is None:
        return ""
    return next(_columns(tree), "")


def _columns(tree: Tree) -> Iterator[str]:
    if not isinstance(tree.node, AlterTableStatement):
        return
    for clause in tree.node.clauses:
        for element in clause.elements:
            words = [token.keyword for token in tree.tokens[element.body : element.span[1] + 1]]
            is_random = "DEFAULT" in words and any(word in _RANDOM and after == "(" for word, after in pairwise(words))
            if element.kind is ElementKind.COLUMN and element.name is not None and ({"AUTO_INCREMENT", "SERIAL"} & set(words) or is_random):
                yield element.name.text
