"""Image decoders give what the full parse gives; what they cannot decode takes the full parse."""

import pytest

from applier.model.errors import ProtocolError
from applier.sources.column_flags import shape_of
from applier.sources.open_protocol import image_decoder
from applier.sources.open_protocol.matcher import compile_matcher
from applier.sources.open_protocol.value import VALUE_CLASSES
from tests.builders.wire import column, dump


def shape(*columns):
    return shape_of("shop", "orders", columns)


def decode(mysql_type, flags, wire):
    (value,) = image_decoder(shape(("c", mysql_type, flags)))(dump({"c": column(mysql_type, flags, wire)}))
    return value


@pytest.mark.parametrize(
    ("mysql_type", "flags", "wire", "value"),
    [
        (8, 65, 2**63 - 1, 2**63 - 1),
        (8, 65, 2**64 - 1, 2**64 - 1),  # stale flags
        (8, 193, 2**64 - 1, 2**64 - 1),
        (16, 193, 2**64 - 1, 2**64 - 1),
        (248, 64, 2**63, 2**63),
        (4, 65, 1, 1.0),
        (246, 65, "129012.1230000", "129012.1230000"),
        (15, 64, "\\x41", "\\x41"),
        (15, 65, "\\x41\\u00e9", b"A\xc3\xa9"),
        (252, 64, "Y2Fm6Q==", "caf\udce9"),
        (252, 65, "Y2Fm6Q==", b"caf\xe9"),
        (15, 64, "caf\udce9", "caf\udce9"),
    ],
)
def test_value_is_decoded_by_type_and_flags(mysql_type, flags, wire, value):
    decoded = decode(mysql_type, flags, wire)
    assert decoded == value
    assert type(decoded) is type(value)


@pytest.mark.parametrize("mysql_type", VALUE_CLASSES)
@pytest.mark.parametrize("flags", [0, 11, 65, 193])
def test_null_is_decoded_for_every_type(mysql_type, flags):
    assert decode(mysql_type, flags, None) is None


@pytest.mark.parametrize(
    ("mysql_type", "flags", "wire", "kind"),
    [
        (8, 193, 2**64, "value_type"),
        (3, 65, 2**32, "value_type"),
        (15, 65, "\\q", "escape"),
        (252, 64, "Q", "base64"),
        (5, 65, "1", "value_type"),
    ],
)
def test_bad_value_is_refused_with_its_column(mysql_type, flags, wire, kind):
    with pytest.raises(ProtocolError) as caught:
        decode(mysql_type, flags, wire)
    assert (caught.value.facts["kind"], caught.value.facts["column"], caught.value.facts["table"]) == (kind, "c", "orders")


def test_image_that_is_not_of_the_shape_is_refused():
    decode_image = image_decoder(shape(("a", 3, 11), ("b", 3, 65)))
    for image in (b'{"a":{"t":3,"f":11,"v":1}}', b"null", b"{", b"[]"):
        with pytest.raises(ProtocolError):
            decode_image(image)


def test_name_that_cannot_be_compiled_takes_the_full_parse():
    quoted = shape(('c"z', 3, 11))
    assert compile_matcher(quoted) is None
    assert image_decoder(quoted)(dump({'c"z': column(3, 11, 7)})) == [7]


@pytest.mark.parametrize("foreign", [{"note": column(15, 64, "caf\udce9")}, {'q"z': column(15, 64, "x")}], ids=["text", "name"])
@pytest.mark.parametrize(("mysql_type", "wire", "value"), [(15, "\\x00\\xff", b"\x00\xff"), (252, "AP8=", b"\x00\xff")])
def test_the_full_parse_uses_the_flags_of_the_shape_and_not_stale_ones_of_the_image(foreign, mysql_type, wire, value):
    ((name, other),) = foreign.items()
    decode_image = image_decoder(shape(("c", mysql_type, 65), (name, 15, 64)))
    assert decode_image(dump({"c": column(mysql_type, 0, wire), name: other})) == [value, other["v"]]


def test_shape_without_columns_has_no_values():
    assert list(image_decoder(shape())(b"{}")) == []


def test_decoders_are_made_once_per_shape():
    assert image_decoder(shape(("a", 3, 11))) is image_decoder(shape(("a", 3, 11)))
    assert compile_matcher(shape(("a", 3, 11))) is compile_matcher(shape(("a", 3, 11)))


def test_a_thousand_columns_are_one_shape():
    columns = [(f"c{index}", 8, 11 if index == 0 else 65) for index in range(1017)]
    image = {name: column(mysql_type, flags, index) for index, (name, mysql_type, flags) in enumerate(columns)}
    assert list(image_decoder(shape(*columns))(dump(image))) == list(range(1017))
