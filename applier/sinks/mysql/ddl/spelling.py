"""Names of a statement as the sink spells them. Upstream's TiDB ignores the case of names; a server on Linux does not.

The names come from the sink's catalogue, not from the text: ``DROP TABLE IF EXISTS orders`` would keep ``Orders`` and succeed. A table
that does not exist keeps the statement's spelling, and so does the new name of a RENAME. Columns and indexes have no case anywhere.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlalchemy import Connection

from applier.ddl import Site, read_ddl
from applier.ddl.renaming import with_names
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.remedy import Remedy
from applier.mysql.names import namesakes

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
                remedy=Remedy("mysql.rename-tables", "Rename those that upstream does not have, then start the applier again"),
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
    return with_names(query, statement, sites, list(_names(sites, spelled)))


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
