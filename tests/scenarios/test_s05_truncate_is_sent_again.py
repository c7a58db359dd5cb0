"""S5: TRUNCATE is sent again on one partition while the other is far ahead of it."""

import pytest

from tests.builders.handwritten import ddl, resolved
from tests.builders.stage import P0, P1, Stage, create, put, ran

TRUNCATE = ddl(30, "TRUNCATE TABLE `orders`", t=11)


@pytest.mark.parametrize("restarts", [True, False])
def test_s5_rows_behind_the_first_truncate_stay(tmp_path, restarts):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1)).everywhere(TRUNCATE)
    stage.write(P1, put(40, 2, 2), resolved(100)).write(P0, resolved(50))
    if restarts:
        assert stage.catch_up().checkpoint_ts == 50
    stage.write(P0, TRUNCATE, resolved(50), put(60, 3, 3), resolved(100)).catch_up()
    assert stage.rows() == [(2, 2), (3, 3)]
    assert [ts for ts, verb in ran(stage.replica()) if verb == "TRUNCATE TABLE"] == [30]


def test_s5_a_truncate_that_only_a_lagging_partition_has_is_waited_for(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1), resolved(25))
    stage.write(P1, TRUNCATE, put(40, 2, 2), resolved(100)).catch_up()
    assert stage.rows() == [(1, 1)]
    stage.write(P0, TRUNCATE, resolved(100)).catch_up()
    assert stage.seen[-3:] == [([(1, 1)],), ([],), ([(2, 2)],)]
