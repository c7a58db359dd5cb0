"""The options: what they name, and what is said of a wrong one; and the ranges that start and end give."""

import pytest

from applier.dataframe.options import read_options
from applier.dataframe.reading import divided, range_of
from applier.model.errors import ApplierError
from applier.model.events import FoldedName, TableName
from applier.model.position import Listing, Offset, PartitionExtent, Stream
from applier.model.range_report import RangeId

ONE, TWO = Stream("feed", 0), Stream("feed", 1)
KAFKA = {"bootstrap_servers": "kafka:9092", "topics": "feed"}


class ListedOffsets:
    def listing(self):
        return Listing({ONE: PartitionExtent(Offset(3), Offset(9)), TWO: PartitionExtent(Offset(0), Offset(5))})

    @property
    def times(self):
        return self

    def offsets_at(self, streams, time_ms):
        assert time_ms == 1_748_779_200_000
        return dict.fromkeys(streams, Offset(4))


def ranges(**options):
    return [(one.start, one.end) for one in range_of(read_options(KAFKA | options), ListedOffsets())]


def test_options_are_those_of_the_source_and_of_reading():
    found = read_options(
        {
            **KAFKA,
            "topics": "feed, other",
            "Time_Zone": "+08:00",
            "kafka.security.protocol": "SASL_SSL",
            "claim_check.storage": "/claims",
            "claim_check.max_object_size": "1MiB",
            "claim_check.options.auto_mkdir": "true",
            "tables": "shop.*",
            "table": "Shop.Orders",
            "partition": "0,2",
        }
    )
    assert found.kafka.topics == ("feed", "other")
    assert dict(found.kafka.properties) == {"security.protocol": "SASL_SSL"}
    assert (found.claim_check.storage, found.claim_check.max_object_bytes, found.time_zone) == ("/claims", 1 << 20, "+08:00")
    assert found.claim_check.options == {"auto_mkdir": "true"}
    assert (found.table, found.partitions) == (FoldedName("shop", "orders"), frozenset({0, 2}))
    assert not found.tables.has(TableName("other", "t"))


def test_a_binlog_is_not_read_as_topics(tmp_path):
    path = tmp_path / "applier.toml"
    path.write_text('[source]\nkind = "binlog"\nurl = "mysql+pymysql://u@h/"\n[sink]\nurl = "sqlite:///r.db"\n', encoding="utf-8")
    with pytest.raises(ApplierError, match="cannot read the source") as raised:
        read_options({"config": str(path)})
    assert 'kind = "kafka"' in raised.value.remedy
    assert read_options(KAFKA)


def test_a_configuration_file_counts_where_no_option_does(tmp_path):
    path = tmp_path / "applier.toml"
    text = '[source]\nbootstrap_servers = "a:1"\ntopics = ["one"]\ntime_zone = "Asia/Shanghai"\n[sink]\nurl = "sqlite:///r.db"\n'
    path.write_text(text, encoding="utf-8")
    found = read_options({"config": str(path), "topics": "two"})
    assert (found.kafka.bootstrap_servers, found.kafka.topics, found.time_zone) == ("a:1", ("two",), "Asia/Shanghai")


def test_no_secret_is_in_the_text_of_the_options():
    shown = repr(
        read_options({**KAFKA, "kafka.sasl.password": "hunter2", "claim_check.storage": "s3://b", "claim_check.options.secret": "hunter2"})
    )
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({}, [(3, 9), (0, 5)]),
        ({"start": "latest"}, [(9, 9), (5, 5)]),
        ({"end": "earliest"}, [(3, 3), (0, 0)]),
        ({"start": "2025-06-01T12:00:00Z"}, [(4, 9), (4, 5)]),
        ({"start": "2025-06-01T14:00:00+02:00", "end": "2025-06-01T12:00:00Z"}, [(4, 4), (4, 4)]),
        ({"start": '{"feed": {"0": 5}}', "end": '{"feed": {"1": 2}}'}, [(5, 9), (0, 2)]),
        ({"partition": "1"}, [(0, 5)]),
    ],
)
def test_start_and_end_give_the_range_of_each_partition(options, bounds):
    assert ranges(**options) == bounds


def test_a_large_range_is_read_by_several_tasks_and_an_empty_one_by_none():
    assert list(divided([RangeId(ONE, Offset(3), Offset(9)), RangeId(TWO, Offset(1), Offset(1))], 4)) == [
        RangeId(ONE, Offset(3), Offset(7)),
        RangeId(ONE, Offset(7), Offset(9)),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topic": "x"}, "Did you mean topics"),
        ({"start_ts": "5"}, "no option 'start_ts'"),
        ({"bootstrap_servers": ""}, "bootstrap_servers"),
        ({"start": "yesterday"}, "Write earliest, latest, a time"),
        ({"start": "2025-06-01T12:00:00"}, "no offset from UTC"),
        ({"start": '{"feed": 5}'}, "Write earliest, latest, a time"),
        ({"start": '{"feed": {"0": 2}}'}, "It holds the offsets from 3 to 9"),
        ({"start": '{"feed": {"7": 2}}'}, "The partitions are: feed/0, feed/1"),
        ({"table": "orders"}, "Write schema and table"),
        ({"columns": "id INT"}, "Name the table too"),
        ({"partition": "x"}, "not a list of numbers"),
        ({"partition": "5"}, "The partitions are: feed/0, feed/1"),
        ({"partition": "0,5"}, "names what no topic has: 5"),
        ({"on_unreadable": "quarantine"}, "Write one of: stop, keep"),
        ({"max_records_per_batch": "0"}, "at least 1"),
        ({"kafka.enable.auto.commit": "true"}, "cannot set"),
    ],
)
def test_a_wrong_option_is_named_with_what_to_write(options, words):
    with pytest.raises(ApplierError) as caught:
        ranges(**options)
    assert words in str(caught.value)


def test_what_is_missing_is_named_as_an_option():
    with pytest.raises(ApplierError) as caught:
        read_options({"topics": "feed"})
    assert "bootstrap_servers" in str(caught.value)
    assert '.option("bootstrap_servers"' in caught.value.remedy


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"topic": "feed"}, {"topics": "feed"}),
        ({"start_ts": "5"}, {"table": "shop.orders"}),
        ({"start": "yesterday"}, {"start": "2025-06-01T12:00:00Z"}),
        ({"start": '{"feed": {"0": 2}}'}, {"start": '{"feed": {"0": 3}}'}),
        ({"start": '{"feed": {"7": 2}}'}, {"start": '{"feed": {"1": 2}}'}),
        ({"table": "orders"}, {"table": "shop.orders"}),
        ({"columns": "id INT"}, {"columns": "id INT", "table": "shop.orders"}),
        ({"partition": "x"}, {"partition": "0,1"}),
        ({"partition": "5"}, {"partition": "1"}),
        ({"on_unreadable": "quarantine"}, {"on_unreadable": "keep"}),
        ({"max_records_per_batch": "0"}, {"max_records_per_batch": "1"}),
    ],
)
def test_after_what_the_remedy_says_the_ranges_are_read(wrong, right):
    with pytest.raises(ApplierError):
        ranges(**wrong)
    assert ranges(**right)


def test_a_missing_option_is_given_as_the_remedy_says():
    with pytest.raises(ApplierError):
        read_options({"topics": "feed"})
    assert read_options({"topics": "feed", "bootstrap_servers": "kafka:9092"})
