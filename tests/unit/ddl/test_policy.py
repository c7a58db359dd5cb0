"""What happens to a DDL of each type."""

import pytest

from applier.ddl.policy import is_skipped
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.model.position import Ts

RECOVER = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query="RECOVER TABLE t", ddl_type=25)


def test_a_ddl_is_applied_unless_the_operator_says_otherwise() -> None:
    ddl = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query="DROP TABLE t", ddl_type=4)
    assert not is_skipped(ddl, {})
    assert is_skipped(ddl, {"drop_table": "skip"})


def test_a_recovered_table_stops_the_applier_unless_the_operator_says_otherwise() -> None:
    with pytest.raises(NeedsOperator, match="recover_table"):
        is_skipped(RECOVER, {})
    assert not is_skipped(RECOVER, {"recover_table": "apply"})
