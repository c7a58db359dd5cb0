"""Privileges: which ones the session's user has, how a GRANT is written, and the GRANTs of ``sql/grants*.sql`` for a replica.

information_schema silently skips what a user may not see.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, text

from applier.database.carried_files import read_text
from applier.model.events import TableName
from applier.mysql.session_variables import version_of

_GRANTS: Final = text("SHOW GRANTS")  # with the privileges of active roles
_GRANT: Final = re.compile(
    r"(?P<verb>GRANT|REVOKE) (?P<privileges>[A-Z_ ,]+?) ON (?P<place>(?:\*|`(?:[^`]|``)*`|[^\s`.*]+)\.(?:\*|`(?:[^`]|``)*`|[^\s`.*]+))"
    r" (?:TO|FROM) "
)
"""TiDB writes names without quotes, and no blank after a comma."""
_QUOTED: Final = re.compile("`(?:[^`]|``)*`")
_ANY: Final = ".*"
_ALL: Final = frozenset({"ALL PRIVILEGES", "ALL"})


class Grants:
    """The privileges of the session's user, including its active roles."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._entries = [
            (
                match["verb"] == "GRANT",
                frozenset(privilege.strip() for privilege in match["privileges"].split(",")),
                _pattern(match["place"]),
            )
            for match in filter(None, map(_GRANT.match, lines))
        ]

    @classmethod
    def of(cls, connection: Connection) -> "Grants":
        """Ask the server."""
        return cls(map(str, connection.scalars(_GRANTS)))

    def allows(self, privilege: str, table: TableName) -> bool:
        """Return whether the user has a privilege on a table; an empty name of a table asks for all tables of the schema."""
        place = f"{table.schema}\0{table.table}".casefold()
        found = {
            is_grant for is_grant, names, pattern in self._entries if (privilege in names or names & _ALL) and pattern.fullmatch(place)
        }
        return True in found and False not in found

    def allows_somewhere(self, privilege: str) -> bool:
        """Return whether the user was granted a privilege on anything."""
        return any(is_grant and (privilege in names or names & _ALL) for is_grant, names, _ in self._entries)

    def allows_on_a_table(self, privilege: str, schema: str) -> bool:
        """Return whether the user was granted a privilege on a single table of the schema."""
        return any(
            is_grant
            and (privilege in names or names & _ALL)
            and not pattern.pattern.endswith(f"\0{_ANY}")
            and re.fullmatch(pattern.pattern.partition("\0")[0], schema.casefold())
            for is_grant, names, pattern in self._entries
        )


EVERYWHERE: Final = TableName("", "")
SHOWS_KEYS: Final = ("REFERENCES", "INSERT", "UPDATE", "DELETE", "ALTER", "INDEX", "DROP", "CREATE")
"""Any of them shows a table and its foreign keys. SELECT does not show the keys on MariaDB, and nothing says that something is hidden."""


def shows_all_tables(grants: Grants) -> bool:
    """Return whether the server shows the user every table: a privilege on all schemas does."""
    return any(grants.allows(known, EVERYWHERE) for known in ("SELECT", *SHOWS_KEYS))


def grant(privileges: Iterable[str], schema: str, user: str, host: str) -> str:
    """Write the GRANT of privileges on all tables of a schema; '' for all schemas."""
    return f"GRANT {', '.join(privileges)} ON {all_tables(schema) if schema else '*.*'} TO {account(user, host)}"


def all_tables(schema: str) -> str:
    """Spell all tables of a schema for a GRANT, in which neither ``_`` nor ``%`` is wild."""
    escaped = schema.replace("`", "``").replace("_", "\\_").replace("%", "\\%")
    return f"`{escaped}`.*"


def account(user: str, host: str) -> str:
    """Spell an account. Its parts may hold quotes."""
    return "@".join("'" + part.replace("\\", "\\\\").replace("'", "''") + "'" for part in (user, host))


def account_of(current_user: str) -> tuple[str, str]:
    """Return user and host of what CURRENT_USER() shows. A user's name may hold an ``@``, a host's cannot."""
    user, _, host = current_user.rpartition("@")
    return user, host


class TriggerVisibility:
    """Whether triggers of a table can be seen: that takes the privilege TRIGGER (TiDB has neither triggers nor a need to look)."""

    def __init__(self, grants: Iterable[str], *, has_triggers: bool = True) -> None:
        self._has_triggers, self._grants = has_triggers, Grants(grants)

    @classmethod
    def of(cls, connection: Connection) -> "TriggerVisibility":
        """Ask the server what the session's user may do."""
        # TiDB has no triggers, and no privilege TRIGGER that would show them.
        has_triggers = "tidb" not in version_of(connection)
        return cls(map(str, connection.scalars(_GRANTS)), has_triggers=has_triggers)

    def shows(self, table: TableName) -> bool:
        """Return whether the triggers of the table would be listed."""
        return not self._has_triggers or self._grants.allows("TRIGGER", table)


def _pattern(place: str) -> re.Pattern[str]:
    r"""Compile ``*.*``, ```sch\_ema`.*`` or ```schema`.`table```. In a schema's name ``_`` and ``%`` are wild unless escaped."""
    schema, table = _parts(place)
    schema_text = ".*" if schema == "*" else _wild(_unquoted(schema).casefold())
    table_text = _ANY if table == "*" else re.escape(_unquoted(table).casefold())
    return re.compile(f"{schema_text}\0{table_text}", re.DOTALL)


def _parts(place: str) -> tuple[str, str]:
    """Divide at the dot between schema and table. A quoted name may hold dots and quotes."""
    if place.endswith(".*"):
        return place[:-2], "*"
    match = _QUOTED.match(place)
    schema = match[0] if match else place.partition(".")[0]
    return schema, place[len(schema) + 1 :]


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _wild(name: str) -> str:
    wild = {"_": ".", "%": ".*"}
    return "".join(wild.get(piece) or re.escape(piece[-1]) for piece in re.findall(r"\\[_%\\]|.", name, re.DOTALL))


EXAMPLE_USER: Final = re.compile(r"'(\w+)'@'%'")
EXAMPLE_SCHEMA: Final = "shop"
EXAMPLE_BOOKKEEPING: Final = "applier"
NOTE: Final = "-- `shop` represents each replicated schema: name yours with --schema."


def grants_of(file: str, *, user: str, host: str, schemas: Sequence[str], bookkeeping: str) -> Iterable[str]:
    """Yield the lines of a file of ``sql/`` with these names instead of the example's. No ``schemas``: the example stays."""
    return lines_of(read_text(f"sql/{file}"), user=user, host=host, schemas=schemas, bookkeeping=bookkeeping)


def lines_of(text: str, *, user: str, host: str, schemas: Sequence[str], bookkeeping: str) -> Iterable[str]:
    """Yield the lines of ``text``, as ``grants_of`` does."""
    if not schemas and f" {EXAMPLE_SCHEMA}.*" in text:
        yield NOTE
    for line in text.splitlines():
        if line.startswith("--"):
            yield line
            continue
        named = EXAMPLE_USER.sub(lambda found: account(user or found[1], host), line)
        if bookkeeping != EXAMPLE_BOOKKEEPING:
            named = named.replace(f" {EXAMPLE_BOOKKEEPING}.* ", f" {all_tables(bookkeeping)} ")
        is_repeated = f" {EXAMPLE_SCHEMA}.* " in named and schemas
        yield from (named.replace(f" {EXAMPLE_SCHEMA}.* ", f" {all_tables(schema)} ") for schema in schemas) if is_repeated else [named]
