"""Gives the tables in a statement other names: edits at the positions of the names, every other byte stays. Pure.

``renamed`` is for routes, where the names are another replica's choice: it proves that nothing but names has changed, by reading the new
text again. ``with_names`` is the editing alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from applier.ddl.names import DdlKind, DdlStatement, Site, read_ddl
from applier.ddl.tokens import DdlSyntaxError, Token, scan
from applier.ddl.tree import Edit, edited, quoted_name
from applier.model.events import DdlEvent, FoldedName, TableName

NameOf = Callable[[TableName], TableName]


def renamed(ddl: DdlEvent, name_of: NameOf) -> DdlEvent | None:
    """Return the DDL with other names for its tables (a schema comes as table ''); None if that cannot be proven to change names only."""
    found = read_ddl(ddl)
    if found is None:
        return None
    statement, sites = found
    own = name_of(ddl.name)
    names = [name_of(site.name) for site in sites]
    if _is_ambiguous(statement, sites, names):
        return None
    edits = list(name_edits(ddl.query, statement, sites, names, own.schema))
    there = replace(ddl, schema=own.schema, table=own.table, query=edited(ddl.query, edits))
    again = read_ddl(there)
    is_same = again is not None and again[0] == _mapped(statement, name_of) and _is_text_of(there.query, ddl.query, edits)
    return there if is_same else None


def _is_ambiguous(statement: DdlStatement, sites: Sequence[Site], names: Sequence[TableName]) -> bool:
    """Return whether a column may be of a table or of a part: WITH a AS (SELECT a.id FROM a) SELECT a.id FROM a."""
    parts = {part.casefold() for part in statement.parts}
    pairs = list(zip(sites, names, strict=True))[1:]
    return any(site.alias is None and site.name.table.casefold() in parts and site.name != name for site, name in pairs)


def _mapped(statement: DdlStatement, name_of: NameOf) -> DdlStatement:
    return replace(
        statement,
        schema=name_of(TableName(statement.schema, "")).schema if statement.schema else "",
        needs=tuple(map(name_of, statement.needs)),
        creates=tuple(map(name_of, statement.creates)),
        drops=tuple(map(name_of, statement.drops)),
        renames=tuple((name_of(old), name_of(new)) for old, new in statement.renames),
        mentions=tuple(dict.fromkeys(map(name_of, statement.mentions))),
    )


def _is_text_of(text: str, before: str, edits: Sequence[Edit]) -> bool:
    """Return whether the tokens of a text equal the tokens of the text before, with the edits applied."""
    by_place = {edit.start: edit.text for edit in edits}
    try:
        pieces = [scan(by_place[token.start]) if token.start in by_place else [token] for token in scan(before)]
        return [token[:2] for piece in pieces for token in piece] == [token[:2] for token in scan(text)]
    except DdlSyntaxError:
        return False


def with_names(query: str, statement: DdlStatement, sites: Sequence[Site], names: Sequence[TableName]) -> str:
    """Return a statement with other names at its sites. Where no schema is written, none is added."""
    return edited(query, name_edits(query, statement, sites, names, None))


def name_edits(
    query: str, statement: DdlStatement, sites: Sequence[Site], names: Sequence[TableName], default_schema: str | None
) -> Iterator[Edit]:
    """Yield the edits that give the sites other names. ``default_schema``: that of names without one; None: they get none either."""
    for site, name in zip(sites, names, strict=True):
        yield from _site_edits(site, name, default_schema)
    if statement.kind is DdlKind.CREATE_VIEW:
        yield from _qualifier_edits(query, sites, names)


def _site_edits(site: Site, name: TableName, default_schema: str | None) -> Iterator[Edit]:
    schema, table = site.schema, site.table
    if schema is None and table is not None and default_schema not in {None, name.schema}:
        yield Edit(table.start, table.end, f"{quoted_name(name.schema)}.{quoted_name(name.table)}")
        return
    for token, spelling in ((schema, name.schema), (table, name.table)):
        if token is not None and token.text != spelling:
            yield Edit(token.start, token.end, quoted_name(spelling))


def _qualifier_edits(query: str, sites: Sequence[Site], names: Sequence[TableName]) -> Iterator[Edit]:
    """Name the tables and schemas before columns in a view's query as the tables are named: servers compare them like tables."""
    plain = [(site, name) for site, name in zip(sites[1:], names[1:], strict=True) if site.alias is None]
    tables = {site.name.table.casefold(): name for site, name in plain}
    whole = {site.name.fold(): name for site, name in plain}
    schemas = {site.name.schema.casefold(): name.schema for site, name in zip(sites, names, strict=True)}
    aliases = {site.alias.text.casefold(): site.alias.text for site in sites if site.alias is not None}
    taken = {token.start for site in sites for token in (site.schema, site.table, site.alias) if token is not None}
    tokens = scan(query)
    # Servers compare the qualifier of a column as they compare table names: SELECT Orders.id FROM orders fails on Linux.
    for at, token in enumerate(tokens[:-1]):
        if not token.is_name or tokens[at + 1].kind != "." or token.start in taken:
            continue
        if _is_before(tokens, at, 3):  # schema.table.column
            one = whole.get(TableName(token.text, tokens[at + 2].text).fold())
            spelling = one.schema if one is not None else schemas.get(token.text.casefold(), token.text)
        else:
            one = _table_at(tokens, at, tables, whole)
            spelling = one.table if one is not None else aliases.get(token.text.casefold(), token.text)
        if spelling != token.text:
            yield Edit(token.start, token.end, quoted_name(spelling))


def _table_at(tokens: Sequence[Token], at: int, tables: dict[str, TableName], whole: dict[FoldedName, TableName]) -> TableName | None:
    if at >= 2 and tokens[at - 1].kind == ".":
        return whole.get(TableName(tokens[at - 2].text, tokens[at].text).fold())
    return tables.get(tokens[at].text.casefold())


def _is_before(tokens: Sequence[Token], at: int, dot: int) -> bool:
    return at + dot < len(tokens) and tokens[at + dot].kind == "."
