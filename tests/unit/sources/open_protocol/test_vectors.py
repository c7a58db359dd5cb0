"""The golden vectors: every record gives exactly its events, on both ways of reading."""

import pytest

from applier.model.errors import ProtocolError
from applier.model.event_json import event_to_json
from applier.model.events import RowEvent
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.open_protocol import OpenProtocolPlacer, decode_record, read_claim_check
from tests.builders.wire import FULL_VECTORS, read_vectors
from tests.rig.placing import assert_faces_agree

KINDS = {
    "framing", "version", "count_mismatch", "json", "event_type", "field_type", "empty_row", "column_type", "flags", "value_type", "base64",
    "escape", "compression",
}  # fmt: skip
KIND_DIFFERS = {  # the word is a hint for the first thing wrong; these bytes have two readings
    "malformed/row_zero_bytes": "compression",
    "malformed/value_bigint_5000_digits": "json",
    "malformed/compression_snappy_length_only": "json",
}
PLACE = RecordPosition(Stream("changefeed", 3), Offset(77))
VECTORS = read_vectors()
WELL_FORMED = [vector for vector in VECTORS if not vector.is_malformed]
MALFORMED = [vector for vector in VECTORS if vector.is_malformed]
WITH_OBJECTS = [vector for vector in VECTORS if {"object", "object_error"} & vector.line.keys()]
needs_full_file = pytest.mark.skipif(not FULL_VECTORS.exists(), reason="the full file of vectors is not beside the repository")


def named(vector):
    return vector.name


def with_real_floats(document):
    """Compare FLOAT and DOUBLE as numbers, not as text."""
    match document:
        case {"float": text}:
            return float(text)
        case dict():
            return {name: with_real_floats(member) for name, member in document.items()}
        case list():
            return [with_real_floats(member) for member in document]
        case _:
            return document


def assert_gives_its_events(vector):
    try:
        events = decode_record(vector.key, vector.value, PLACE)
    except ProtocolError:
        assert vector.line.get("may_reject"), "a well-formed record was refused"
        return
    assert with_real_floats([event_to_json(event) for event in events]) == with_real_floats(vector.line["events"])


def assert_is_refused(vector):
    with pytest.raises(ProtocolError) as caught:
        decode_record(vector.key, vector.value, PLACE)
    facts = caught.value.facts
    assert facts["kind"] == KIND_DIFFERS.get(vector.name, vector.line["error"])
    assert facts["kind"] in KINDS
    assert (facts["topic"], facts["partition"], facts["offset"]) == ("changefeed", 3, 77)


@pytest.mark.parametrize("vector", WELL_FORMED, ids=named)
def test_record_gives_exactly_its_events(vector):
    assert_gives_its_events(vector)


@pytest.mark.parametrize("vector", MALFORMED, ids=named)
def test_malformed_record_is_refused_with_its_kind_and_place(vector):
    assert_is_refused(vector)


@pytest.mark.parametrize("vector", WITH_OBJECTS, ids=named)
def test_s15_claim_check_object_gives_the_announced_row_or_is_refused(vector):
    (announced,) = decode_record(vector.key, vector.value)
    assert isinstance(announced, RowEvent)
    content = vector.line["object"]["content"].encode()
    if "object_error" in vector.line:
        with pytest.raises(ProtocolError) as caught:
            read_claim_check(content, announced, PLACE)
        assert caught.value.facts["kind"] == "claim_check"
        assert caught.value.facts["offset"] == 77
    else:
        row = read_claim_check(content, announced, PLACE).row
        assert with_real_floats([event_to_json(row)]) == with_real_floats(vector.line["object_events"])


def test_placing_agrees_with_whole_events_on_every_vector_also_when_shapes_are_known():
    placer = OpenProtocolPlacer(PLACE.stream)
    for _ in range(2):  # the second time by compiled decoders
        for vector in VECTORS:
            assert_faces_agree(placer, vector.key, vector.value)


@needs_full_file
def test_every_vector_of_the_full_file_gives_its_events_on_both_faces():
    placer = OpenProtocolPlacer(PLACE.stream)
    vectors = read_vectors(FULL_VECTORS)
    assert len(vectors) > len(VECTORS)
    for vector in vectors:
        (assert_is_refused if vector.is_malformed else assert_gives_its_events)(vector)
        assert_faces_agree(placer, vector.key, vector.value)
