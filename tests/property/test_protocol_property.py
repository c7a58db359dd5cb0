"""Properties of the protocol package: any bytes give events or a ProtocolError on both ways of reading, and the two agree."""

from base64 import b64encode
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from applier.model.errors import ProtocolError
from applier.model.events import Column, PlacedRow, RowEvent
from applier.model.position import Stream
from applier.sources.column_flags import Flag, shape_of
from applier.sources.open_protocol import OpenProtocolPlacer, decode_key, decode_record, encode_key, image_decoder, images_decoder
from applier.sources.open_protocol.value import INTEGER_RANGES, VALUE_CLASSES, ValueClass, unquote
from tests.builders.wire import VERSION, dump, frame, head, read_vectors, record
from tests.rig.placing import assert_faces_agree, place_record

STREAM = Stream("changefeed", 0)
SMALL = [vector for vector in read_vectors() if vector.key and vector.value and len(vector.value) < 2000]
PLACER = OpenProtocolPlacer(STREAM)
"""One for all examples, so that its compiled shapes meet what was mutated."""

# Any text of upstream: bytes that need not be UTF-8, as text with lone surrogates.
foreign_text = st.binary(max_size=20).map(lambda data: data.decode("utf-8", "surrogateescape")) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=20
)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def quote(data):
    """Go's strconv.Quote, as far as bytes are concerned: its choice of printable characters is not part of the protocol."""
    simple = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
    return "".join(simple.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}") for byte in data)


@st.composite
def columns(draw):
    """A column as (wire object, expected Column)."""
    mysql_type = draw(st.sampled_from(sorted(VALUE_CLASSES)))
    flags = draw(st.integers(0, 255) | st.sampled_from([0, 2, 10, 11, 64, 65, 139, 193]))
    wire, value = draw(st.just((None, None)) | values_of(mysql_type, flags))
    members = {"t": mysql_type, **({"h": True} if flags & Flag.HANDLE_KEY else {}), "f": flags, "v": wire}
    if flags in (0, Flag.HANDLE_KEY) and draw(st.booleans()):
        del members["f"]
    return members, Column(mysql_type, flags, value, bool(flags & Flag.HANDLE_KEY))


def values_of(mysql_type, flags):  # noqa: PLR0911 one per class of values
    """Pairs of (value on the wire, value meant)."""
    is_binary = flags & Flag.BINARY
    match VALUE_CLASSES[mysql_type]:
        case ValueClass.INTEGER:
            return st.integers(*INTEGER_RANGES[mysql_type]).map(lambda value: (value, value))
        case ValueClass.FLOAT:
            numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70)
            return numbers.map(lambda value: (value, float(value)))
        case ValueClass.QUOTABLE if is_binary:
            return st.binary(max_size=20).map(lambda data: (quote(data), data))
        case ValueClass.BASE64 if is_binary:
            return st.binary(max_size=20).map(lambda data: (b64encode(data).decode(), data))
        case ValueClass.BASE64:
            return foreign_text.map(lambda text: (b64encode(text.encode("utf-8", "surrogateescape")).decode(), text))
        case ValueClass.NULL:
            return st.just((None, None))
        case _:
            return foreign_text.map(lambda text: (text, text))


def parts_of(image):
    return st.sets(st.sampled_from(sorted(image))).map(lambda kept: {name: image[name] for name in sorted(kept)})


images = st.dictionaries(names, columns(), min_size=1, max_size=5)
bodies = st.one_of(
    st.fixed_dictionaries({"u": images}),
    st.fixed_dictionaries({"d": images}),
    st.fixed_dictionaries({"u": images, "p": images}),
    # An old image of the same columns, or some of them.
    images.flatmap(lambda image: st.fixed_dictionaries({"u": st.just(image), "p": parts_of(image)})),
)


def wire_of(image):
    return {name: members for name, (members, _) in image.items()}


def meant_by(image):
    return {name: meant for name, (_, meant) in image.items()} or None


@given(bodies, names, names)
def test_what_a_producer_writes_is_what_is_read_on_both_faces(body, schema, table):
    key, value = record((head(schema=schema, table=table), {name: wire_of(image) for name, image in body.items()}))
    (event,) = decode_record(key, value)
    assert isinstance(event, RowEvent)
    assert (event.after, event.before) == (meant_by(body.get("u", {})), meant_by(body.get("p", {}) or body.get("d", {})))
    for _ in range(2):
        assert_faces_agree(PLACER, key, value)


def assert_only_protocol_errors(key, value):
    """Any other exception passes through and fails the test."""
    with suppress(ProtocolError):
        decode_record(key, value)
    with suppress(ProtocolError):
        for event in place_record(PLACER, 0, key, value):
            if isinstance(event, PlacedRow):
                image_decoder(event.shape)(event.image)


@given(st.binary(max_size=200) | st.none(), st.binary(max_size=200) | st.none())
@example(VERSION, None)
def test_any_bytes_give_events_or_a_protocol_error(key, value):
    assert_only_protocol_errors(key, value)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_in_a_frame_give_events_or_a_protocol_error(key_json, body):
    assert_only_protocol_errors(VERSION + frame([key_json]), frame([body]))


@st.composite
def mutated(draw, data):
    """Change, insert or remove a few bytes: mostly ones that mean something in JSON."""
    changed = bytearray(data)
    byte = st.sampled_from(b'{}[]",:\\0159-.eEtfnulhpdv \x00\xff\xc3') | st.integers(0, 255)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(changed)))
        removed = draw(st.integers(0, 2))
        changed[at : at + removed] = bytes(draw(st.lists(byte, max_size=2)))
    return bytes(changed)


@st.composite
def mutated_records(draw):
    vector = draw(st.sampled_from(SMALL))
    key, value = vector.key, vector.value
    if len(key) > 16 and len(value) > 8 and int.from_bytes(value[:8], "big") == len(value) - 8 and draw(st.booleans()):
        # A record of one event whose frames stay right.
        head_json, body = key[16:], value[8:]
        if draw(st.booleans()):
            return VERSION + frame([head_json]), frame([draw(mutated(body))])
        return VERSION + frame([draw(mutated(head_json))]), frame([body])
    if draw(st.booleans()):
        return key, draw(mutated(value))
    return draw(mutated(key)), value


@settings(max_examples=400)
@given(mutated_records())
def test_damaged_records_are_the_same_for_both_faces_or_refused(damaged):
    assert_faces_agree(PLACER, *damaged)


@given(st.binary(max_size=60))
def test_go_quoted_bytes_come_back(data):
    assert unquote(quote(data)) == data


@given(st.text(st.sampled_from("\\abfnrtvxuU01789aAfFgG\"'é日😀\n "), max_size=30))
def test_unquoting_gives_bytes_or_a_protocol_error(text):
    with suppress(ProtocolError):
        assert isinstance(unquote(text), bytes)


@given(st.lists(st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.binary() | foreign_text))
def test_keys_give_their_values_back(values):
    assert decode_key(encode_key(values)) == values


hostile_values = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | foreign_text
) | st.sampled_from(
    [{}, [], {"v": 1}, {"c0": {"t": 3, "f": 0, "v": 1}}, "a\0b", "\0", "'", "\\", "\\q", "A\\x00", "Y2Fm6Q==", "=", -0.0, 1e300]
)


@st.composite
def images_of_one_shape(draw):
    """A shape, and images that listeners let through for it: the right columns in any order, and any values outside of the key."""
    kinds = draw(
        st.lists(st.tuples(st.sampled_from(sorted(VALUE_CLASSES)), st.sampled_from([0, 1, 64, 65, 128, 193])), min_size=1, max_size=4)
    )
    shape = shape_of("shop", "orders", tuple((f"c{number}", *kind) for number, kind in enumerate(kinds)))
    of_kind = [st.none() | values_of(*kind).map(lambda pair: pair[0]) for kind in kinds]
    any_value = [(values | hostile_values) if draw(st.booleans()) else values for values in of_kind]
    rows = draw(st.lists(st.tuples(*any_value), min_size=1, max_size=40))
    found = []
    for row in rows:
        columns = [(c.name, {"t": c.mysql_type, "f": c.flags, "v": value}) for c, value in zip(shape.columns, row, strict=True)]
        found.append(dump(dict(draw(st.permutations(columns)))))
    return shape, found


@given(images_of_one_shape())
def test_many_images_are_decoded_at_once_to_what_each_is_alone_or_refused_as_one_of_them_is(case):
    shape, found = case
    try:
        alone = [tuple(image_decoder(shape)(image)) for image in found]
    except ProtocolError:
        with pytest.raises(ProtocolError):
            images_decoder(shape)(found)
        return
    together = list(zip(*images_decoder(shape)(found), strict=True))
    assert repr(together) == repr(alone), "repr: 1 is not 1.0, and -0.0 not 0.0"
