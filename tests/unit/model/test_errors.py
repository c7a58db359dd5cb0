"""Errors that cross from executors: with facts and a remedy, always."""

import pickle

import pytest

from applier.model.errors import ProtocolError, Remedy
from applier.model.position import Offset, RecordPosition, Stream


@pytest.mark.parametrize("kind", ["version", "framing", "json"])
def test_a_record_that_cannot_be_read_comes_with_a_remedy_also_through_pickle(kind):
    error = ProtocolError.at(RecordPosition(Stream("feed", 1), Offset(7)), kind, "cannot be read", table="shop.t")
    crossed = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (crossed.message, crossed.facts) == (error.message, error.facts)
    assert crossed.remedy == error.remedy != ""
    assert ("source.protocol" in error.remedy) == (kind == "version")


def test_its_own_remedy_replaces_the_common_one():
    assert ProtocolError("m", kind="json", remedy=Remedy("test.remedy", "do that")).remedy == "do that"
