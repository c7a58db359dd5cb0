"""What upstream calls the unnamed checks of a table, by the statements that made it. Pure.

MySQL numbers all checks of a CREATE TABLE in their order, also checks of columns: ``t_chk_1``, ``t_chk_2``. A RENAME TABLE changes these
names too. MariaDB numbers the checks of the table only: ``CONSTRAINT_1``; the check of a column has no name. An unnamed check that an ALTER
TABLE adds is skipped: its number depends on which checks were dropped before.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from applier.ddl.edit import Edit, edited, quoted_name
from applier.ddl.names import parse_ddl
from applier.ddl.old_values import MARIADB, MYSQL, kind_of_upstream
from applier.ddl.parser import parse, parse_or_none
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import AlterClause, AlterTableStatement, ClauseKind, CreateTableStatement, Element, ElementKind, Tree
from applier.model.events import DdlEvent

_OF_MYSQL: Final = "{table}_chk_{number}"
_OF_MARIADB: Final = "CONSTRAINT_{number}"


@dataclass(frozen=True, slots=True)
class DroppedCheck:
    """A clause that drops a constraint by name. ``is_check``: it says DROP CHECK, which MariaDB does not know."""

    clause: AlterClause
    name: str
    is_check: bool


def dropped_checks(query: str) -> list[DroppedCheck]:
    """Return the clauses of an ALTER TABLE that drop a check, or a constraint of another kind, by name."""
    tree = parse_or_none(query)
    if tree is None or not isinstance(tree.node, AlterTableStatement):
        return []
    return [
        DroppedCheck(clause, clause.name.text, tree.part(*clause.span).sees("DROP", "CHECK"))
        for clause in tree.node.clauses
        if clause.kind is ClauseKind.DROP_CONSTRAINT and clause.name is not None
    ]


def with_dropped_checks(query: str, names: Sequence[tuple[DroppedCheck, str]], *, says_constraint: bool) -> str:
    """Return the statement with other names of the checks that it drops; their IF EXISTS goes. ``says_constraint``: and no DROP CHECK."""
    return edited(query, _edits(parse(query), names, says_constraint=says_constraint))


def _edits(tree: Tree, names: Sequence[tuple[DroppedCheck, str]], *, says_constraint: bool) -> Iterator[Edit]:
    for dropped, name in names:
        clause, token = dropped.clause, dropped.clause.name
        if token is not None and name != dropped.name:
            yield Edit(token.start, token.end, quoted_name(name))
            if clause.condition is not None:
                first, last = clause.condition
                yield Edit(tree.tokens[first].start, tree.tokens[last].end, "")
        if says_constraint and dropped.is_check:
            word = tree.tokens[clause.span[0] + 1]
            yield Edit(word.start, word.end, "CONSTRAINT")


def checks_after(checks: Mapping[str, str], ddl: DdlEvent) -> dict[str, str]:
    """Return the checks of a table whose names are certain after a statement: casefolded name upstream -> expression."""
    tree, kind = parse_or_none(ddl.query), kind_of_upstream(ddl)
    if tree is None or kind not in {MYSQL, MARIADB}:
        return {}
    found, is_mysql = dict(checks), kind == MYSQL
    match tree.node:
        case CreateTableStatement() as node:
            # LIKE names them again.
            return {} if node.like is not None else _made(tree, node, node.table.name(ddl.schema).table, is_mysql=is_mysql)
        case AlterTableStatement(clauses=clauses):
            for clause in clauses:
                if clause.kind is ClauseKind.DROP_CONSTRAINT and clause.name is not None:
                    found.pop(clause.name.text.casefold(), None)
            elements = [element for clause in clauses for element in clause.elements if element.kind is ElementKind.CHECK]
            found |= {name.casefold(): expression for element in elements for name, expression in _checks(tree, element) if name}
    return _renamed(found, ddl) if is_mysql else found


def _made(tree: Tree, node: CreateTableStatement, table: str, *, is_mysql: bool) -> dict[str, str]:
    found, number = dict[str, str](), 0
    for element in node.elements:
        for name, expression in _checks(tree, element):
            if element.kind is ElementKind.COLUMN and not is_mysql:
                continue
            number += not name
            generated = (_OF_MYSQL if is_mysql else _OF_MARIADB).format(table=table, number=number)
            found[(name or generated).casefold()] = expression
    return found


def _checks(tree: Tree, element: Element) -> Iterator[tuple[str, str]]:
    """Yield the checks of an element with their names, '' for none."""
    if element.kind is ElementKind.CHECK:
        yield "" if element.constraint is None else element.constraint.text, _parenthesis(tree, element.body)
    if element.kind is not ElementKind.COLUMN:
        return
    tokens, depth = tree.tokens, 0
    for at in range(element.body, element.span[1] + 1):
        word = tokens[at].keyword
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == "CHECK" and at < element.span[1] and tokens[at + 1].keyword == "(":
            is_named = at - 2 >= element.body and tokens[at - 2].keyword == "CONSTRAINT"
            yield tokens[at - 1].text if is_named else "", _parenthesis(tree, at + 1)


def _parenthesis(tree: Tree, at: int) -> str:
    """Return the text in the parenthesis that opens at a token."""
    tokens, depth = tree.tokens, 0
    for last in range(at, len(tokens)):
        depth += (tokens[last].keyword == "(") - (tokens[last].keyword == ")")
        if depth == 0:
            return tree.text[tokens[at].end : tokens[last].start]
    raise DdlSyntaxError("a parenthesis that closes", tree.text)


def _renamed(checks: dict[str, str], ddl: DdlEvent) -> dict[str, str]:
    """Return the checks as MySQL calls them after a RENAME of their table."""
    statement = parse_ddl(ddl)
    for old, new in () if statement is None else statement.renames:
        pattern = re.compile(re.escape(old.table.casefold()) + r"_chk_(\d+)")
        checks = {
            _OF_MYSQL.format(table=new.table.casefold(), number=found[1]) if (found := pattern.fullmatch(name)) else name: expression
            for name, expression in checks.items()
        }
    return checks
