"""What the text of a type and of a value means (canal_json_and_simple.md 2.3, 2.4, 13)."""

import pytest

from applier.model.errors import ProtocolError
from applier.model.events import Shape
from applier.sources.canal_json.image_codec import encode_image, image_decoder, images_decoder
from applier.sources.canal_json.value import column_shape, encoding_of
from tests.builders.canal_json import dump

GOLDEN_BYTES = bytes([5, 7, 10, 15, 36, 50, 43, 99, 120, 60, 38, 255, 254, 45, 55, 70])

TYPES = {
    "tinyint": (1, False, False), "tinyint unsigned": (1, True, False), "tinyint(3) unsigned": (1, True, False),
    "int(10) unsigned zerofill": (3, True, False), "int zerofill": (3, False, False), "bigint(20)": (8, False, False),
    "mediumint(9)": (9, False, False), "smallint": (2, False, False), "float(10,3)": (4, False, False), "double": (5, False, False),
    "decimal(5,2) unsigned": (246, True, False), "char(16)": (254, False, False), "varchar": (15, False, False),
    "binary(10)": (254, False, True), "varbinary": (15, False, True), "tinytext": (249, False, False), "longtext": (251, False, False),
    "mediumblob": (250, False, True), "blob": (252, False, True), "date": (10, False, False), "time(3)": (11, False, False),
    "datetime": (12, False, False), "timestamp(6)": (7, False, False), "year(4)": (13, False, False), "bit(64)": (16, False, False),
    "enum('a','b,c','d''e')": (247, False, False), "enum('blob','unsigned')": (247, False, False), "set": (248, False, False),
    "set(') unsigned','(')": (248, False, False), "json": (245, False, False), "vector(5)": (225, False, False),
    "VARCHAR(3)": (15, False, False),
}  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_read_from_its_left(text):
    column = column_shape("c", text)
    assert (column.mysql_type, column.is_unsigned, column.is_bytes) == TYPES[text]
    assert column.is_generated is None


@pytest.mark.parametrize("text", ["", "geometry", "int(", "int unsigned)", "enum('a)", "point(3)", "int;", " int", "42"])
def test_an_unknown_type_is_refused(text):
    with pytest.raises(ProtocolError, match="unknown type") as caught:
        column_shape("c", text)
    assert caught.value.facts == {"kind": "column_type", "column": "c", "type": text}


def decode(type_text, *texts):
    """The values of one column, by both decoders."""
    column = column_shape("c", type_text)
    shape = Shape("d", "t", (column,), encoding=encoding_of((column,)))
    images = [dump({"c": text}) for text in texts]
    (many,) = images_decoder(shape)(images)
    one = [image_decoder(shape)(image)[0] for image in images]
    assert repr(one) == repr(list(many))
    assert repr([image_decoder(shape)(encode_image(shape, [value]))[0] for value in one]) == repr(one)
    return one


BORDERS = [
    ("tinyint", -128, 127), ("tinyint unsigned", 0, 255), ("smallint", -(2**15), 2**15 - 1), ("smallint unsigned", 0, 2**16 - 1),
    ("mediumint", -(2**23), 2**23 - 1), ("mediumint unsigned", 0, 2**24 - 1), ("int", -(2**31), 2**31 - 1),
    ("int unsigned", 0, 2**32 - 1), ("bigint", -(2**63), 2**63 - 1), ("bigint unsigned", 0, 2**64 - 1), ("year", 0, 2155),
    ("bit", 0, 2**64 - 1), ("enum", 0, 65535), ("set", 0, 2**64 - 1),
]  # fmt: skip


@pytest.mark.parametrize(("type_text", "low", "high"), BORDERS)
def test_integers_are_exact_up_to_their_borders_and_refused_beyond(type_text, low, high):
    assert decode(type_text, str(low), None, str(high)) == [low, None, high]
    for beyond in (low - 1, high + 1):
        with pytest.raises(ProtocolError, match="cannot be read") as caught:
            decode(type_text, "1", str(beyond))
        assert caught.value.facts["kind"] == "value_type"


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1_0", "+1", "1.0", "1e3", "-", "1-2", "0x1", "null", "٣", "1,2", "9" * 5000])
def test_what_is_no_integer_is_refused(text):
    with pytest.raises(ProtocolError):
        decode("bigint", text)


def test_floating_point_numbers_are_plain_digits():
    found = decode("double", "32500000000", "0.0000000001", "1" + "0" * 22, "-0", "0", None, "1" + "0" * 308, "-1.5")
    assert repr(found) == repr([3.25e10, 1e-10, 1e22, -0.0, 0.0, None, 1e308, -1.5])
    assert decode("float", "123456.79") == [123456.79]


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1_0", "1e999", "", "."])
def test_what_is_no_finite_number_is_refused(text):
    with pytest.raises(ProtocolError):
        decode("double", text)


@pytest.mark.parametrize("type_text", ["binary", "varbinary(24)", "blob", "longblob", "tinyblob", "mediumblob"])
def test_binary_text_is_one_character_for_each_byte(type_text):
    every = bytes(range(256))
    assert len(every.decode("latin-1").encode()) == 384
    assert decode(type_text, GOLDEN_BYTES.decode("latin-1"), every.decode("latin-1"), "", None) == [GOLDEN_BYTES, every, b"", None]


def test_the_documents_example_of_bytes():
    column = column_shape("c", "varbinary")
    shape = Shape("d", "t", (column,), encoding=encoding_of((column,)))
    assert list(image_decoder(shape)(rb'{"c":"\u0005\u0007\n\u000f$2+cx\u003c\u0026\u00ff\u00fe-7F"}')) == [GOLDEN_BYTES]


def test_a_character_that_is_no_byte_is_refused_in_binary():
    with pytest.raises(ProtocolError):
        decode("blob", "Ā")


@pytest.mark.parametrize(
    "type_text", ["varchar", "text", "decimal(5,2)", "date", "time", "datetime", "timestamp", "json", "vector", "char"]
)
def test_other_values_are_their_text(type_text):
    texts = ["null", "", "12.50", "0", "ü\x00\n\u2028", None, "0000-00-00"]
    assert decode(type_text, *texts) == texts


@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, {"a": "b"}])
def test_a_value_that_is_neither_text_nor_null_is_refused(value):
    with pytest.raises(ProtocolError, match="cannot be read"):
        decode("varchar", value)


def test_the_wires_type_decides_and_not_the_sinks():
    column = column_shape("c", "varchar")
    shape = Shape("d", "t", (column._replace(is_bytes=True),), encoding=encoding_of((column,)))
    assert list(image_decoder(shape)(dump({"c": "ü"}))) == ["ü".encode()]
    assert list(image_decoder(shape)(encode_image(shape, [b"\xff\xc3\xbc"]))) == [b"\xff\xc3\xbc"]


def test_an_image_with_other_columns_is_refused():
    shape = Shape("d", "t", (column_shape("a", "int"), column_shape('b"', "int")))
    for image in (b'{"a":"1"}', b'{"a":"1","b\\"":"2","c":"3"}', b"[]", b"{", b'{"a":"1","b\\"":"2"}{}', b"\xff"):
        with pytest.raises(ProtocolError):
            image_decoder(shape)(image)
    assert image_decoder(shape)(b'{"b\\"":"2","a":"1"}') == [1, 2]


def test_one_bad_image_among_many_is_found():
    shape = Shape("d", "t", (column_shape("a", "int"),))
    images = [dump({"a": str(number)}) for number in range(100)]
    assert list(images_decoder(shape)(images)[0]) == list(range(100))
    images[70] = dump({"a": "x"})
    with pytest.raises(ProtocolError, match="cannot be read"):
        images_decoder(shape)(images)
