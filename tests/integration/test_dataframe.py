"""The formats ``ticdc`` and ``binlog`` of ``spark.read`` and ``spark.readStream`` on real servers. One Spark session for all tests."""

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from secrets import token_hex

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from applier.dataframe import register
from applier.spark.jvm import drop_dead_jvm
from tests.builders.wire import column, head, integer_key, record, text
from tests.rig.class_archive import use_class_archive
from tests.rig.database import Kind
from tests.rig.primary import own_primary
from tests.rig.program import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.slow]

BASE = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)
BASE_MS = int(BASE.timestamp()) * 1000
UNSIGNED, BINARY = 128, 1


def ts(second):
    return (BASE_MS + second * 1000) << 18


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    use_class_archive()
    # Spark's own default is the python3 of the path.
    environment = pytest.MonkeyPatch()
    environment.setenv("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    session = builder.config("spark.sql.session.timeZone", "UTC").config("spark.driver.memory", "1g").getOrCreate()
    register(session)
    yield session
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    drop_dead_jvm()
    environment.undo()


@pytest.fixture
def topic(kafka):
    name = f"frame-{token_hex(4)}"
    kafka.create_topic(name, 2, retention_ms="-1")
    yield name
    kafka.delete_topic(name)


def send(kafka, topic, *records, partition=0, time_ms=BASE_MS):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for key, value in records:
        producer.produce(topic, key=key, value=value, partition=partition, timestamp=time_ms)
    assert producer.flush(20) == 0


def image(identity, name="n", amount="1.50", **more):
    return {"id": integer_key(identity), "name": text(name), "amount": column(246, 64, amount), **more}


def changed(second, after=None, before=None, table="orders"):
    # A delete has the image d; an update u and p.
    body = {"d": before} if after is None else {"u": after, **({"p": before} if before else {})}
    return record((head(ts(second), table=table), body))


def history():
    ddl = record((head(ts(0), t=2), {"q": "CREATE TABLE orders (id INT PRIMARY KEY)", "t": 3}))
    return [
        ddl,
        changed(1, image(1, "a")),
        changed(2, image(2, None, None)),
        changed(3, image(1, "b", "12.75"), image(1, "a")),
        changed(4, image(9, "b"), image(1, "b", "12.75")),
        changed(5, before=image(2, None, None)),
        record((head(ts(5), t=3), b"")),
    ]


@pytest.fixture
def filled(kafka, topic):
    send(kafka, topic, *history())
    send(kafka, topic, changed(3, image(77), table="items"), partition=1)
    return {"bootstrap_servers": kafka.bootstrap_servers, "topics": topic}


def changes(spark, options, **more):
    return spark.read.format("ticdc").options(**options | more).load()


def test_every_event_is_a_row_with_its_place_and_its_time(spark, filled):
    rows = changes(spark, filled).orderBy("partition", "offset").collect()
    assert [(r.partition, r.offset, r.op, r.key, r.old_key) for r in rows] == [
        (0, 0, "ddl", None, None),
        (0, 1, "insert", '{"id":1}', None),
        (0, 2, "insert", '{"id":2}', None),
        (0, 3, "update", '{"id":1}', None),
        (0, 4, "update", '{"id":9}', '{"id":1}'),
        (0, 5, "delete", '{"id":2}', None),
        (1, 0, "insert", '{"id":77}', None),
    ]
    update = rows[3]
    assert (update.commit_ts, update.schema, update["table"], update.topic) == (ts(3), "shop", "orders", filled["topics"])
    assert (json.loads(update.before)["name"], json.loads(update.after)) == ("a", {"id": 1, "name": "b", "amount": "12.75"})
    assert rows[0].query.startswith("CREATE TABLE")
    assert spark.sql("SELECT timestamp '2025-06-01 12:00:03'").first()[0] == update.commit_time


def test_a_table_has_its_columns_with_their_types_and_nulls(spark, kafka, topic):
    more = {
        "big": column(8, UNSIGNED, 2**64 - 1),
        "at": column(7, 128, "2025-06-01 20:00:00.25"),
        "local": column(12, 64, "2025-06-01 20:00:00"),
        "day": column(10, 64, "2025-06-01"),
        "raw": column(252, BINARY, "/wA="),
        "ratio": column(5, 64, 0.1),
    }
    send(
        kafka,
        topic,
        changed(1, image(1, **more)),
        changed(2, image(2, amount="-123.4567", **{n: c | {"v": None} for n, c in more.items()})),
    )
    send(kafka, topic, changed(2, {"id": integer_key(3), "later": column(3, 64, 7)}), changed(3, image(4), table="items"), partition=1)
    frame = changes(spark, {"bootstrap_servers": kafka.bootstrap_servers, "topics": topic}, table="Shop.Orders", time_zone="+08:00")
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema["after"].dataType}
    assert kinds == {
        "id": "int",
        "name": "string",
        "amount": "decimal(38,4)",
        "big": "decimal(20,0)",
        "at": "timestamp",
        "local": "timestamp_ntz",
        "day": "date",
        "raw": "binary",
        "ratio": "double",
        "later": "int",
    }
    first, second, third = (r.after for r in frame.orderBy("commit_ts", "partition").collect())
    assert (first.amount, first.big, first.day, bytes(first.raw), first.ratio) == (
        Decimal("1.5000"), 2**64 - 1, date(2025, 6, 1), b"\xff\x00", 0.1,
    )  # fmt: skip
    assert first.local == datetime(2025, 6, 1, 20, 0)  # noqa: DTZ001 - TIMESTAMP_NTZ
    assert frame.where("after.at = timestamp '2025-06-01 12:00:00.25'").count() == 1
    assert (second.id, second.amount, second.big, second["at"], second.raw, second.later) == (
        2,
        Decimal("-123.4567"),
        None,
        None,
        None,
        None,
    )
    assert (third.id, third.name, third.later) == (3, None, 7)
    assert frame.where("after.id = 2").count() == 1, "a filter of Spark's own"


def test_a_frame_reads_the_same_records_however_often_and_start_and_end_cut_it(spark, kafka, filled):
    frame = changes(spark, filled)
    assert frame.count() == 7
    send(kafka, filled["topics"], changed(60, image(3)), time_ms=BASE_MS + 60_000)
    assert frame.count() == 7
    ids = changes(spark, filled, start="2025-06-01T12:00:30Z").select("key").collect()
    assert [r.key for r in ids] == ['{"id":3}']
    assert changes(spark, filled, end="2025-06-01T12:00:30+00:00").count() == 7
    offsets = json.dumps({filled["topics"]: {"0": 3}})
    assert sorted(r.offset for r in changes(spark, filled, start=offsets, partition="0").collect()) == [3, 4, 5, 7]
    assert sorted(r.offset for r in changes(spark, filled, end=offsets, partition="0", max_records_per_task="1").collect()) == [0, 1, 2]
    assert changes(spark, filled, start="latest").count() == 0
    assert changes(spark, filled, partition="0", resolved="true").where("op = 'resolved'").count() == 1
    assert changes(spark, filled, tables="*.*,!shop.orders").count() == 1


def test_what_cannot_be_read_stops_with_its_place_or_is_kept_as_a_row(spark, kafka, filled):
    send(kafka, filled["topics"], (b"rubbish", b"more"), partition=1)
    with pytest.raises(Exception, match=r"offset=1"):
        changes(spark, filled).collect()
    (kept,) = changes(spark, filled, on_unreadable="keep").where("op = 'unreadable'").collect()
    assert (kept.partition, kept.offset, bool(kept.error)) == (1, 1, True)


def test_a_value_that_its_column_cannot_hold_stops_with_its_place_and_the_columns_that_would_hold_it(spark, filled):
    with pytest.raises(Exception, match=r"does not fit the type of its column.*column=name.*offset=1") as caught:
        changes(spark, filled, table="shop.orders", columns="id INT, name INT").collect()
    columns = re.search(r'option columns="([^"]*)"', str(caught.value))[1]
    assert columns == "`id` INT, `name` STRING"
    assert changes(spark, filled, table="shop.orders", columns=columns).where("after.name = 'a'").count() == 1


def test_columns_by_name_spare_the_search_and_leave_others_out(spark, filled):
    frame = changes(spark, filled, table="shop.orders", columns="ID BIGINT, name STRING")
    assert frame.where("op = 'insert'").orderBy("offset").select("after.*").collect() == [(1, "a"), (2, None)]


def test_a_column_that_held_texts_and_bytes_is_binary(spark, kafka, topic):
    send(kafka, topic, changed(1, image(1, b=column(252, BINARY, "/wA="))), changed(2, image(2, b=text("x"))))
    frame = changes(spark, {"bootstrap_servers": kafka.bootstrap_servers, "topics": topic}, table="shop.orders")
    assert [bytes(r.b) for r in frame.orderBy("offset").select("after.b").collect()] == [b"\xff\x00", b"x"]


def example():
    spec = importlib.util.spec_from_file_location("land_changelog", ROOT / "docs" / "examples" / "land_changelog.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_lands_a_table_in_parquet_by_and_by_and_shows_a_row_as_it_was(spark, kafka, filled, tmp_path):
    options = {**filled, "table": "shop.orders", "max_records_per_batch": "5"}
    example().land(spark, options, str(tmp_path))
    truncation = record((head(ts(90), t=2), {"q": "TRUNCATE TABLE `orders`", "t": 11}))
    send(kafka, filled["topics"], changed(60, image(2, "again")), truncation)
    example().land(spark, options, str(tmp_path))

    landed = spark.read.parquet(str(tmp_path / "rows"))
    assert sorted((r.partition, r.offset) for r in landed.collect()) == [(0, n) for n in [0, 1, 2, 3, 4, 5, 7, 8]]

    def name_at(key, second):
        row = example().row_at(landed, json.dumps({"id": key}, separators=(",", ":")), f"2025-06-01T12:00:{second:02}Z")
        return None if row is None else row["name"]

    assert [name_at(1, second) for second in (0, 2, 3, 4)] == [None, "a", "b", None], "the key was changed at 4"
    assert name_at(9, 4) == "b"
    versions = [example().row_at(landed, '{"id":2}', f"2025-06-01T12:{minute}Z") for minute in ("00:02", "00:05", "01:00", "01:30")]
    assert [None if v is None else v["name"] for v in versions] == [None, None, "again", None], "the table was emptied at 01:30"
    assert versions[0] == {"id": 2, "name": None, "amount": None}


def test_the_example_ends_at_a_zero_date_and_lands_it_with_the_columns_of_the_message(spark, kafka, topic, tmp_path, monkeypatch, capsys):
    send(kafka, topic, changed(1, image(1, d=column(10, BINARY, "0000-00-00"))))
    to = ["--to", str(tmp_path), "--key", '{"id":1}', "--at", "2025-06-01T13:00:00Z"]
    words = ["land_changelog.py", "--servers", kafka.bootstrap_servers, "--topic", topic, "--table", "shop.orders", *to]
    # The session is the tests'.
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(Exception, match="does not fit the type of its column") as caught:
        example().main()
    columns = re.search(r'option columns="([^"]*)"', str(caught.value))[1]
    (tmp_path / "checkpoint").rename(tmp_path / "before")
    monkeypatch.setattr("sys.argv", [*words, "--columns", columns])
    example().main()
    assert "'d': '0000-00-00'" in capsys.readouterr().out


def forget_the_end_of_batches(directory):
    # As after a death between the offsets and the commit of a batch: Spark runs the batch again, with the offsets it has noted.
    for part in ("checkpoint/commits", "rows/_spark_metadata"):
        for file in (directory / part).iterdir():
            file.unlink()


def test_a_batch_that_is_repeated_has_the_same_rows_and_a_topic_that_was_created_again_stops_the_query(spark, kafka, filled, tmp_path):
    example().land(spark, filled, str(tmp_path))
    before = sorted(r.offset for r in spark.read.parquet(str(tmp_path / "rows")).where("partition = 0").collect())
    forget_the_end_of_batches(tmp_path)
    send(kafka, filled["topics"], changed(60, image(2, "again")))
    example().land(spark, filled, str(tmp_path))
    after = sorted(r.offset for r in spark.read.parquet(str(tmp_path / "rows")).where("partition = 0").collect())
    assert after == [*before, 7]

    frame = changes(spark, filled)
    kafka.delete_topic(filled["topics"])
    kafka.create_topic(filled["topics"], 2, retention_ms="-1")
    send(kafka, filled["topics"], *history(), *history())
    with pytest.raises(Exception, match="deleted and created again"):
        example().land(spark, filled, str(tmp_path))
    with pytest.raises(Exception, match=r"deleted and created again.*Make the DataFrame again"):
        frame.collect()
    assert changes(spark, filled).count() == 12
    forget_the_end_of_batches(tmp_path)
    with pytest.raises(Exception, match="deleted and created again"):
        example().land(spark, filled, str(tmp_path))
    assert not list((tmp_path / "rows" / "_spark_metadata").glob("[0-9]*")), "the batch is not repeated with other records"
    example().land(spark, filled, str(tmp_path / "new"))
    assert spark.read.parquet(str(tmp_path / "new" / "rows")).count() == 12


@pytest.fixture(scope="module")
def primary():
    with own_primary(Kind.MARIADB) as server:
        yield server


def sold(number):
    return f"INSERT INTO frame.orders VALUES ({number}, 'n{number}', {number}.25)"


def test_a_binlog_is_read_by_file_with_its_places_and_a_query_goes_on_behind_them(spark, primary, tmp_path):
    primary.run("CREATE DATABASE frame", "CREATE TABLE frame.orders (id INT PRIMARY KEY, name VARCHAR(20), amount DECIMAL(10,2))")
    start = primary.place()
    primary.run(sold(1), "UPDATE frame.orders SET id = 9 WHERE id = 1", "FLUSH BINARY LOGS", sold(2), "DELETE FROM frame.orders")
    options = {"url": primary.url, "start": start, "table": "frame.orders"}
    frame = spark.read.format("binlog").options(**options).load()
    assert frame.rdd.getNumPartitions() == 2
    primary.run(sold(3))  # not of this frame
    rows = frame.orderBy("commit_ts", "event").collect()
    assert [(row.op, row.key, row.old_key) for row in rows] == [
        ("insert", '{"id":1}', None),
        ("update", '{"id":9}', '{"id":1}'),
        ("insert", '{"id":2}', None),
        ("delete", '{"id":2}', None),
        ("delete", '{"id":9}', None),
    ]
    assert rows[1].after.asDict() == {"id": 9, "name": "n1", "amount": Decimal("1.25")}
    assert start == f"{rows[0].file}:{rows[0].position}"
    assert rows[0].gtid.startswith("0-1-")
    assert abs((datetime.now(UTC) - rows[0].commit_time.replace(tzinfo=UTC)).total_seconds()) < 600
    stream = spark.readStream.format("binlog").options(**options).load()
    for expected in (6, 7):
        query = stream.writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/c").option("path", f"{tmp_path}/rows")
        query.trigger(availableNow=True).start().awaitTermination()
        assert spark.read.parquet(f"{tmp_path}/rows").count() == expected
        primary.run(sold(expected))
