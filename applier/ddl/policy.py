"""What happens to a DDL of each type: the operator's policy, and ours where there is none."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from applier.ddl import ddl_type_name
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent

_NO_ROWS: Final = "the rows that it brings back are not in the stream"
_BESIDE: Final = "the rows come beside the stream, by BR or IMPORT INTO"

STOPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "recover_table": _NO_ROWS,
        "recover_schema": _NO_ROWS,
        "flashback_cluster": _NO_ROWS,
        "alter_table_mode": _BESIDE,
        "refresh_meta": _BESIDE,
    }
)
"""Types after which the sink would silently lack rows, and why (open_protocol.md 2.12)."""

SKIPPED: Final = frozenset(
    {
        "lock_table", "unlock_table", "repair_table", "update_tiflash_status", "create_sequence", "alter_sequence", "drop_sequence",
        "create_placement_policy", "alter_placement_policy", "drop_placement_policy", "alter_partition_placement",
        "alter_partition_attributes", "alter_stats_options", "create_resource_group", "alter_resource_group", "drop_resource_group",
        "schema_read_only",
    }
)  # fmt: skip
"""Types that change neither a table's definition nor a row. TiCDC sends none of them."""


def default_policy(name: str) -> str:
    """Return what happens to a type that the operator has not set."""
    if name in STOPS:
        return "stop"
    return "skip" if name in SKIPPED else "apply"


def is_skipped(ddl: DdlEvent, policies: Mapping[str, str]) -> bool:
    """Return whether a DDL is skipped (else it is applied); NeedsOperator if its type, or the filter and routes, stop the applier."""
    # A type that a later TiDB has is called type_<code>, and can be set like any other.
    name = ddl_type_name(ddl.ddl_type)
    policy = policies.get(name, default_policy(name))
    if ddl.left_out or policy == "skip":
        return True
    if ddl.refusal is not None:
        raise NeedsOperator(
            f"{ddl.refusal.why}: {ddl.query}",
            remedy=ddl.refusal.remedy,
            kind="selection",
            table=str(ddl.name),
            commit_ts=ddl.commit_ts,
        )
    if policy == "stop":
        raise _stopped(ddl, name, is_ours=name not in policies)
    return False


def _stopped(ddl: DdlEvent, name: str, *, is_ours: bool) -> NeedsOperator:
    facts = {"table": str(ddl.name), "commit_ts": ddl.commit_ts}
    if is_ours:
        # "apply" is no remedy: no other server has these statements.
        return NeedsOperator(
            f"a DDL of type {name} stops the applier, because {STOPS[name]}: {ddl.query}",
            remedy="Copy the rows from upstream into the sink, then skip the DDL with `applier ddl skip --ts … --table …`."
            " Or start again from a dump (README)",
            **facts,
        )
    return NeedsOperator(
        f"a DDL of type {name} stops the applier by policy: {ddl.query}",
        remedy=f'Set {name} = "apply" under [ddl], or "skip" after you have made its change in the sink (schema and rows)',
        **facts,
    )
