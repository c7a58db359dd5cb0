"""What the hot way cuts of an Avro record is what the exact way reads of it; or it leaves the record to the exact way."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.demo.simulator.simple_avro import blocks, boolean, data, long, optional, string
from applier.model.errors import ProtocolError
from applier.model.events import TableName
from applier.sources.simple.avro import read_avro
from applier.sources.simple.avro_rows import RowCutter
from applier.sources.simple.image_code import pack_values

TS = 458173202432000000
NAME = TableName("shop", "orders")
SIGNED = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=8) | st.integers(60, 70).map("x".__mul__) | st.integers(4_090, 4_100).map("y".__mul__)
BYTES = st.binary(max_size=8) | st.integers(60, 300).map(bytes)
TIMESTAMPS = st.tuples(st.sampled_from(["UTC", "Local", "", "Z" * 70]), TEXTS).map(lambda both: long(6) + string(both[0]) + string(both[1]))
VALUES = st.one_of(
    st.just(long(0)),
    (st.integers(-70, 70) | SIGNED).map(lambda number: long(1) + long(number)),
    st.floats(width=32).map(lambda number: long(2) + struct.pack("<f", number)),
    st.floats().map(lambda number: long(3) + struct.pack("<d", number)),
    TEXTS.map(lambda text: long(4) + string(text)),
    BYTES.map(lambda raw: long(5) + data(raw)),
    TIMESTAMPS,
    (st.integers(0, 70) | st.integers(0, 2**64 - 1)).map(lambda number: long(7) + long(number)),
)
COLUMNS = st.text(min_size=1, max_size=5) | st.sampled_from(["n" * 63, "n" * 64])
IMAGES = st.dictionaries(COLUMNS, VALUES, min_size=1, max_size=6) | st.integers(60, 70).map(
    lambda count: {f"c{number}": long(1) + long(number) for number in range(count)}
)
CHECKSUMS = st.sampled_from([None, long(1) + boolean(flag=False) + long(2**32 - 1) + long(0)])


def image(values):
    return blocks([string(name) + value for name, value in values.items()])


def record(kind, new, old, *, ts=TS, checksum=None):
    head = long(11) + long(3) + long(3) + long(1) + string(NAME.schema) + string(NAME.table) + long(7) + long(kind)
    head += long(ts) + long(1_700_000_000_000) + long(TS - 1) + optional(None) + optional(None) + optional(checksum)
    return head + optional(None if new is None else image(new)) + optional(None if old is None else image(old))


def cutter():
    found = RowCutter()
    found.learn(NAME, 7, TS - 1, "the table")
    found.accept(["UTC", "Local", "", "Z" * 70])
    return found


def as_read(value):
    """What ``cut`` must return, by the exact way."""
    row = read_avro(value)
    is_delete = row.kind == "DELETE"
    new = row.old if is_delete else row.new
    before = row.old if row.kind == "UPDATE" else None
    return "the table", row.commit_ts, is_delete, pack_values(new), b"" if before is None else pack_values(before), len(new)


@given(IMAGES, IMAGES, st.integers(0, 2), st.integers(2**56, 2**62 - 1), CHECKSUMS)
def test_a_plain_row_is_cut_as_it_is_read(new, old, kind, ts, checksum):
    value = record(kind, None if kind == 2 else new, None if kind == 0 else old, ts=ts, checksum=checksum)
    found = cutter().cut(value)
    if found is None:
        assert any(len(name.encode()) > 63 for name in [*new, *old]) or any(len(one) > 9 for one in [*new.values(), *old.values()])
    elif kind == 1 and len(new) != len(old):
        assert (*found[:5], len(new)) == as_read(value)
        assert found[5] == 0
    else:
        assert found == as_read(value)


@given(st.data(), st.integers(0, 2))
def test_what_is_cut_of_a_damaged_row_is_what_is_read_of_it(choice, kind):
    values = {"id": long(1) + long(5), "t": long(4) + string("text"), "z": long(6) + string("UTC") + string("2026"), "f": long(0)}
    value = bytearray(record(kind, None if kind == 2 else values, None if kind == 0 else values))
    place = choice.draw(st.integers(4, len(value) - 1))
    match choice.draw(st.sampled_from(["change", "insert", "cut"])):
        case "change":
            value[place] = choice.draw(st.integers(0, 255))
        case "insert":
            value[place:place] = choice.draw(st.binary(min_size=1, max_size=3))
        case "cut":
            del value[place:]
    found = cutter().cut(bytes(value))
    # The caller sees the next two itself: a name that comes twice, and bytes that are no UTF-8.
    if found is None or found[5] != len(values) or not is_text(found[3] + found[4]):
        return
    try:
        wanted = as_read(bytes(value))
    except ProtocolError:
        pytest.fail("only the hot way accepts it")
    assert found == wanted or wanted[5] < found[5]


def is_text(image_bytes):
    try:
        image_bytes.replace(b"\x84", b"").replace(b"\xa2id", b"").decode("latin-1").encode("ascii")
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize(
    "value",
    [
        record(0, {"a": long(0)}, {"a": long(0)}),
        record(2, {"a": long(0)}, {"a": long(0)}),
        record(2, {"a": long(0)}, None),
        record(0, {}, None),
        record(0, {"a": long(0)}, None, ts=-TS),
        record(0, {"a": long(0)}, None, checksum=long(1) + boolean(flag=True) + long(1) + long(2)),
        record(0, {"a": long(0)}, None) + b"\0",
        record(0, {"a": long(4) + b"\x05abc"}, None),
        record(0, {"a": long(6) + b"\x05abc" + string("2026")}, None),
        record(0, {"a": long(1) + b"\x80" * 100_000 + b"\0"}, None),
        record(0, {"a": long(9)}, None),
        record(0, {"a": long(6) + string("Asia/Shanghai") + string("2026")}, None),
        record(0, {"a": long(0)}, None).replace(b"orders", b"others"),
    ],
)
def test_an_unusual_row_is_left_to_the_exact_way(value):
    assert cutter().cut(value) is None


def test_the_rows_of_a_backlog_are_cut():
    cutting = cutter()
    values = {"id": long(1) + long(70_000), "t": long(4) + string("é" * 30), "z": long(6) + string("UTC") + string("2026"), "f": long(0)}
    for number in range(300):
        value = record(1, values, values, ts=TS + number * 7_777)
        assert cutting.cut(value) == as_read(value)
