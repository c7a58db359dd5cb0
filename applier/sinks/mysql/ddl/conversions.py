"""Refuses a DDL by which the sink's server may make other values of old rows than upstream's: the rows are asked before the intent."""

from typing import Final

from sqlalchemy import Connection

from applier.ddl.conversion_rule import Certainty
from applier.ddl.old_values import OldColumn, Question, is_made_a_point, refuse_other_values
from applier.ddl.zone_use import TIME_ZONE
from applier.model.events import DdlEvent
from applier.mysql.session_variables import zone_on_server
from applier.sinks.mysql.ddl.old_rows import OldTable
from applier.sinks.mysql.ddl.plain_values import once_in_zone, plain_condition
from applier.sinks.mysql.ddl.server import kind_of

_NEVER: Final = "FALSE"


def refuse_other_conversions(connection: Connection, ddl: DdlEvent, old: OldTable) -> None:
    """Raise NeedsOperator if old rows have values that the server may convert otherwise than upstream's. ``ddl`` has its zone."""
    zone = zone_on_server(str(dict(ddl.session).get(TIME_ZONE, "")))

    def columns() -> dict[str, OldColumn]:
        found = old.columns
        return {name: OldColumn(name=found[name].name, type=kind, nullable=found[name].nullable) for name, kind in old.types.items()}

    def matters(question: Question) -> bool:
        if question.of_nulls:
            return old.has(question.column, "{column} IS NULL")
        certain = _certain(question, zone)
        if not question.column or certain is None:
            return old.holds(question.column)
        return old.has(question.column, f"{{column}} IS NOT NULL AND NOT COALESCE({certain}, FALSE)")

    refuse_other_values(ddl, lambda: kind_of(connection), columns, matters)


def _certain(question: Question, zone: str) -> str | None:
    """Return the condition for values of which each server makes the same; None: there are none."""
    old, new = question.old, question.new
    if old is None or new is None:
        return None
    conditions = []
    if question.rule.certainty is not Certainty.EXACT:
        plain = question.rule.plain and plain_condition(question.rule.plain, old, new, zone)
        if not plain:
            return None
        conditions.append(plain)
    if is_made_a_point(old, new):
        conditions.append(once_in_zone(zone) if zone else _NEVER)
    return " AND ".join(f"({condition})" for condition in conditions)
