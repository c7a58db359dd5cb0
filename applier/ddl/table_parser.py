"""Reads the definition of a table out of a CREATE TABLE, and the index elements that it shares with ALTER TABLE. Strict."""

from applier.ddl.column_parser import ParsedColumn, parse_column, parse_index_parts, skip_references
from applier.ddl.cursor import Cursor
from applier.ddl.table import IndexDefinition, IndexPart, TableDefinition
from applier.ddl.table_draft import TableDraft
from applier.ddl.tree import CreateTableStatement, Element, ElementKind, IndexStatement, Tree
from applier.ddl.type_parser import names_charset, parse_charset
from applier.model.events import TableName


def parse_table(tree: Tree, node: CreateTableStatement, name: TableName) -> TableDefinition:
    """Read the table that a CREATE TABLE makes: the elements under the table's character set; DdlSyntaxError if it is not all known."""
    # It must close: a text that was cut off must not give a table with fewer columns.
    tree.part(node.body).parenthesis()
    charset = table_charset(tree.part(*node.options))
    columns = [_column(tree, element, charset) for element in node.elements if element.kind is ElementKind.COLUMN]
    draft = TableDraft(TableDefinition(name=name, columns=tuple(column.definition for column in columns)))
    _add_indexes(draft, tree, [element for element in node.elements if element.kind is not ElementKind.COLUMN])
    for column in columns:
        add_column_keys(draft, column)
    return draft.freeze()


def _column(tree: Tree, element: Element, charset: str) -> ParsedColumn:
    """Read a column; ``charset`` is the table's, for a column that names none."""
    cursor = tree.part(element.body, element.span[1])
    has_own = names_charset(cursor)
    column = parse_column(cursor, column_name(tree, element))
    cursor.finish("the end of the column's definition")
    return column if has_own or not charset else column.with_charset(charset)


def column_name(tree: Tree, element: Element) -> str:
    """Return the name of a column; DdlSyntaxError if it has none."""
    if element.name is None or element.constraint is not None:
        raise tree.part(*element.span).unexpected("a column or an index")
    return element.name.text


def add_column_keys(draft: TableDraft, column: ParsedColumn) -> None:
    """Add the keys that stand inside a column's definition."""
    part = (IndexPart(column.definition.name),)
    if column.is_primary:
        draft.add_primary_key(part)
    if column.is_unique:
        draft.add_index(IndexDefinition("", part, unique=True))


def table_charset(options: Cursor) -> str:
    """Read the table's options for the character set; all others change no value."""
    found = ""
    while not options.is_done:
        # Its columns would come from a query that cannot run here.
        if options.sees("AS") or options.sees("SELECT"):
            raise options.unexpected("no query (CREATE TABLE … AS SELECT)")
        if not (charset := parse_charset(options)):
            options.next()
        found = charset or found
    return found


def _add_indexes(draft: TableDraft, tree: Tree, elements: list[Element]) -> None:
    """Add named indexes before anonymous ones, which must not take their names (TiDB, checkConstraintNames)."""
    anonymous = [index for element in elements if (index := add_index_element(draft, tree, element)) is not None]
    for index in anonymous:
        draft.add_index(index)


def add_index_element(draft: TableDraft, tree: Tree, element: Element) -> IndexDefinition | None:
    """Add what an element declares; an index without a name is returned instead, for the caller to add. Checks are upstream's."""
    cursor = tree.part(element.body, element.span[1])
    # CONSTRAINT c UNIQUE (a) names the index, unless it has its own name (manual, "CREATE TABLE").
    constraint = "" if element.constraint is None else element.constraint.text
    name = constraint if element.name is None else element.name.text
    match element.kind:
        case ElementKind.CHECK:
            return None
        case ElementKind.FOREIGN_KEY:
            _add_foreign_key(draft, cursor, constraint or name)
            return None
        case _:
            parts = _parse_parts(cursor, element.index_kind)
    if element.index_kind == "PRIMARY":
        draft.add_primary_key(parts)
        return None
    index = IndexDefinition(name, parts, unique=element.index_kind == "UNIQUE")
    if not name:
        return index
    draft.add_index(index)
    return None


def read_index(tree: Tree, element: Element) -> IndexDefinition:
    """Read the index that an element declares, which has a name."""
    name = element.name or element.constraint
    parts = _parse_parts(tree.part(element.body, element.span[1]), element.index_kind)
    return IndexDefinition("" if name is None else name.text, parts, unique=element.index_kind == "UNIQUE")


def parse_index(tree: Tree, node: IndexStatement) -> IndexDefinition:
    """Read the index that a CREATE INDEX makes."""
    parts = _parse_parts(tree.part(node.parts[0] - 1), node.index_kind)
    return IndexDefinition(node.name.text, parts, unique=node.index_kind == "UNIQUE")


def _parse_parts(cursor: Cursor, index_kind: str) -> tuple[IndexPart, ...]:
    """Read ``[USING x] (parts) options``."""
    if cursor.accept_any("USING", "TYPE"):
        cursor.next()
    parts = _vector_parts(cursor) if index_kind in ("VECTOR", "COLUMNAR") else parse_index_parts(cursor)
    # A partial index: without its condition, a unique one would refuse rows that upstream holds. Another one just holds more rows.
    if index_kind == "UNIQUE" and any(token.keyword == "WHERE" for token in cursor.rest):
        raise cursor.unexpected("an index without a condition")
    return parts


def _vector_parts(cursor: Cursor) -> tuple[IndexPart, ...]:
    """Take the column out of ``((VEC_COSINE_DISTANCE(`c`)))``: the index only has to exist for a later DROP."""
    inside = cursor.parenthesis()
    names = [token.text for token in inside.rest if token.kind == "quoted"]
    if len(names) != 1:
        raise inside.unexpected("one column")
    return (IndexPart(names[0]),)


def _add_foreign_key(draft: TableDraft, cursor: Cursor, name: str) -> None:
    """Add the index that TiDB makes for a foreign key if none begins with its columns; the key itself is checked upstream."""
    parts = parse_index_parts(cursor)
    cursor.expect("REFERENCES")
    skip_references(cursor)
    if not draft.covers(tuple(part.column for part in parts)) and name:
        draft.add_index(IndexDefinition(name, parts))
