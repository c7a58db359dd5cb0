"""What the operator says about differences of tables, and about collations."""

import pytest

from applier.planner.table_check import Acceptance

MAPPED = Acceptance(collations=(("utf8mb4_0900_ai_ci", "uca1400_ai_ci"), ("utf8mb4_0900_bin", "utf8mb4_nopad_bin")))


@pytest.mark.parametrize(
    ("collation", "names"),
    [
        ("utf8mb4_uca1400_ai_ci", ["utf8mb4_uca1400_ai_ci", "utf8mb4_0900_ai_ci"]),
        ("UTF8MB4_NOPAD_BIN", ["UTF8MB4_NOPAD_BIN", "utf8mb4_0900_bin"]),
        ("utf8mb4_general_ci", ["utf8mb4_general_ci"]),
    ],
)
def test_a_collation_of_the_sink_may_have_the_name_upstream_that_the_operator_has_mapped(collation: str, names: list[str]) -> None:
    assert MAPPED.upstream_names(collation) == names
    assert Acceptance().upstream_names(collation) == [collation]
