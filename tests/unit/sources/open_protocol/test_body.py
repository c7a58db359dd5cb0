import cramjam
import lz4.frame
import pytest

from applier.model.errors import ProtocolError
from applier.model.events import RowOperation
from applier.sources.open_protocol.record import read_ddl, read_image, read_row
from applier.sources.ticdc import compression
from applier.sources.ticdc.compression import unpack_lz4, unpack_snappy
from tests.builders.wire import dump, integer_key, text

IMAGE = {"id": integer_key(1), "name": text("a")}


def kind_of(read, data):
    with pytest.raises(ProtocolError) as caught:
        read(data)
    return caught.value.facts["kind"]


@pytest.mark.parametrize(
    ("body", "operation"),
    [
        ({"u": IMAGE}, RowOperation.INSERT),
        ({"u": IMAGE, "p": {}}, RowOperation.INSERT),
        ({"u": IMAGE, "p": None, "d": None}, RowOperation.INSERT),
        ({"u": IMAGE, "p": IMAGE}, RowOperation.UPDATE),
        ({"u": IMAGE, "p": {"name": text("b")}}, RowOperation.UPDATE),
        ({"d": IMAGE}, RowOperation.DELETE),
        ({"d": IMAGE, "u": {}, "p": None}, RowOperation.DELETE),
    ],
)
def test_images_show_the_operation(body, operation):
    assert read_row(dump(body)).operation is operation


@pytest.mark.parametrize("body", [{}, {"u": {}}, {"u": None, "d": {}}, {"p": IMAGE}, {"u": IMAGE, "d": IMAGE}, {"d": IMAGE, "p": IMAGE}])
def test_row_without_images_or_with_contradicting_ones_is_refused(body):
    assert kind_of(read_row, dump(body)) == "empty_row"


def test_last_of_repeated_images_and_columns_counts():
    body = b'{"u":{"id":{"t":3,"f":11,"v":1},"id":{"t":8,"f":11,"v":2}},"u":{"id":{"t":3,"f":11,"v":3,"v":4}}}'
    assert read_row(body).after["id"].value == 4
    assert read_image(b'{"id":{"t":3,"f":11,"v":1},"id":{"t":8,"f":11,"v":2}}')["id"] == (8, 11, 2, True)


@pytest.mark.parametrize("image", [b'"x"', b"5", b"[]", b'{"id":5}', b'{"\xff":{"t":3,"f":11,"v":1}}'])
def test_image_that_is_no_object_of_named_columns_is_refused(image):
    assert kind_of(read_image, image) == "field_type"


@pytest.mark.parametrize("body", [{}, {"q": "x"}, {"t": 3}, {"q": None, "t": 3}, {"q": "x", "t": True}, {"q": "x", "t": 1.5}])
def test_ddl_without_statement_or_type_is_refused(body):
    assert kind_of(read_ddl, dump(body)) == "field_type"


def test_ddl_statement_keeps_bytes_that_are_not_utf8_as_lone_surrogates():
    assert read_ddl(b'{"q":"COMMENT \'\xe9\'","t":3}').query == "COMMENT '\udce9'"


@pytest.mark.parametrize("pack", [lz4.frame.compress, lambda body: bytes(cramjam.snappy.compress_raw(body))])
@pytest.mark.parametrize("size", [1, 51, 52, 53, 60_000])  # 52: a plain length of 123, the byte of "{"
def test_bodies_are_read_through_either_compression(pack, size):
    body = dump({"u": {"id": integer_key(1), "c": text("q" * size)}})
    assert read_row(pack(body)).after["c"].value == "q" * size


@pytest.mark.parametrize("pack", [lz4.frame.compress, lambda body: bytes(cramjam.snappy.compress_raw(body))])
def test_ddls_are_read_through_either_compression_whatever_their_length(pack):
    for size in range(100, 130):  # among them a plain length of 123, the byte of "{"
        body = dump({"q": "x" * size, "t": 3})
        assert read_ddl(pack(body)) == ("x" * size, 3)


def test_compressed_body_that_is_not_json_is_refused():
    assert kind_of(read_row, lz4.frame.compress(b"no")) == "json"
    assert kind_of(read_row, bytes(cramjam.snappy.compress_raw(b"\0no"))) == "json"


def test_lz4_frame_cut_or_followed_by_rubbish_is_refused():
    packed = lz4.frame.compress(dump({"u": IMAGE}))
    for end in range(4, len(packed)):
        assert kind_of(unpack_lz4, packed[:end]) == "compression", end
    assert kind_of(unpack_lz4, packed + b"\0") == "compression"
    assert kind_of(unpack_lz4, packed[:4] + b"\xff" + packed[5:]) == "compression"


def test_body_beyond_the_limit_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(compression, "MAX_BODY_BYTES", 1000)
    assert unpack_lz4(lz4.frame.compress(b"a" * 999)) == b"a" * 999
    assert kind_of(unpack_lz4, lz4.frame.compress(b"a" * 2000)) == "compression"
    assert kind_of(unpack_snappy, bytes(cramjam.snappy.compress_raw(b"a" * 2000))) == "compression"


def test_snappy_length_that_the_block_cannot_hold_reserves_no_memory():
    assert kind_of(unpack_snappy, b"\xff\xff\xff\x7f" + b"\0" * 10) == "compression"
    assert kind_of(unpack_snappy, b"\xff" * 20) == "compression"
    assert kind_of(unpack_snappy, b"\x05\x10ab") == "compression"


@pytest.mark.parametrize(("body", "kind"), [(b"", "json"), (b"hello", "json"), (b"{", "json"), (b"\x9c\xf3\x01w\xaa\x00", "compression")])
def test_what_begins_like_text_is_called_bad_json(body, kind):
    assert kind_of(read_row, body) == kind
