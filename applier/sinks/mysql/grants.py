"""Which privileges the session's user has: what a user may not see, information_schema leaves out without a word."""

import re
from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection, text

from applier.model.events import TableName

_GRANTS: Final = text("SHOW GRANTS")  # with those of the roles that are active
_VERSION: Final = text("SELECT VERSION()")
_GRANT: Final = re.compile(
    r"(?P<verb>GRANT|REVOKE) (?P<privileges>[A-Z ,]+?) ON (?P<place>(?:\*|`(?:[^`]|``)*`)\.(?:\*|`(?:[^`]|``)*`)) (?:TO|FROM) "
)
_ALL: Final = frozenset({"ALL PRIVILEGES", "ALL"})


class TriggerVisibility:
    """Whether triggers of a table can be seen: that takes the privilege TRIGGER (TiDB has neither triggers nor a need to look)."""

    def __init__(self, grants: Iterable[str], *, has_triggers: bool = True) -> None:
        self._has_triggers = has_triggers
        self._granted: list[re.Pattern[str]] = []
        self._revoked: list[re.Pattern[str]] = []
        for match in filter(None, map(_GRANT.match, grants)):
            privileges = {privilege.strip() for privilege in match["privileges"].split(",")}
            if "TRIGGER" in privileges or privileges & _ALL:
                (self._granted if match["verb"] == "GRANT" else self._revoked).append(_pattern(match["place"]))

    @classmethod
    def of(cls, connection: Connection) -> "TriggerVisibility":
        """Ask the server what the session's user may do."""
        # TiDB has no triggers, and no privilege TRIGGER that would show them.
        has_triggers = "tidb" not in str(connection.scalar(_VERSION)).casefold()
        return cls(map(str, connection.scalars(_GRANTS)), has_triggers=has_triggers)

    def shows(self, table: TableName) -> bool:
        """Return whether the triggers of the table would be listed."""
        place = f"{table.schema}\0{table.table}".casefold()
        is_granted = any(pattern.fullmatch(place) for pattern in self._granted)
        return not self._has_triggers or (is_granted and not any(pattern.fullmatch(place) for pattern in self._revoked))


def _pattern(place: str) -> re.Pattern[str]:
    r"""Compile ``*.*``, ```sch\_ema`.*`` or ```schema`.`table```. In a schema's name ``_`` and ``%`` are wild unless escaped."""
    schema, _, table = place.rpartition(".*") if place.endswith(".*") else place.rpartition(".`")
    schema_text = ".*" if schema == "*" else _wild(schema[1:-1].replace("``", "`").casefold())
    table_text = ".*" if place.endswith(".*") else re.escape(table[:-1].replace("``", "`").casefold())
    return re.compile(f"{schema_text}\0{table_text}", re.DOTALL)


def _wild(name: str) -> str:
    wild = {"_": ".", "%": ".*"}
    return "".join(wild.get(piece) or re.escape(piece[-1]) for piece in re.findall(r"\\[_%\\]|.", name, re.DOTALL))
