"""Refuses a DDL that numbers existing rows, or computes values for them that another server computes otherwise."""

from typing import Any

from applier.ddl.old_values import OWN_VALUES, own_values
from applier.ddl.remedy import BY_HAND
from applier.model.errors import NeedsOperator
from applier.sinks.mysql.ddl.old_rows import OldTable


def refuse_own_values(old: OldTable) -> None:
    """Raise NeedsOperator if the DDL's table holds rows, and the DDL gives them values that may not be upstream's."""
    ddl = old.ddl
    column = own_values(ddl.query, lambda: old.types)
    if column and old.holds():
        facts: dict[str, Any] = {"column": column, "table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
        raise NeedsOperator(OWN_VALUES, remedy=BY_HAND, **facts)
