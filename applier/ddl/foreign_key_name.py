"""Gives foreign keys names that are free in their schema, and finds them again. Pure.

Upstream's TiDB keeps the names of foreign keys apart by table; MySQL and MariaDB have one set of names for each schema. So a name that
another table has gets a number here (``fk_1#2``), which stays with the key when its table is renamed. And both servers rename ``t_ibfk_1``
with its table, which TiDB does not.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from applier.ddl.edit import Edit, edited, quoted_name
from applier.ddl.parser import parse, parse_or_none
from applier.ddl.tokens import Token
from applier.ddl.tree import AlterTableStatement, ClauseKind, ElementKind, Tree

_NUMBERED: Final = re.compile(r"(?P<name>.*)#\d+", re.DOTALL)
_OF_TABLE: Final = re.compile(r".*(?P<number>_ibfk_\d+)", re.DOTALL)


def has_foreign_keys(query: str) -> bool:
    """Return whether the statement makes or drops foreign keys."""
    tree = parse_or_none(query)
    if tree is None:
        return False
    return any(True for _ in _made(tree)) or any(True for _ in _dropped(tree))


def with_free_names(query: str, table: str, own: Collection[str], others: Collection[str]) -> str:
    """Return the statement with names for the foreign keys that it makes and drops as the sink has them.

    ``table`` is its table's name; ``own``: the foreign keys of that table, ``others``: those of the schema's other tables.
    """
    tree = parse(query)
    taken = {name.casefold() for name in (*own, *others)}
    edits = list[Edit]()
    for token in _made(tree):
        if token.text.casefold() in {name.casefold() for name in others}:
            edits.append(_renamed(token, _free(token.text, taken)))
    for token in _dropped(tree):
        edits += [_renamed(token, name) for name in own if _is_same(token.text, name, table)]
    return edited(query, edits)


def _is_same(wanted: str, name: str, table: str) -> bool:
    """Return whether ``name`` is what the sink calls the key ``wanted``, although it has another name."""
    numbered, of_table = _NUMBERED.fullmatch(name), _OF_TABLE.fullmatch(wanted)
    after_rename = "" if of_table is None else table + of_table["number"]
    folded = name.casefold()
    if folded == wanted.casefold():
        return False
    return folded == after_rename.casefold() or (numbered is not None and numbered["name"].casefold() == wanted.casefold())


def _free(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}#{number}".casefold() in taken:
        number += 1
    taken.add(f"{name}#{number}".casefold())
    return f"{name}#{number}"


def _renamed(token: Token, name: str) -> Edit:
    return Edit(token.start, token.end, quoted_name(name))


def _made(tree: Tree) -> Iterator[Token]:
    for element in tree.elements:
        if element.kind is ElementKind.FOREIGN_KEY and element.constraint is not None:
            yield element.constraint


def _dropped(tree: Tree) -> Iterator[Token]:
    for clause in tree.node.clauses if isinstance(tree.node, AlterTableStatement) else ():
        if clause.kind is ClauseKind.DROP_FOREIGN_KEY and clause.name is not None:
            yield clause.name
