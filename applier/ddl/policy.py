"""What happens to a DDL of each type: the operator's policy, and ours where there is none."""

from collections.abc import Mapping
from typing import Final

from applier.ddl import ddl_type_name
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent

DEFAULT_POLICY: Final[Mapping[str, str]] = {"recover_table": "stop"}
"""The rows of a recovered or flashed-back table are not sent again: the sink would silently lack them (open_protocol.md 2.12)."""


def is_skipped(ddl: DdlEvent, policies: Mapping[str, str]) -> bool:
    """Return whether a DDL is skipped (else it is applied); NeedsOperator if its type, or the filter and routes, stop the applier."""
    if ddl.left_out:
        return True
    if ddl.refusal is not None:
        raise NeedsOperator(
            f"{ddl.refusal.why}: {ddl.query}",
            remedy=ddl.refusal.remedy.replace("TSO", str(ddl.commit_ts)),
            kind="selection",
            table=str(ddl.name),
            commit_ts=ddl.commit_ts,
        )
    # A type that a later TiDB has is called type_<code>, and can be set like any other.
    name = ddl_type_name(ddl.ddl_type)
    policy = policies.get(name, DEFAULT_POLICY.get(name, "apply"))
    if policy == "stop":
        raise NeedsOperator(
            f"a DDL of type {name} stops the applier by policy: {ddl.query}",
            remedy=f'Set {name} = "apply" under [ddl], or "skip" after you have made its change in the sink (schema and rows)',
            table=str(ddl.name),
            commit_ts=ddl.commit_ts,
        )
    return policy == "skip"
