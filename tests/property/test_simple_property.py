"""Any bytes give events or a ProtocolError, by both ways alike; and any rows that the simulator's encoders write come back."""

import json
from base64 import b64decode
from pathlib import Path

import cramjam
import lz4.frame
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from applier.model.errors import ProtocolError, SourceError
from applier.model.position import Offset, RecordPosition
from applier.sources.port import Record
from tests.builders.simple_wire import TS, VERSION, bootstrap, column, dump, order, primary, row, schema, watermark
from tests.rig.simple_placing import STREAM, assert_ways_agree, decoder_of

AVRO = [
    b64decode(one["value_b64"]) for one in json.loads((Path(__file__).parents[1] / "data" / "simple_avro.json").read_text(encoding="utf-8"))
]
ALL_TYPES = AVRO[1]
RECORDS = [bootstrap(), watermark(), row("INSERT", order(1)), row("UPDATE", order(1), order(2)), row("DELETE", old=order(1)), *AVRO]


def survives(value, key=None):
    """Read a record by every way; nothing but the errors of a source may come out."""
    decoder = decoder_of(bootstrap(), ALL_TYPES, value)
    record = Record(Offset(2), key, value)
    for read in (
        lambda: decoder.events(record, RecordPosition(STREAM, record.offset)),
        lambda: decoder.whole_events(record, RecordPosition(STREAM, record.offset)),
        lambda: [decode(decoder, placed) for placed in decoder.placer(STREAM).place_all([record])],
        lambda: decoder.placer(STREAM).place_each(*record),
    ):
        try:
            read()
        except ProtocolError as error:
            str(error)
        except SourceError as error:
            if "has not come yet" not in error.message:
                raise


def decode(decoder, placed):
    for number, shape in enumerate(getattr(placed, "shapes", ())):
        images = [image for image, one in zip(placed.image, placed.shape, strict=True) if one == number]
        decoder.images_decoder(shape)(images)


@given(st.binary(max_size=200), st.none() | st.binary(max_size=20))
def test_any_bytes_give_events_or_a_protocol_error(value, key):
    survives(value, key)


@given(st.sampled_from(RECORDS), st.data())
def test_a_damaged_record_gives_events_or_a_protocol_error(value, data):
    damaged = bytearray(value)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        match data.draw(st.sampled_from(["change", "insert", "delete", "cut"])):
            case "change":
                damaged[place] = data.draw(st.integers(0, 255))
            case "insert":
                damaged[place:place] = data.draw(st.binary(min_size=1, max_size=6))
            case "delete" if len(damaged) > 1:
                del damaged[place]
            case "cut" if place:
                del damaged[place:]
    wrap = data.draw(st.sampled_from([bytes, lz4.frame.compress, lambda plain: bytes(cramjam.snappy.compress_raw(plain))]))
    survives(wrap(bytes(damaged)))


@given(st.sampled_from([value for value in AVRO if value[:2] == b"\x16\6"]), st.data())
def test_both_ways_agree_on_damaged_rows_of_avro(value, data):
    place = data.draw(st.integers(4, len(value) - 1))
    damaged = value[:place] + bytes([data.draw(st.integers(0, 255))]) + value[place + 1 :]
    try:
        assert_ways_agree(ALL_TYPES, damaged, times=2)
    except SourceError as error:
        if "has not come yet" not in error.message:
            raise


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.from_regex(r"-?[0-9]{1,21}(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["location", "value", "x"]), inner, max_size=3)
)
KINDS = ["int", "bigint", "float", "double", "varchar", "varbinary", "bit", "set", "timestamp", "year"]


@given(st.sampled_from(KINDS), VALUES, st.booleans(), st.booleans())
@example("double", "-0", True, False)
@example("varbinary", "AB==", True, False)
@example("int", "1\n2", False, False)
def test_both_ways_agree_on_any_value_of_any_type(kind, value, in_key, unsigned):
    table = schema(column("id", "int"), column("c", kind, unsigned=unsigned), indexes=[primary("id", "c") if in_key else primary("id")])
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        text = '"x"'
    message = row("INSERT", {"id": "1"}).replace(b'{"id":"1"}', b'{"c":%s,"id":"1"}' % text.encode())
    assert_ways_agree(bootstrap(table), message, times=2)


@given(
    st.dictionaries(st.sampled_from(["id", "note", "blob", "ID", "other"]), st.none() | st.text(max_size=5)),
    st.sampled_from(["INSERT", "UPDATE", "DELETE"]),
    st.data(),
)
def test_both_ways_agree_on_any_columns(image, word, data):
    old = data.draw(st.just(image) | st.dictionaries(st.sampled_from(["id", "note", "blob"]), st.none() | st.text(max_size=5)))
    message = row(word, None if word == "DELETE" else image, None if word == "INSERT" else old)
    assert_ways_agree(bootstrap(), message, times=2)


@given(
    st.dictionaries(
        st.sampled_from(["version", "type", "commitTs", "schemaVersion", "data", "old", "handleKeyOnly", "checksum", "tableSchema"]), VALUES
    )
)
def test_any_members_give_events_or_a_protocol_error(members):
    document = json.loads(row("INSERT", order(1))) | members
    try:
        value = json.dumps(document, allow_nan=False).encode()
    except ValueError:
        return
    survives(value)


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting_is_an_error_and_not_the_end_of_the_process(depth):
    for nested in (b"[" * depth, b'{"a":' * depth):
        survives(row("INSERT", {"id": "1"}).replace(b'{"id":"1"}', nested))
        survives(nested)
    assert dump({"a": TS, "b": VERSION})


@pytest.mark.parametrize("old", [{}, {"note": "y"}, {"id": "1"}, {"id": "2"}, {"other": "1"}])
def test_an_old_image_that_lacks_columns_is_read_alike(old):
    assert_ways_agree(bootstrap(), row("UPDATE", order(1), old))
