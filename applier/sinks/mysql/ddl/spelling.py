"""Names of a statement as the sink spells them. Upstream's TiDB ignores the case of names; a server on Linux does not.

The names come from the sink's catalogue, not from the text: ``DROP TABLE IF EXISTS orders`` would keep ``Orders`` and succeed. A table
that does not exist keeps the statement's spelling, and so does the new name of a RENAME. Columns and indexes have no case anywhere.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlalchemy import Connection

from applier.ddl import DdlKind, Site, read_ddl
from applier.ddl.edit import Edit, edited
from applier.ddl.tokens import Token, scan
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.sinks.mysql.names import namesakes
from applier.sinks.mysql.quoting import quote_identifier

Spellings = Mapping[FoldedName, TableName]
"""What exists in the sink: tables, and schemas with table ''."""
NOTHING: Spellings = MappingProxyType({})


def spelled_in_sink(connection: Connection, ddl: DdlEvent) -> Spellings:
    """Find the names of a statement, and the event's own, in the sink. NeedsOperator if the sink has several of one name."""
    found = read_ddl(ddl)
    names = [ddl.name, *(site.name for site in (found[1] if found else ()))]
    spelled: dict[FoldedName, TableName] = {}
    for folded, candidates in namesakes(connection, [name for name in names if name.schema]).items():
        # Upstream the two are one. Which one the DDL means must not be guessed: DROP would drop the wrong one.
        if len(candidates) > 1:
            raise NeedsOperator(
                "the sink has several names that differ only in case; upstream they are one name",
                remedy="Drop or rename those that upstream does not have, then start the applier again",
                found=", ".join(sorted(map(str, candidates))),
                table=str(ddl.name),
                commit_ts=ddl.commit_ts,
                query=ddl.query,
            )
        spelled[folded] = candidates[0]
    return spelled


def respelled(query: str, ddl: DdlEvent, spelled: Spellings) -> str:
    """Return the statement with the sink's names in it; ``query`` is the text, whatever has been rewritten in it before."""
    found = read_ddl(_with_text(ddl, query)) if spelled else None
    if found is None:
        return query
    statement, sites = found
    # WITH orders AS (…) SELECT … FROM orders: the second orders is no table, even if the sink has one of that name.
    if statement.kind is DdlKind.CREATE_VIEW:
        own = _names_of_query(scan(query))
        sites = tuple(site for site in sites if site.schema is not None or site.name.table.casefold() not in own)
    names = list(_names(sites, spelled))
    edits = [edit for site, name in zip(sites, names, strict=True) for edit in _site_edits(site, name)]
    if statement.kind is DdlKind.CREATE_VIEW:
        edits += _qualifier_edits(query, sites, names)
    return edited(query, edits)


def _names_of_query(tokens: list[Token]) -> set[str]:
    """Return the names that a query gives to its own parts: WITH name AS (…)."""
    three = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return {one.text.casefold() for one, two, last in three if (two.keyword, last.kind) == ("AS", "(")}


def _with_text(ddl: DdlEvent, query: str) -> DdlEvent:
    return DdlEvent(commit_ts=ddl.commit_ts, schema=ddl.schema, table=ddl.table, query=query, ddl_type=ddl.ddl_type)


def _names(sites: tuple[Site, ...], spelled: Spellings) -> Iterator[TableName]:
    """Spell each name as it is at its turn: a list of RENAMEs takes names and frees them."""
    present = dict(spelled)
    renamed: FoldedName | None = None
    for site in sites:
        folded = site.name.fold()
        schema = spelled.get(folded.schema_name)
        as_written = TableName(schema.schema if schema else site.name.schema, site.name.table)
        # RENAME TABLE a TO A: the new spelling is what upstream asks for, so the sink's spelling of the old name must not replace it.
        if site.is_new_name and renamed is not None:
            present.pop(renamed, None)
            name = present.setdefault(folded, as_written)
        else:
            name = present.get(folded, as_written)
        renamed = folded
        yield name


def _site_edits(site: Site, name: TableName) -> Iterator[Edit]:
    for token, spelling in ((site.schema, name.schema), (site.table, name.table)):
        if token is not None and token.text != spelling:
            yield Edit(token.start, token.end, quote_identifier(spelling))


def _qualifier_edits(query: str, sites: tuple[Site, ...], names: list[TableName]) -> Iterator[Edit]:
    """Spell the qualifiers of columns in a view's query as the tables and aliases are spelled: servers compare them like tables."""
    tables = {site.name.table.casefold(): name.table for site, name in zip(sites[1:], names[1:], strict=True) if site.alias is None}
    tables |= {site.alias.text.casefold(): site.alias.text for site in sites if site.alias is not None}
    schemas = {site.name.schema.casefold(): name.schema for site, name in zip(sites, names, strict=True)}
    taken = {token.start for site in sites for token in (site.schema, site.table, site.alias) if token is not None}
    tokens = scan(query)
    # Servers compare the qualifier of a column as they compare table names: SELECT Orders.id FROM orders fails on Linux.
    for at, token in enumerate(tokens[:-1]):
        if token.kind in {"word", "quoted"} and tokens[at + 1].kind == "." and token.start not in taken:
            spelling = (schemas if _is_schema(tokens, at) else tables).get(token.text.casefold(), token.text)
            if spelling != token.text:
                yield Edit(token.start, token.end, quote_identifier(spelling))


def _is_schema(tokens: list[Token], at: int) -> bool:
    return at + 3 < len(tokens) and tokens[at + 3].kind == "."
