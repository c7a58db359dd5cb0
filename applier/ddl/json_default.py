"""Writes the default that MySQL and TiDB give old rows of a new JSON column without one, for a sink that is a MariaDB. Pure.

MySQL and TiDB put the JSON value ``null`` into old rows of ``ADD COLUMN j JSON NOT NULL``, and so does the SQLite sink. MariaDB's JSON is a
text with a check: it puts '' there, which its own check refuses as soon as such a row is written again.
"""

from typing import Final

from applier.ddl.column_type import TypeFamily
from applier.ddl.definition_reader import defined_columns
from applier.ddl.edit import Edit, edited
from applier.ddl.parser import parse_or_none
from applier.ddl.tree import AlterTableStatement

_DEFAULT: Final = " /*M! DEFAULT 'null' */"
"""MariaDB alone executes it; MySQL takes no default of JSON that is a literal."""


def with_json_defaults(query: str) -> str:
    """Return an ALTER TABLE of a MySQL or TiDB with that default of each new JSON column that is NOT NULL; other statements unchanged."""
    tree = parse_or_none(query)
    if tree is None:
        return query
    if not isinstance(tree.node, AlterTableStatement):
        return query
    edits = []
    for column in defined_columns(tree):
        is_json = column.type is not None and column.type.family is TypeFamily.JSON
        not_null = [last for first, last in column.nullability if tree.tokens[first].keyword == "NOT"]
        if is_json and not_null and not (column.formerly or column.has_default or column.generation):
            end = tree.tokens[not_null[-1]].end
            edits.append(Edit(end, end, _DEFAULT))
    return edited(query, edits)
