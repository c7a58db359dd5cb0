"""The foreign keys that upstream's statements have made: for sinks whose tables have none. Pure.

A key that cannot be followed stays: it is better to name one that was dropped than to miss one.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from applier.ddl.names import parse_ddl
from applier.ddl.statement import DdlKind
from applier.model.events import DdlEvent, FoldedName, TableName

_NAME: Final = r"(?:`(?:[^`]|``)+`|[^\s`.,()]+)"
_KEY: Final = re.compile(
    rf"(?:CONSTRAINT\s+(?P<name>{_NAME})\s+)?(?:FOREIGN\s+KEY\s*(?P<index>{_NAME})?\s*\([^)]*\)\s*)?"
    rf"REFERENCES\s+(?:(?P<schema>{_NAME})\s*\.\s*)?(?P<table>{_NAME})\s*(?:\([^)]*\))?(?P<rest>[^,()]*)",
    re.IGNORECASE,
)
_DROP: Final = re.compile(rf"DROP\s+(?:FOREIGN\s+KEY|CONSTRAINT)\s+(?:IF\s+EXISTS\s+)?(?P<name>{_NAME})", re.IGNORECASE)
_ACTION: Final = r"ON\s+{}\s+(CASCADE|SET\s+NULL|SET\s+DEFAULT|RESTRICT|NO\s+ACTION)"
_ON_DELETE: Final = re.compile(_ACTION.format("DELETE"), re.IGNORECASE)
_ON_UPDATE: Final = re.compile(_ACTION.format("UPDATE"), re.IGNORECASE)


class StatedKey(NamedTuple):
    """A foreign key of ``child`` as a statement has made it. ``name`` is '' if the statement gives none."""

    name: str
    child: FoldedName
    parent: FoldedName
    on_delete: str
    on_update: str


class StatedKeys:
    """The keys that are left after some statements, in their order."""

    def __init__(self, statements: Iterable[DdlEvent] = ()) -> None:
        self._keys: dict[FoldedName, list[StatedKey]] = {}
        for ddl in statements:
            self.add(ddl)

    def all(self) -> list[StatedKey]:
        """Return them all."""
        return [key for keys in self._keys.values() for key in keys]

    def add(self, ddl: DdlEvent) -> bool:
        """Take the next statement; return whether it may have changed a key."""
        words = ddl.query.casefold()
        is_about_keys = "references" in words or "drop" in words or "rename" in words
        if not is_about_keys:
            return False
        statement = parse_ddl(ddl)
        if statement is not None:
            if statement.kind is DdlKind.DROP_SCHEMA:
                self._keys = {child: keys for child, keys in self._keys.items() if child.schema != statement.schema.casefold()}
            for table_name in statement.drops:
                self._keys.pop(table_name.fold(), None)
            self._rename({old.fold(): new.fold() for old, new in statement.renames})
        table = ddl.name.fold()
        for dropped in _DROP.finditer(ddl.query):
            name = _plain(dropped["name"])
            self._keys[table] = [key for key in self._keys.get(table, ()) if key.name.casefold() != name.casefold()]
        found = [_key_of(ddl, match) for match in _KEY.finditer(ddl.query)]
        if found:
            self._keys.setdefault(table, []).extend(found)
        return True

    def _rename(self, names: dict[FoldedName, FoldedName]) -> None:
        if names:
            keys = [key._replace(child=names.get(key.child, key.child), parent=names.get(key.parent, key.parent)) for key in self.all()]
            self._keys = {}
            for key in keys:
                self._keys.setdefault(key.child, []).append(key)


def _key_of(ddl: DdlEvent, match: "re.Match[str]") -> StatedKey:
    schema = ddl.schema if match["schema"] is None else _plain(match["schema"])
    actions = [found[1].upper() if (found := rule.search(match["rest"])) else "NO ACTION" for rule in (_ON_DELETE, _ON_UPDATE)]
    name = _plain(match["name"] or "")
    return StatedKey(name, ddl.name.fold(), TableName(schema, _plain(match["table"])).fold(), *(" ".join(rule.split()) for rule in actions))


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
