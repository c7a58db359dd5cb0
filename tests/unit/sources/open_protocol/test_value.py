import pytest

from applier.model.errors import ProtocolError
from applier.model.events import Column
from applier.sources.open_protocol.value import INTEGER_RANGES, VALUE_CLASSES, read_column, unquote
from applier.sources.ticdc.json_text import parse
from tests.builders.wire import column


def kind_of(members):
    with pytest.raises(ProtocolError) as caught:
        read_column("c", members)
    assert caught.value.facts["column"] == "c"
    return caught.value.facts["kind"]


@pytest.mark.parametrize(("mysql_type", "limits"), INTEGER_RANGES.items())
def test_s17_integers_are_exact_to_the_limits_of_their_type_and_not_beyond(mysql_type, limits):
    low, high = limits
    assert read_column("c", column(mysql_type, 0, low)).value == low
    assert read_column("c", column(mysql_type, 0, high)).value == high
    assert kind_of(column(mysql_type, 0, low - 1)) == "value_type"
    assert kind_of(column(mysql_type, 0, high + 1)) == "value_type"


@pytest.mark.parametrize("mysql_type", VALUE_CLASSES)
def test_null_is_a_value_of_every_type(mysql_type):
    assert read_column("c", column(mysql_type, 65, None)).value is None


@pytest.mark.parametrize("mysql_type", VALUE_CLASSES)
@pytest.mark.parametrize("value", [True, [], {}])
def test_booleans_and_containers_are_values_of_no_type(mysql_type, value):
    assert kind_of(column(mysql_type, 65, value)) == "value_type"


@pytest.mark.parametrize("digits", [309, 400, 4300])
def test_integer_that_no_double_can_hold_is_refused(digits):
    assert kind_of(column(5, 65, 10**digits - 1)) == "value_type"


def test_null_type_has_no_other_value():
    assert kind_of(column(6, 64, 0)) == "value_type"


@pytest.mark.parametrize(("wire", "value"), [(0, 0.0), (-1, -1.0), (1.5, 1.5), (3e-07, 3e-07), (2**64, 2.0**64)])
def test_floats_may_be_written_as_integers(wire, value):
    read = read_column("c", column(5, 65, wire)).value
    assert read == value
    assert isinstance(read, float)


@pytest.mark.parametrize(
    ("members", "flags"),
    [
        ({"f": 11, "h": None}, 11),
        ({"f": 0, "h": True}, 0),
        ({"h": True}, 2),
        ({"h": False}, 0),
        ({"h": None}, 0),
        ({}, 0),
        ({"f": 2**63 - 1}, 2**63 - 1),
    ],
)
def test_handle_member_counts_only_without_flags(members, flags):
    assert read_column("c", {"t": 3, "v": 1, **members}) == Column(3, flags, 1, bool(flags & 2))


@pytest.mark.parametrize(
    "members",
    [{"f": None}, {"f": -1}, {"f": 2**63}, {"f": 1.0}, {"f": True}, {"h": 1}, {"h": "true"}],
)
def test_flags_that_are_no_number_are_refused(members):
    assert kind_of({"t": 3, "v": 1, **members}) == "flags"


@pytest.mark.parametrize("mysql_type", [None, "3", 3.0, True, 0, 17, 255, -3])
def test_unknown_column_type_is_refused(mysql_type):
    assert kind_of({"t": mysql_type, "f": 0, "v": 1}) == "column_type"


def test_column_without_value_is_refused():
    assert kind_of({"t": 3, "f": 0}) == "value_type"


@pytest.mark.parametrize("wire", ["QQ", "QQ==QQ==", "====", "=QQ=", "QQ=a", "Q===", " QQ==", "QQ\n==", "_-==", "Qé==", "Q\udcff==", "A"])
def test_base64_must_be_padded_and_of_the_standard_alphabet(wire):
    assert kind_of(column(252, 65, wire)) == "base64"


def test_text_types_are_text_and_blob_types_bytes():
    assert read_column("c", column(252, 64, "Y2Fm6Q==")).value == "caf\udce9"
    assert read_column("c", column(252, 65, "Y2Fm6Q==")).value == b"caf\xe9"


@pytest.mark.parametrize(
    ("quoted", "data"),
    [
        ("", b""),
        ("plain ' é", "plain ' é".encode()),
        (r"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n"),
        (r"\a\b\f\n\r\t\v\\\"", b'\a\b\f\n\r\t\v\\"'),
        (r"\xfF\XFF"[:4], b"\xff"),
        (r"\u65e5\U0001F600", "日😀".encode()),
        (r"\000\377\101", b"\x00\xffA"),
        (r"\\x41", rb"\x41"),
        ("raw \udcff", b"raw \xff"),
    ],
)
def test_s18_go_quoted_bytes_are_unquoted(quoted, data):
    assert unquote(quoted) == data


@pytest.mark.parametrize(
    "quoted",
    [
        "\\",
        "a\\",
        r"\q",
        r"\'",
        r"\e",
        r"\x4",
        r"\xg1",
        r"\x+1",
        r"\u12",
        r"\u12G4",
        r"\ud800",
        r"\U00110000",
        r"\400",
        r"\18",
        r"\189",
        '"',
        "a\nb",
    ],
)
def test_what_go_does_not_unquote_is_refused(quoted):
    with pytest.raises(ProtocolError) as caught:
        unquote(quoted)
    assert caught.value.facts["kind"] == "escape"


@pytest.mark.parametrize(
    ("data", "document"),
    [
        (b'{"a":"caf\xe9","b":18446744073709551615}', {"a": "caf\udce9", "b": 2**64 - 1}),
        (b'["\xff\\u00e9\\ud83d\\ude00\\\\ud800",1.5,1e2]', ["\udcffé😀\\ud800", 1.5, 100.0]),
        (b'{"\xff":1,"a":1,"a":2}', {"\udcff": 1, "a": 2}),
    ],
)
def test_s18_text_that_is_not_utf8_is_read_exactly(data, document):
    assert parse(data) == document


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[1,]", b"NaN", b"-Infinity", b"01", b"1.", b'"\x01"', b'"\\ud800"', b'"\\udcff"', b'"\\ud800\\u0041"', b"1 2", b"/*x*/1",
     b"1e400", b"9" * 4301, b"[" * 100_000],
)  # fmt: skip
def test_what_is_not_json_is_refused_in_valid_and_in_invalid_utf8(text):
    for data in (text, b'["\xff",' + text + b"]"):
        with pytest.raises(ProtocolError) as caught:
            parse(data)
        assert caught.value.facts["kind"] == "json"


def test_geometry_is_refused_by_name():
    with pytest.raises(ProtocolError, match="GEOMETRY") as caught:
        read_column("area", column(255, 0, "AAAA"))
    assert (caught.value.facts["kind"], caught.value.facts["column"]) == ("column_type", "area")
    assert "column-selectors" in caught.value.remedy
