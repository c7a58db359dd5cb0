"""Properties of canal-json's package: any bytes give events or a ProtocolError on both ways of reading, and the two agree."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from applier.demo.simulator.history import History
from applier.demo.simulator.item import ImageOptions
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.wire_format import WireFormat, WireOptions
from applier.model.errors import ProtocolError
from applier.model.events import Column, PlacedRow, RowEvent, RowKind, RowOperation
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.canal_json import CANAL_JSON
from applier.sources.port import Record
from tests.builders.canal_json import ddl, dump, row, watermark
from tests.rig.placing import place_records

STREAM = Stream("changefeed", 0)
PLACER = CANAL_JSON.placer(STREAM)
"""One for all examples, so that what it has learned meets what was mutated."""


def rows_of(event):
    """(kind, image) of what a whole row event must be placed as."""
    if event.operation is RowOperation.DELETE:
        return [(RowKind.DELETE, event.before)]
    upsert = (RowKind.UPSERT, event.after)
    if event.operation is RowOperation.INSERT or (key_of(event.before) and key_of(event.before) == key_of(event.after)):
        return [upsert]
    return [(RowKind.DELETE, event.before), upsert]


def key_of(image):
    return {name: column.value for name, column in image.items() if column.is_key}


def expected(event):
    if not isinstance(event, RowEvent):
        return [event]
    return [(event.commit_ts, kind, event.schema, event.table, dict(sorted(image.items()))) for kind, image in rows_of(event)]


def read(placed):
    if not isinstance(placed, PlacedRow):
        return placed
    shape = placed.shape
    values = dict(zip((column.name for column in shape.columns), CANAL_JSON.image_decoder(shape)(placed.image), strict=True))
    # As a key, -0.0 is 0.0, which is equal to it.
    assert CANAL_JSON.decode_key(placed.key) == [values[column.name] for column in shape.handle_key]
    image = {
        column.name: Column(column.mysql_type, column.flags, values[column.name], column in shape.handle_key) for column in shape.columns
    }
    return placed.commit_ts, RowKind(placed.kind), shape.schema, shape.table, dict(sorted(image.items()))


def assert_ways_agree(placer, value, key=None):
    """Both ways give the same rows and values, or both refuse. Any other exception than ProtocolError passes."""
    record = Record(Offset(77), key, value)
    placer.place_each(77, key, value)
    try:
        events = CANAL_JSON.events(record, RecordPosition(STREAM, Offset(77)))
    except ProtocolError:
        events = None
    try:
        found = [read(event) for _, event in place_records(placer, [record])]
    except ProtocolError as error:
        if events is not None and error.facts["kind"] != "claim_check" and "too large" not in error.message:
            pytest.fail(f"the hot way alone refused: {error}")
        return
    assert events is not None, "the hot way alone accepted"
    assert repr(found) == repr([one for event in events for one in expected(event)])


SEEDS = [
    row(),
    row("UPDATE", old={"b": "x"}),
    row("UPDATE", old={"a": "x"}),
    row("UPDATE", old={}, pk=()),
    row("DELETE"),
    row(
        columns={"id": ("bigint unsigned", str(2**64 - 1)), "f": ("double", "-0"), "x": ("blob", "\xff"), "e": ("enum('a,\"b')", "1")},
        pk=["id"],
    ),
    row(columns={"f": ("float", "-0")}, pk=["f"]),
    row(extension={"claimCheckLocation": "s3://b/x.json"}),
    row(extension={"onlyHandleKey": True}),
    row(extension={"rowkey": "dA=="}),
    ddl("DROP TABLE t"),
    json.loads(watermark()),
]
MEMBERS = sorted(SEEDS[0])
JUNK = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        2**64,
        "",
        "x",
        "INSERT",
        "DELETE",
        "UPDATE",
        [],
        [None],
        [{}],
        [{"a": "1"}],
        {},
        {"a": "varchar"},
        {"a": 1},
        "d",
    ]
)


@given(value=st.binary(max_size=200), key=st.none() | st.binary(max_size=20))
def test_any_bytes_give_events_or_a_protocol_error(value, key):
    with suppress(ProtocolError):
        CANAL_JSON.events(Record(Offset(0), key, value), RecordPosition(STREAM, Offset(0)))
    assert_ways_agree(PLACER, value, key)


@given(seed=st.sampled_from(SEEDS), at=st.integers(0, 600), cut=st.integers(0, 4), put=st.binary(max_size=4))
@settings(max_examples=400, deadline=None)
@example(seed=SEEDS[0], at=0, cut=0, put=b"")
def test_mutated_records_are_read_alike_or_refused_alike(seed, at, cut, put):
    data = dump(seed)
    at %= len(data)
    assert_ways_agree(PLACER, data)
    assert_ways_agree(PLACER, data[:at] + put + data[at + cut :])


@given(seed=st.sampled_from(SEEDS), member=st.sampled_from(MEMBERS), junk=JUNK, repeated=st.booleans(), first=st.booleans())
@settings(max_examples=400, deadline=None)
@example(seed=SEEDS[0] | {"_tidb": {"commitTs": 1, "onlyHandleKey": True}}, member="type", junk="DELETE", repeated=False, first=False)
@example(seed=SEEDS[1], member="old", junk=[{"a": None}], repeated=False, first=False)
def test_members_of_any_kind_repeated_or_not_are_read_alike(seed, member, junk, repeated, first):
    data = dump(seed)
    assert_ways_agree(PLACER, data)
    if not repeated:
        assert_ways_agree(PLACER, dump(seed | {member: junk}))
    elif first:
        assert_ways_agree(PLACER, b'{"%b":%b,' % (member.encode(), dump(junk)) + data[1:])
    else:
        assert_ways_agree(PLACER, data[:-1] + b',"%b":%b}' % (member.encode(), dump(junk)))


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.none() | st.integers(-(2**31), 2**31 - 1).map(str)
columns = st.dictionaries(
    names, st.tuples(st.sampled_from(["varchar", "text", "json"]), texts) | st.tuples(st.just("int"), numbers), min_size=1, max_size=12
)


@given(columns=columns, kind=st.sampled_from(["INSERT", "UPDATE", "DELETE"]), data=st.data())
@settings(max_examples=200, deadline=None)
def test_rows_of_any_names_and_texts_are_read_alike(columns, kind, data):
    key = data.draw(st.lists(st.sampled_from(sorted(columns)), max_size=2, unique=True))
    columns = {name: (word, "1" if name in key and text is None else text) for name, (word, text) in columns.items()}
    changed = data.draw(st.sets(st.sampled_from(sorted(columns))))
    old = {name: "2" for name in columns if name in changed} if kind == "UPDATE" else None
    document = row(kind, columns, pk=key, old=old)
    placer = CANAL_JSON.placer(STREAM)
    for _ in range(2):  # by the full parse, and by what it has learned
        assert_ways_agree(placer, dump(document))
        assert_ways_agree(placer, json.dumps(document, separators=(",", ":")).encode())


@pytest.mark.parametrize("seed", range(6))
def test_what_the_simulators_changefeed_writes_is_read_alike(seed):
    options = ProducerOptions(
        seed=seed,
        form=WireFormat.CANAL_JSON,
        partitions=1 + seed % 3,
        flavour=[Flavour.TIFLOW, Flavour.TICDC][seed % 2],
        compression=["none", "lz4", "snappy"][seed % 3],
        images=ImageOptions(only_updated_columns=seed % 2 == 1),
        wire=WireOptions(content_compatible=seed % 2 == 1),
    )
    streams = {}
    for record in Producer(History(seed), options).log():
        streams.setdefault(record.stream, []).append(record)
    for stream, records in streams.items():
        given = [Record(Offset(number), record.key, record.value) for number, record in enumerate(records)]
        events = [event for one in given for event in CANAL_JSON.events(one, RecordPosition(stream, one.offset))]
        together = [read(event) for _, event in place_records(CANAL_JSON.placer(stream), given)]
        alone = [read(event) for one in given for _, event in CANAL_JSON.placer(stream).place_each(*one)]
        assert repr(together) == repr(alone) == repr([one for event in events for one in expected(event)])
