"""Names and patterns of topics."""

import pytest

from applier.model.topic_name import PartitionLimits, is_named


@pytest.mark.parametrize(
    ("wanted", "topic", "named"),
    [
        (["cdc_shop"], "cdc_shop", True),
        (["cdc_shop"], "cdc_shop2", False),
        (["^cdc_"], "cdc_shop", True),
        (["^cdc_"], "my_cdc_shop", False),
        (["^cdc_.*$"], "cdc_shop", True),
        (["^cdc_\\d+$"], "cdc_12x", False),
        (["^.*"], "__consumer_offsets", False),
        (["__odd"], "__odd", True),
        (["cdc.shop"], "cdc_shop", False),
        (["other", "^(a|b)_"], "b_1", True),
    ],
)
def test_what_begins_with_a_caret_is_a_pattern_for_the_beginning_of_names(wanted, topic, named):
    assert is_named(topic, wanted) is named


def test_the_limit_of_a_name_comes_before_that_of_a_pattern():
    limits = PartitionLimits((("^cdc_", 4), ("^cdc_s", 3), ("cdc_shop", 2)))
    assert [limits.get(topic, 99) for topic in ("cdc_shop", "cdc_sea", "other")] == [2, 4, 99]
