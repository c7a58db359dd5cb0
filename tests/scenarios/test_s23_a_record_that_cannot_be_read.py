"""S23: a poison message stops the replica with its place, or goes to the quarantine if the operator chose that."""

import pytest

from applier.model.errors import ProtocolError
from tests.builders.handwritten import resolved
from tests.builders.stage import P0, P1, Stage, create, put
from tests.builders.wire import head

POISON = (head(21), b'{"u":{"id":{"t":3,"f":11,"v":')


def poisoned(tmp_path, **options):
    stage = Stage(tmp_path, **options).everywhere(create(10)).write(P0, put(20, 1, 1), POISON, put(22, 2, 2))
    return stage.write(P1, put(20, 3, 3)).everywhere(resolved(30))


def test_s23_it_stops_with_topic_partition_offset_and_a_remedy_and_moves_no_offset_past_it(tmp_path):
    stage = poisoned(tmp_path)
    for _ in range(2):
        with pytest.raises(ProtocolError) as stopped:
            stage.catch_up()
        facts = stopped.value.facts
        assert (facts["topic"], facts["partition"], facts["offset"]) == ("feed", 0, 3)
        assert stopped.value.remedy
    assert stage.rows() in (None, [], [(1, 1), (3, 3)])


def test_s23_in_quarantine_it_is_kept_whole_and_everything_else_is_applied(tmp_path):
    stage = poisoned(tmp_path, quarantines=frozenset({"unreadable"}))
    stage.catch_up()
    assert stage.rows() == [(1, 1), (2, 2), (3, 3)]
    replica = stage.replica()
    (entry,) = replica.quarantine().values()
    poison = [record for record in stage.log if record.stream == P0][3]
    assert (entry.event.position.stream, entry.event.position.offset) == (P0, 3)
    kept = replica.kept(entry)
    assert (kept.key, kept.value) == (poison.key, poison.value)
