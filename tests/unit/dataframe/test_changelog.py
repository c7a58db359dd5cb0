"""Events of a record as rows of the changelog, without Spark."""

import json
from base64 import b64encode

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from applier.dataframe.changelog import ChangelogRows, JsonImages, TableImages, columns_of, schema_text
from applier.dataframe.options import read_options
from applier.dataframe.position_columns import TopicColumns
from applier.dataframe.reading import RangeRows, StreamReader
from applier.dataframe.source import ChangelogSource
from applier.model.errors import ConfigError, ProtocolError, SourceError
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.changefeed import ChangefeedKit
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.open_protocol.decoder import OPEN_PROTOCOL
from applier.sources.port import Record
from applier.sources.ticdc.tso import TSO_TIMELINE, physical_ms
from tests.builders.wire import TS, column, dump, head, integer_key, record, text

PLACE = RecordPosition(Stream("feed", 3), Offset(8))
NAMES = [name for name, _ in columns_of(TopicColumns(TSO_TIMELINE))]
TWO_KEYS = {"b": column(15, 10, "x\udcff"), "A": integer_key(2**63, t=8)}


def rows(*events, decoder=OPEN_PROTOCOL, images=None, data=None, **more):
    key, value = data or record(*events)
    maker = ChangelogRows(decoder=decoder, images=images or JsonImages(), positions=TopicColumns(TSO_TIMELINE), **more)
    return [dict(zip(NAMES, row, strict=True)) for row in maker.of(Record(PLACE.offset, key, value), PLACE)]


def test_each_event_of_a_record_is_a_row_with_its_number():
    found = rows((head(), {"u": {"id": integer_key(1)}}), (head(t=2), {"q": "DROP TABLE orders", "t": 4}))
    assert [(r["topic"], r["partition"], r["offset"], r["event"], r["op"]) for r in found] == [
        ("feed", 3, 8, 0, "insert"),
        ("feed", 3, 8, 1, "ddl"),
    ]
    assert found[0]["commit_ts"] == TS
    assert found[0]["commit_time"].timestamp() * 1000 == physical_ms(TS)


def test_a_key_is_json_in_the_order_of_its_names_whatever_the_bytes():
    (row,) = rows((head(), {"u": {**TWO_KEYS, "v": text("x")}}))
    assert row["key"] == '{"A":9223372036854775808,"b":"x\\udcff"}'
    assert json.loads(row["after"])["b"] == "x\udcff"
    row["key"].encode()


def test_bytes_are_base64_and_decimals_stay_text():
    (row,) = rows((head(), {"u": {"id": integer_key(1), "raw": column(252, 1, "/wA="), "d": column(246, 0, "1.50"), "n": text(None)}}))
    assert json.loads(row["after"]) == {"id": 1, "raw": b64encode(b"\xff\x00").decode(), "d": "1.50", "n": None}


@pytest.mark.parametrize(
    ("before", "old_key"),
    [
        ({"id": integer_key(1), "v": text("a")}, '{"id":1}'),
        ({"id": integer_key(2), "v": text("a")}, None),
        ({"v": text("a")}, None),
    ],
)
def test_an_update_that_changes_the_key_has_the_old_one(before, old_key):
    (row,) = rows((head(), {"u": {"id": integer_key(2), "v": text("b")}, "p": before}))
    assert (row["op"], row["key"], row["old_key"]) == ("update", '{"id":2}', old_key)


def test_resolved_events_are_rows_where_they_are_wanted():
    event = (head(t=3), b"")
    assert rows(event) == []
    (row,) = rows(event, resolved=True)
    assert (row["op"], row["commit_ts"], row["schema"]) == ("resolved", TS, None)


def test_a_record_that_cannot_be_read_stops_with_its_place_or_is_a_row():
    with pytest.raises(ProtocolError) as caught:
        rows(data=(b"x", b"y"))
    assert caught.value.facts["offset"] == 8
    (row,) = rows(data=(b"x", b"y"), keeps_unreadable=True)
    assert (row["op"], row["offset"], row["commit_ts"]) == ("unreadable", 8, None)
    assert row["error"]


def test_a_timestamp_beyond_bigint_cannot_be_read():
    event = (head(ts=2**63), {"u": {"id": integer_key(1)}})
    with pytest.raises(ProtocolError, match="too large"):
        rows(event)
    (row,) = rows(event, keeps_unreadable=True)
    assert (row["op"], row["commit_ts"]) == ("unreadable", None)


def test_a_claim_check_row_has_the_columns_of_its_object(tmp_path):
    whole = {"id": integer_key(1), "body": text("long")}
    key, value = record((head(), {"u": whole}))
    (tmp_path / "x.json").write_bytes(dump({"key": b64encode(key).decode(), "value": b64encode(value).decode()}))
    announced = (head(ccl="s3://elsewhere/x.json"), {"u": {"id": integer_key(1)}})
    decoder = ChangefeedKit(KafkaSettings(bootstrap_servers="unused", topics=("unused",), group_id="unused")).decoder(
        claim_check=ClaimCheckSettings(storage=str(tmp_path))
    )
    first, second = rows((head(), {"u": {"id": integer_key(5)}}), announced, decoder=decoder)
    assert (first["after"], json.loads(second["after"])) == ('{"id":5}', {"id": 1, "body": "long"})

    with pytest.raises(ProtocolError, match="claim-check storage") as caught:
        rows(announced)
    assert caught.value.facts["offset"] == 8
    assert "claim_check.storage" in caught.value.remedy
    (tmp_path / "x.json").unlink()
    with pytest.raises(ProtocolError, match="object"):
        rows(announced, decoder=decoder)


TABLE = StructType([StructField("ID", IntegerType()), StructField("v", StringType())])


def test_typed_images_have_the_columns_of_the_table_and_null_where_one_is_missing():
    images = TableImages.of_struct(TABLE, "UTC", is_strict=True)
    (row,) = rows((head(), {"u": {"id": integer_key(1), "v": text(None)}}), images=images)
    assert (row["before"], row["after"]) == (None, {"ID": 1, "v": None})


def test_a_column_that_nobody_knows_stops_unless_the_columns_were_named():
    event = (head(), {"u": {"id": integer_key(1), "new": text("x")}})
    with pytest.raises(SourceError, match="a column that the table did not have") as caught:
        rows(event, images=TableImages.of_struct(TABLE, "UTC", is_strict=True))
    assert (caught.value.facts["column"], caught.value.facts["offset"], caught.value.facts["table"]) == ("new", 8, "orders")
    (row,) = rows(event, images=TableImages.of_struct(TABLE, "UTC", is_strict=False))
    assert row["after"] == {"ID": 1}


@pytest.mark.parametrize(("value", "fitting"), [(column(252, 1, "/wA="), "BINARY"), (column(8, 0, 2**40), "STRING")])
def test_a_value_that_does_not_fit_names_a_type_that_holds_it(value, fitting):
    struct = StructType([StructField("a", IntegerType())])
    with pytest.raises(SourceError, match="does not fit") as caught:
        rows((head(), {"u": {"a": value}}), images=TableImages.of_struct(struct, "UTC", is_strict=True))
    assert f'columns="`a` {fitting}"' in caught.value.remedy


def schema(image, names=NAMES):
    return StructType([StructField(name, image if name in {"before", "after"} else StringType()) for name in names])


KAFKA = {"bootstrap_servers": "127.0.0.1:1", "topics": "feed"}


def test_a_schema_that_is_none_of_the_changelog_is_refused():
    with pytest.raises(ConfigError, match="not a schema of the format ticdc"):
        ChangelogSource(KAFKA).streamReader(schema(StringType(), NAMES[1:]))
    with pytest.raises(ConfigError, match="needs the option table"):
        ChangelogSource(KAFKA).streamReader(schema(TABLE))
    ChangelogSource(KAFKA | {"table": "shop.orders"}).streamReader(schema(TABLE))
    ChangelogSource(KAFKA).streamReader(schema(StringType()))


def test_a_streaming_query_has_no_end():
    with pytest.raises(ConfigError, match="has no end"):
        StreamReader(RangeRows(None, None, None), read_options(KAFKA | {"end": "earliest"}))
    StreamReader(RangeRows(None, None, None), read_options(KAFKA))


def test_the_schema_names_each_column_once():
    assert schema_text(TopicColumns(TSO_TIMELINE), "id INT").count("STRUCT<id INT>") == 2
    assert len(set(NAMES)) == len(NAMES) == schema_text(TopicColumns(TSO_TIMELINE)).count("`") // 2
