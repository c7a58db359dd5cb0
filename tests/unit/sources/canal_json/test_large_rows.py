"""Rows that were too large for Kafka (canal_json_and_simple.md 2.6)."""

import json
from base64 import b64encode
from dataclasses import dataclass, field

import cramjam
import lz4.frame
import pytest

from applier.model.errors import ProtocolError
from applier.model.events import RowEvent, RowKind, RowOperation
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.canal_json import CanalJsonDecoder
from applier.sources.port import PlacedRows, Record
from applier.sources.ticdc.large_row import WholeRowSources
from tests.builders.canal_json import TS, dump, row, watermark

STREAM = Stream("changefeed", 0)
PLACE = RecordPosition(STREAM, Offset(4))
LOCATION = "s3://bucket/dir/1.json"
WHOLE = {"a": ("varchar", "aa"), "b": ("blob", "\xff"), "n": ("int", "5")}
KEY = {"a": ("varchar", "aa")}


@dataclass(frozen=True)
class Objects:
    """A storage in memory. ``read_names``: what was asked for."""

    contents: dict
    read_names: list = field(default_factory=list)

    def read(self, names):
        for name in names:
            self.read_names.append(name)
            yield self.contents[name]


class Lookup:
    """Stands for upstream: only that it is there counts here."""


def wrapped(value):
    return dump({"key": None, "value": b64encode(value).decode()})


def announced(kind="INSERT", columns=None, **others):
    return row(kind, KEY if columns is None else columns, extension={"claimCheckLocation": LOCATION}, **others)


def placed(decoder, *documents):
    records = [Record(Offset(number), None, dump(one) if isinstance(one, dict) else one) for number, one in enumerate(documents)]
    for part in decoder.placer(STREAM).place_all(records):
        assert isinstance(part, PlacedRows)
        for number, kind, key, image in zip(part.shape, part.kind, part.key, part.image, strict=True):
            shape = part.shapes[number]
            yield RowKind(kind).name, decoder.decode_key(key), list(decoder.image_decoder(shape)(image)), shape.placeholder


def snappy(data):
    return bytes(cramjam.snappy.compress_raw(data))


@pytest.mark.parametrize("compress", [bytes, lz4.frame.compress, snappy])
@pytest.mark.parametrize("wrap", [bytes, wrapped])
def test_an_object_holds_the_record_raw_or_wrapped_and_as_compressed_as_the_others(wrap, compress):
    objects = Objects({"1.json": wrap(compress(dump(row(columns=WHOLE, pk=()))))})
    decoder = CanalJsonDecoder(WholeRowSources(claims=objects))
    assert list(placed(decoder, compress(dump(announced(pk=()))))) == [("UPSERT", [], ["aa", b"\xff", 5], False)]
    record = Record(Offset(4), None, compress(dump(announced(pk=()))))
    (event,) = decoder.whole_events(record, PLACE)
    assert isinstance(event, RowEvent)
    assert {name: column.value for name, column in event.after.items()} == {"a": "aa", "b": b"\xff", "n": 5}
    assert (event.claim_check, decoder.events(record, PLACE)[0].claim_check) == (None, LOCATION)


def test_objects_are_read_together_in_the_order_of_their_records():
    names = [f"{number}.json" for number in range(5)]
    contents = {name: dump(row(columns=WHOLE | {"a": ("varchar", name)})) for name in names}
    objects = Objects(contents)
    records = [row(columns={"a": ("varchar", name)}, extension={"claimCheckLocation": f"x/{name}"}) for name in names]
    found = list(placed(CanalJsonDecoder(WholeRowSources(claims=objects)), row(columns=WHOLE), *records))
    assert [key for _, key, _, _ in found] == [["aa"], *[[name] for name in names]]
    assert objects.read_names == names


OTHERS = {
    "another timestamp": row(columns=WHOLE, ts=TS + 1),
    "another table": row(columns=WHOLE, table="u"),
    "another operation": row("DELETE", WHOLE),
    "another key": row(columns=WHOLE | {"a": ("varchar", "bb")}),
    "a row without its key": row(columns={"b": ("int", "1")}, pk=["b"]),
    "a reduced row": row(columns=KEY, extension={"onlyHandleKey": True}),
    "a watermark": json.loads(watermark()),
    "something else": {"key": None, "value": 5},
    "bad base64": {"key": None, "value": "!"},
}


@pytest.mark.parametrize("case", OTHERS)
def test_an_object_that_is_not_the_announced_row_is_refused(case):
    decoder = CanalJsonDecoder(WholeRowSources(claims=Objects({"1.json": dump(OTHERS[case])})))
    with pytest.raises(ProtocolError, match="the claim-check object cannot be used") as caught:
        list(placed(decoder, announced()))
    assert {"claim_check": LOCATION, "schema": "d", "table": "t", "commit_ts": TS}.items() <= caught.value.facts.items()
    with pytest.raises(ProtocolError):
        decoder.whole_events(Record(Offset(4), None, dump(announced())), PLACE)


def test_without_a_storage_the_setting_is_named():
    with pytest.raises(ProtocolError, match="claim-check storage") as caught:
        list(placed(CanalJsonDecoder(), announced()))
    assert "source.claim_check.storage" in caught.value.remedy


def test_a_row_with_its_key_alone_is_read_from_upstream():
    decoder = CanalJsonDecoder(WholeRowSources(lookup=Lookup()))
    reduced = {"extension": {"onlyHandleKey": True}}
    # The handle key is all that was sent: pkNames is empty where it is a unique index.
    found = list(
        placed(
            decoder,
            row(columns=KEY, pk=(), **reduced),
            row("UPDATE", KEY, pk=(), old={"a": "old"}, **reduced),
            row("UPDATE", KEY, old={}, **reduced),
            row("DELETE", KEY, pk=(), **reduced),
        )
    )
    assert found == [
        ("UPSERT", ["aa"], ["aa"], True),
        ("DELETE", ["old"], ["old"], False),
        ("UPSERT", ["aa"], ["aa"], True),
        ("UPSERT", ["aa"], ["aa"], True),
        ("DELETE", ["aa"], ["aa"], False),
    ]


@pytest.mark.parametrize("types", [{}, None], ids=["tiflow", "ticdc"])
def test_a_large_row_of_a_table_without_a_key_has_no_columns_but_its_object(types):
    nothing = {"pk": (), "sqlType": None, "mysqlType": types}
    objects = {
        "1.json": dump(row(columns=WHOLE, pk=())),
        "2.json": dump(row("UPDATE", WHOLE, pk=(), old={name: value for name, (_, value) in WHOLE.items()} | {"n": "4"})),
        "3.json": dump(row("DELETE", WHOLE, pk=())),
    }
    announcing = [
        row("INSERT", {}, extension={"claimCheckLocation": "x/1.json"}, **nothing),
        row("UPDATE", {}, old={}, extension={"claimCheckLocation": "x/2.json"}, **nothing),
        row("DELETE", {}, extension={"claimCheckLocation": "x/3.json"}, **nothing),
    ]
    decoder = CanalJsonDecoder(WholeRowSources(claims=Objects(objects)))
    whole = ["aa", b"\xff", 5]
    assert [(kind, values) for kind, _, values, _ in placed(decoder, *announcing)] == [
        ("UPSERT", whole),
        ("DELETE", ["aa", b"\xff", 4]),
        ("UPSERT", whole),
        ("DELETE", whole),
    ]
    (event,) = decoder.whole_events(Record(Offset(4), None, dump(announcing[0])), PLACE)
    assert event.after["n"].value == 5
    (event,) = decoder.events(Record(Offset(4), None, dump(announcing[0])), PLACE)
    assert (event.after, event.claim_check) == ({}, "x/1.json")


@pytest.mark.parametrize("kind", ["INSERT", "DELETE"])
def test_of_a_large_row_without_a_key_nothing_is_left_without_its_object(kind):
    decoder = CanalJsonDecoder(WholeRowSources(lookup=Lookup()))
    with pytest.raises(ProtocolError, match="the row has no key"):
        list(placed(decoder, row(kind, {}, pk=(), mysqlType=None, extension={"onlyHandleKey": True})))


def test_without_upstream_such_a_row_is_refused_and_its_delete_is_not():
    reduced = {"extension": {"onlyHandleKey": True}}
    assert list(placed(CanalJsonDecoder(), row("DELETE", KEY, **reduced))) == [("DELETE", ["aa"], ["aa"], False)]
    with pytest.raises(ProtocolError, match="only its handle key was sent") as caught:
        list(placed(CanalJsonDecoder(), row(columns=KEY, **reduced)))
    assert "source.upstream" in caught.value.remedy


def test_a_reduced_row_is_shown_as_one():
    (event,) = CanalJsonDecoder().events(Record(Offset(4), None, dump(row(columns=KEY, extension={"onlyHandleKey": True}))), PLACE)
    assert (event.operation, event.only_handle_key, list(event.after)) == (RowOperation.INSERT, True, ["a"])
