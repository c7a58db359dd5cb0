"""Gives a schema upstream's default character set and collation: its tables without their own take them over.

``CREATE DATABASE`` on a schema that exists answers 1007, or a note, whatever its defaults are. Under ``utf8mb4_general_ci`` the keys
``bob`` and ``Bob`` are the same row; upstream's TiDB gives a schema ``utf8mb4_bin`` unless the statement says otherwise.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.charset import TIDB_DEFAULTS
from applier.ddl.parser import parse
from applier.ddl.tokens import Token, as_tidb_reads
from applier.ddl.tree import SchemaStatement
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent
from applier.mysql.errors import code_of
from applier.mysql.names import TABLES_OF_SCHEMA, quote_identifier, schema_spelling
from applier.mysql.session import execute_text, transaction

SCHEMA_EXISTS: Final = 1007
_NAME: Final = re.compile(r"[a-z0-9_]+")
_DEFAULT: Final = text(
    "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = :schema"
)


class SchemaDefault(NamedTuple):
    """A character set and a collation. The collation '' is the character set's default, which is the same upstream and in the sink."""

    character_set: str
    collation: str = ""

    def is_same_as(self, other: "SchemaDefault") -> bool:
        """Return whether both are the same, whichever name of utf8mb3 they use."""
        mine, its = self.spelled(), other.spelled()
        return mine.character_set == its.character_set and mine.collation in {"", its.collation}

    def spelled(self) -> "SchemaDefault":
        """Return it under the newer names of utf8mb3."""
        names = (name.casefold() for name in self)
        return SchemaDefault(*("utf8mb3" + name[4:] if name == "utf8" or name.startswith("utf8_") else name for name in names))


def read_schema_default(connection: Connection, schema: str) -> SchemaDefault:
    """Read the default of a schema that exists, spelled as the server spells it."""
    return SchemaDefault(*map(str, connection.execute(_DEFAULT, {"schema": schema}).one()))


@contextmanager
def schema_as_upstreams(connection: Connection, ddl: DdlEvent, sent: str) -> Iterator[None]:
    """Run CREATE DATABASE, ``sent`` to the server, in the block. A schema that exists gets upstream's default if it is empty.

    NeedsOperator if it holds tables and has another default. Other DDLs run unchanged.
    """
    statement = parse_ddl(ddl)
    if statement is None or statement.kind is not DdlKind.CREATE_SCHEMA:
        yield
        return
    try:
        yield
    except Exception as error:
        if code_of(error) != SCHEMA_EXISTS:
            raise
    with transaction(connection):
        schema = schema_spelling(connection, statement.schema) or statement.schema
        found = read_schema_default(connection, schema)
        is_empty = connection.execute(TABLES_OF_SCHEMA, {"schema": schema}).first() is None
    wanted = default_of(sent)
    if wanted.is_same_as(found):
        return
    change = f"ALTER DATABASE {quote_identifier(schema)} CHARACTER SET {wanted.character_set}"
    change += f" COLLATE {wanted.collation}" if wanted.collation else ""
    # ALTER DATABASE changes only tables that come later: existing ones would keep keys that treat Bob as bob.
    if not is_empty:
        raise _differs(ddl, schema, found, change)
    execute_text(connection, change)


def default_of(query: str) -> SchemaDefault:
    """Return what a CREATE DATABASE gives its schema upstream."""
    # /*!40100 DEFAULT CHARACTER SET … */ is code for TiDB, and SHOW CREATE DATABASE prints it so.
    tree = parse(as_tidb_reads(query))
    first, last = tree.node.options if isinstance(tree.node, SchemaStatement) else (0, -1)
    tokens = tree.tokens[first : last + 1]
    words = [token.keyword for token in tokens]
    character_set = collation = ""
    for at, word in enumerate(words):
        if word in {"CHARSET", "SET"}:
            character_set = _value(tokens, at)
        elif word == "COLLATE":
            collation = _value(tokens, at)
    # COLLATE alone implies its character set, which is the first word of its name on every server.
    if not character_set:
        character_set = collation.partition("_")[0] if collation else "utf8mb4"
    return SchemaDefault(character_set, collation or TIDB_DEFAULTS.get(character_set, ""))


def _value(tokens: Sequence[Token], at: int) -> str:
    at += 2 if tokens[at + 1 : at + 2] and tokens[at + 1].kind == "=" else 1
    name = tokens[at].text.strip("'\"").casefold() if at < len(tokens) else ""
    return name if _NAME.fullmatch(name) else ""


def _differs(ddl: DdlEvent, schema: str, found: SchemaDefault, change: str) -> NeedsOperator:
    return NeedsOperator(
        "the schema exists in the sink and holds tables, and its character set or collation differs from upstream's",
        remedy=Remedy(
            "mysql.correct-collations",
            f"Correct the collations of its tables, then run this statement in the sink: {change}; and start the applier again",
        ),
        schema=schema,
        found=f"{found.character_set} {found.collation}",
        commit_ts=ddl.commit_ts,
        query=ddl.query,
    )
