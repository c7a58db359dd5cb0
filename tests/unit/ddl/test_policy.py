"""What happens to a DDL of each type."""

import pytest

from applier.ddl.policy import DDL_TYPE_NAMES, REPLICATED, SKIPPED, STOPS, is_skipped
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.model.position import Ts

RECOVER = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query="RECOVER TABLE t", ddl_type=25)


def test_a_ddl_is_applied_unless_the_operator_says_otherwise() -> None:
    ddl = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query="DROP TABLE t", ddl_type=4)
    assert not is_skipped(ddl, {})
    assert is_skipped(ddl, {"drop_table": "skip"})


@pytest.mark.parametrize("name", STOPS)
def test_a_type_whose_rows_are_not_in_the_stream_stops_with_what_to_do_about_them(name: str) -> None:
    code = next(code for code, known in DDL_TYPE_NAMES.items() if known == name)
    with pytest.raises(NeedsOperator, match=name) as stopped:
        is_skipped(DdlEvent(commit_ts=Ts(1), schema="s", table="t", query="RECOVER TABLE t", ddl_type=code), {})
    assert STOPS[name] in stopped.value.message
    assert "Copy the rows" in stopped.value.remedy


def test_the_operator_decides_about_a_recovered_table() -> None:
    assert not is_skipped(RECOVER, {"recover_table": "apply"})
    assert is_skipped(RECOVER, {"recover_table": "skip"})
    with pytest.raises(NeedsOperator, match="by policy") as stopped:
        is_skipped(RECOVER, {"recover_table": "stop"})
    assert 'recover_table = "apply"' in stopped.value.remedy


def test_what_changes_no_table_is_skipped_without_a_policy() -> None:
    locked = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query="LOCK TABLES t WRITE", ddl_type=27)
    assert is_skipped(locked, {})
    assert not is_skipped(locked, {"lock_table": "apply"})


def test_no_type_that_arrives_is_skipped_by_default() -> None:
    names = {DDL_TYPE_NAMES[code] for code in REPLICATED}
    assert not names & SKIPPED
    assert names & STOPS.keys() == {"recover_table"}
    assert SKIPPED | STOPS.keys() <= set(DDL_TYPE_NAMES.values())
