"""Old values after a change of their type, as the simulator's oracles have them."""

import pytest

from applier.ddl.conversion_rule import Certainty, PlainValues, conversion_rule
from applier.ddl.table_draft import parse_type
from applier.ddl.tokens import Cursor
from applier.demo.simulator import column_type as of
from applier.demo.simulator.alteration import convert, converting_types
from applier.demo.simulator.table_factory import _EXTRA_TYPES


@pytest.mark.parametrize("old", _EXTRA_TYPES, ids=lambda kind: kind.sql)
def test_no_history_has_a_conversion_that_depends_on_the_server(old: of.UpstreamType) -> None:
    for new in converting_types(old):
        rule = conversion_rule(parse_type(Cursor(old.sql)), parse_type(Cursor(new.sql)))
        assert rule.certainty is Certainty.EXACT or rule.plain is PlainValues.IN_RANGE, (old.sql, new.sql)


@pytest.mark.parametrize(
    ("value", "old", "new", "expected"),
    [
        ("-1.250", of.decimal(12, 3), of.decimal(12, 1), "-1.3"), ("2.500", of.decimal(12, 3), of.integer("BIGINT"), 3),
        ("-0.040", of.decimal(12, 3), of.decimal(12, 1), "0.0"), (2, of.enum("x", "y"), of.integer(), 2),
        ("y", of.enum("x", "y"), of.integer(), 2), (3, of.set_of("p", "q"), of.varchar(60), "p,q"),
        ("é", of.varchar(30), of.varbinary(120), "é".encode()), ("2020-01-02", of.date(), of.datetime(), "2020-01-02 00:00:00"),
        (None, of.enum("x"), of.integer(), None), (7, of.bit(9), of.integer(), 7),
    ],
)  # fmt: skip
def test_a_value_becomes_what_a_server_makes_of_it(value: object, old: of.UpstreamType, new: of.UpstreamType, expected: object) -> None:
    assert convert(value, old, new) == expected
