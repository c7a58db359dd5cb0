"""What happens to a DDL of each type: the operator's policy, or the default.

Names of the DDL types: TiDB's ActionType codes in snake case, as policies and messages call them (open_protocol.md 2.12).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent
from applier.model.failure import FailureKind

DDL_TYPE_NAMES: Mapping[int, str] = MappingProxyType(
    {
        0: "none",
        1: "create_schema",
        2: "drop_schema",
        3: "create_table",
        4: "drop_table",
        5: "add_column",
        6: "drop_column",
        7: "add_index",
        8: "drop_index",
        9: "add_foreign_key",
        10: "drop_foreign_key",
        11: "truncate_table",
        12: "modify_column",
        13: "rebase_auto_id",
        14: "rename_table",
        15: "set_default_value",
        16: "shard_row_id",
        17: "modify_table_comment",
        18: "rename_index",
        19: "add_table_partition",
        20: "drop_table_partition",
        21: "create_view",
        22: "modify_table_charset",
        23: "truncate_table_partition",
        24: "drop_view",
        25: "recover_table",
        26: "modify_schema_charset",
        27: "lock_table",
        28: "unlock_table",
        29: "repair_table",
        30: "set_tiflash_replica",
        31: "update_tiflash_status",
        32: "add_primary_key",
        33: "drop_primary_key",
        34: "create_sequence",
        35: "alter_sequence",
        36: "drop_sequence",
        37: "add_columns",
        38: "drop_columns",
        39: "modify_auto_id_cache",
        40: "rebase_auto_random_base",
        41: "alter_index_visibility",
        42: "exchange_partition",
        43: "add_check_constraint",
        44: "drop_check_constraint",
        45: "alter_check_constraint",
        46: "alter_table_partition",
        47: "rename_tables",
        48: "drop_indexes",
        49: "alter_table_attributes",
        50: "alter_partition_attributes",
        51: "create_placement_policy",
        52: "alter_placement_policy",
        53: "drop_placement_policy",
        54: "alter_partition_placement",
        55: "modify_schema_placement",
        56: "alter_table_placement",
        57: "cache_table",
        58: "alter_stats_options",
        59: "no_cache_table",
        60: "create_tables",
        61: "multi_schema_change",
        62: "flashback_cluster",
        63: "recover_schema",
        64: "reorganize_partition",
        65: "alter_ttl_info",
        67: "remove_ttl",
        68: "create_resource_group",
        69: "alter_resource_group",
        70: "drop_resource_group",
        71: "alter_table_partitioning",
        72: "remove_partitioning",
        73: "add_columnar_index",
        74: "modify_engine_attribute",
        75: "alter_table_mode",
        76: "refresh_meta",
        77: "schema_read_only",
        230: "add_fulltext_index",
        231: "add_hybrid_index",
    }
)

REPLICATED: frozenset[int] = frozenset({*range(1, 16), *range(17, 27), 32, 33, 37, 38, 41, 42, 47, 60, 61, 64, 65, 67, 71, 72, 230, 231})
"""The types that TiCDC sends; the others never arrive from it."""


def ddl_type_name(code: int) -> str:
    """Return the name of a DDL type; ``type_<code>`` for one that this table does not know."""
    return DDL_TYPE_NAMES.get(code, f"type_{code}")


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
"""Types that change neither a table's definition nor a row. TiCDC sends none."""


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
            kind=FailureKind.SELECTION,
            table=str(ddl.name),
            commit_ts=ddl.commit_ts,
        )
    if policy == "stop":
        raise _stopped(ddl, name, is_ours=name not in policies)
    return False


def _stopped(ddl: DdlEvent, name: str, *, is_ours: bool) -> NeedsOperator:
    facts: dict[str, Any] = {"table": str(ddl.name), "commit_ts": ddl.commit_ts}
    if is_ours:
        # "apply" is no remedy: no other server has these statements.
        return NeedsOperator(
            f"a DDL of type {name} stops the applier, because {STOPS[name]}: {ddl.query}",
            remedy=Remedy(
                "ddl.copy-rows-and-skip",
                "Copy the rows from upstream into the sink, then skip the DDL with `applier ddl skip --ts … --table …`."
                " Or start again from a dump (`applier docs start_over`)",
            ),
            **facts,
        )
    return NeedsOperator(
        f"a DDL of type {name} stops the applier by policy: {ddl.query}",
        remedy=Remedy(
            "ddl.apply-or-skip-ddl-kind",
            f'Set {name} = "apply" under [ddl], or "skip" after you have made its change in the sink (schema and rows)',
        ),
        **facts,
    )
