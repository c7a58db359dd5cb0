"""Reads MySQL's DDL, as TiDB prints it: what a statement names, what it changes, and which part of it a sink runs. Pure.

One tokenizer (``tokens``), one cursor and one parser turn a statement into a tree; every reader asks the tree. Read ``parser`` first: it
says who asks what, and why no library does it. Then ``tree`` and, for the ledger's identities, this file. Imports ``model`` only.

A text that is not wholly understood names None, which everywhere means "it may touch everything". Forms: open_protocol.md 2.12, the
statements that TiDB prints; unqualified names belong to the event's schema. The sink's dialect renders a statement, not this package.
"""

from applier.ddl.names import DdlKind, DdlStatement, Site, parse_ddl, read_ddl
from applier.ddl.policy import ddl_type_name
from applier.model.events import DdlEvent, DdlIdentity, FoldedName

__all__ = ["DdlKind", "DdlStatement", "Site", "ddl_type_name", "identity", "parse_ddl", "read_ddl", "same_ddl", "touches"]


def touches(ddl: DdlEvent) -> frozenset[FoldedName] | None:
    """Name what a DDL touches: the event's own table and every table in the statement; None: not understood, so everything.

    A schema DDL touches (schema, ''), which represents all tables of the schema.
    """
    statement = parse_ddl(ddl)
    if statement is None:
        return None
    names = {ddl.name.fold(), *(name.fold() for name in (*statement.names, *statement.words))}
    if statement.schema:
        names.add(FoldedName(statement.schema.casefold(), ""))
    return frozenset(names - {FoldedName("", "")})


def identity(ddl: DdlEvent) -> DdlIdentity:
    """Return what makes a DDL the same on every stream, in every replay and in another producer's words."""
    return DdlIdentity(ddl.commit_ts, ddl.name.fold(), touches(ddl))


def same_ddl(one: DdlIdentity, other: DdlIdentity) -> bool:
    """Return whether two identities mean one DDL: the names touched count only where both statements were understood.

    One may name fewer than the other: an older reader missed tables in the queries of views.
    """
    # So the parser may learn new forms: what an old ledger has stored as None is still the same DDL. Names that were once understood must
    # never change otherwise: tests/data/ddl_identities.jsonl holds them.
    if (one.ts, one.name) != (other.ts, other.name):
        return False
    if one.touches is None or other.touches is None:
        return True
    fewer, more = sorted((one.touches, other.touches), key=len)
    # DROP TABLE a and RENAME TABLE b TO a, of two topics at one ts, are two DDLs. A view has a table beside it.
    return fewer == more or (len(fewer) > 1 and fewer < more)
