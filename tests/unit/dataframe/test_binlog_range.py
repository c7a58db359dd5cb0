"""Places of a binlog that the options of the format ``binlog`` name, and the tasks that read it."""

import pytest

from applier.dataframe.binlog_source import position_of
from applier.dataframe.options import read_binlog_options
from applier.model.errors import ApplierError
from applier.model.range_report import RangeId
from applier.sources.binlog.extent import BinlogExtent
from applier.sources.binlog.position import STREAM, BinlogPosition

URL = "mysql+pymysql://reader@primary:3306/"
KIT = read_binlog_options({"url": URL}).kit


def at(file, position):
    return BinlogPosition(0, file, position).number


LOG = BinlogExtent(settings=KIT.settings, identity="7", base_name="binlog", first_file=3, end=at(5, 1000))


def test_places_are_the_ends_of_the_log_or_named_by_file_and_position():
    named = [position_of("start", text, KIT, LOG) for text in ("earliest", "Latest", "binlog.000004:120")]
    assert named == [at(3, 4), at(5, 1000), at(4, 120)]


@pytest.mark.parametrize(
    ("wrong", "right"), [("binlog.000002:4", "binlog.000003:4"), ("yesterday", "latest"), ("2025-06-01T12:00:00", "earliest")]
)
def test_after_what_the_remedy_says_a_place_is_read(wrong, right):
    with pytest.raises(ApplierError) as raised:
        position_of("start", wrong, KIT, LOG)
    assert right.partition(":")[0] in raised.value.remedy.lower()
    assert position_of("start", right, KIT, LOG)


def test_each_file_is_a_task_and_an_empty_range_is_none():
    parts = list(LOG.parts(RangeId(STREAM, at(3, 120), at(5, 300))))
    assert [(part.start, part.end) for part in parts] == [(at(3, 120), at(4, 4)), (at(4, 4), at(5, 4)), (at(5, 4), at(5, 300))]
    assert list(LOG.parts(RangeId(STREAM, at(3, 4), at(3, 4)))) == []


def test_a_batch_ends_after_so_many_files_or_where_the_log_ends():
    assert LOG.end_of_files(at(3, 120), 1) == at(4, 4)
    assert LOG.end_of_files(at(3, 120), 9) == LOG.end


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "url"),
        ({"url": URL, "topics": "feed"}, "no option 'topics'"),
        ({"url": URL, "files": "1"}, "max_files_per_batch"),
        ({"url": "sqlite:///x.db"}, "MySQL family"),
    ],
)
def test_a_wrong_option_of_a_binlog_is_named(options, words):
    with pytest.raises(ApplierError) as raised:
        read_binlog_options(options)
    assert words in str(raised.value)
