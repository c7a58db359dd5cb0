"""Directs statements at the scratch table: another name, and the default of the schema that the table would be in. Pure."""

from typing import Final

from applier.ddl.edit import Edit, edited
from applier.ddl.parser import parse, parse_or_none
from applier.ddl.tree import AlterTableStatement, CreateTableStatement, IndexStatement, NamePlace
from applier.model.events import TableName
from applier.mysql.quoting import quote_table

_CHARSET_WORDS: Final = frozenset({"CHARSET", "CHARACTER", "CHAR", "COLLATE"})


def retargeted(statement: str, name: TableName) -> str | None:
    """Replace the table of a CREATE TABLE, ALTER TABLE, CREATE INDEX or DROP INDEX by ``name``; None for another statement."""
    tree = parse_or_none(statement)
    if tree is None:
        return None
    match tree.node:
        case (
            CreateTableStatement(table=NamePlace(schema=schema, table=table))
            | AlterTableStatement(table=NamePlace(schema=schema, table=table))
            | IndexStatement(table=NamePlace(schema=schema, table=table))
        ) if table is not None:
            return edited(statement, [Edit((schema or table).start, table.end, quote_table(*name))])
        case _:
            return None


def with_default(statement: str, default: str) -> str:
    """Put ``default`` after the columns of a CREATE TABLE that names neither a character set nor a collation for the table."""
    tree = parse(statement)
    node = tree.node
    # LIKE takes the other table's collation and allows no options: it has no elements here.
    if not isinstance(node, CreateTableStatement) or not node.elements:
        return statement
    first, last = node.options
    if any(token.keyword in _CHARSET_WORDS for token in tree.tokens[first : last + 1]):
        return statement
    closing = tree.tokens[node.elements[-1].span[1] + 1]
    return edited(statement, [Edit(closing.end, closing.end, default)])
