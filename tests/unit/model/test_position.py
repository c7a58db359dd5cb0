"""Timestamps and places: exact, and spelled as they are read."""

import pytest

from applier.model.position import Offset, RecordPosition, Stream


def test_a_stream_is_read_as_it_is_written():
    stream = Stream("a/b", 12)
    assert Stream.parse(str(stream)) == stream
    assert str(RecordPosition(stream, Offset(7))) == "a/b/12@7"


@pytest.mark.parametrize("text", ["", "feed", "feed/", "/3", "feed/-1", "feed/x"])
def test_what_is_no_stream_is_refused(text):
    with pytest.raises(ValueError, match="TOPIC/PARTITION"):
        Stream.parse(text)
