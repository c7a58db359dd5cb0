"""Definitions of tables from their statements."""

from applier.ddl.parser import parse
from applier.ddl.table_draft import TableDefinition, TableDraft, alter, parse_table
from applier.ddl.tree import AlterTableStatement, CreateTableStatement


def created(query: str) -> TableDefinition:
    """Return the table that a CREATE TABLE makes."""
    tree = parse(query)
    assert isinstance(tree.node, CreateTableStatement)
    return parse_table(tree, tree.node, tree.node.table.name("s"))


def altered(table: TableDefinition, clauses: str) -> TableDefinition:
    """Return the table after an ALTER TABLE with these clauses."""
    draft, tree = TableDraft(table), parse(f"ALTER TABLE t {clauses}")
    assert isinstance(tree.node, AlterTableStatement)
    alter(draft, tree, tree.node)
    return draft.freeze()
