"""S8: the resolved events of a stream step back after its producer was restarted."""

from tests.builders.handwritten import resolved
from tests.builders.stage import P0, P1, Stage, create, put


def test_s8_a_smaller_resolved_event_takes_no_promise_back(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1), resolved(50), resolved(15))
    stage.write(P1, put(40, 2, 2), resolved(50), resolved(30))
    assert stage.catch_up().checkpoint_ts == 50
    assert stage.rows() == [(1, 1), (2, 2)]


def test_s8_rows_that_follow_it_are_replays_and_do_not_bring_an_old_version_back(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1), put(40, 1, 2), resolved(50)).write(P1, resolved(50))
    stage.catch_up()
    stage.write(P0, resolved(15), put(20, 1, 1), resolved(30))
    assert stage.catch_up().checkpoint_ts == 50
    assert stage.rows() == [(1, 2)]
    stage.write(P0, put(40, 1, 2), resolved(60)).write(P1, resolved(60)).catch_up()
    assert stage.seen[-1:] == [([(1, 2)],)]
