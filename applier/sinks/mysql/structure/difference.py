"""Names the first difference between two structures of a table, for a message: where it is, and both sides."""

from collections.abc import Iterable
from typing import Any

from applier.sinks.mysql.structure.model import ColumnStructure, IndexStructure, TableStructure

_FACTS = ("engine", "collation", "options", "comment", "foreign_keys", "checks", "partitioning", "triggers")


def difference(present: TableStructure, made: TableStructure) -> str | None:
    """Return how an existing table differs from the table that a statement makes; None if it does not."""
    if present == made:
        return None
    if present.kind != made.kind:
        return f"the sink has a {present.kind}, the statement makes a {made.kind}"
    of_parts = _of_named("column", present.columns, made.columns) or _of_named("index", present.indexes, made.indexes)
    if of_parts is not None:
        return of_parts
    for fact in _FACTS:
        has, makes = getattr(present, fact), getattr(made, fact)
        if has != makes:
            return f"{fact.replace('_', ' ')}: the sink has {_shown(has)}, the statement makes {_shown(makes)}"
    # All named parts are equal and the structures are not: only the order is left.
    return "the order of the columns differs"


def _of_named(
    what: str, present: Iterable[ColumnStructure] | Iterable[IndexStructure], made: Iterable[ColumnStructure] | Iterable[IndexStructure]
) -> str | None:
    have, want = {one.name.casefold(): one for one in present}, {one.name.casefold(): one for one in made}
    for name, one in want.items():
        if name not in have:
            return f"{what} {one.name} is missing in the sink"
        if have[name] != one:
            return f"{what} {one.name}: the sink has {_worded(have[name], one)}, the statement makes {_worded(one, have[name])}"
    for name, extra in have.items():
        if name not in want:
            return f"only the sink has {what} {extra.name}"
    return None


def _worded(one: ColumnStructure | IndexStructure, other: ColumnStructure | IndexStructure) -> str:
    """Show the facts in which they differ."""
    names = [name for name in one.__slots__ if getattr(one, name) != getattr(other, name, None)]
    return ", ".join(f"{name} {_shown(getattr(one, name))}" for name in names)


def _shown(value: Any) -> str:
    """Show a fact for people."""
    match value:
        case None | "" | ():
            return "none"
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(_shown, value))
        case _ if hasattr(value, "__slots__") and not isinstance(value, str) and len(value.__slots__) > 1:
            facts = {name: getattr(value, name) for name in value.__slots__}
            return "(" + ", ".join(f"{name} {_shown(fact)}" for name, fact in facts.items() if fact not in (None, "", ())) + ")"
        case _:
            return str(value)
