"""S4: DROP and CREATE of one name are sent again after rows of the new table were applied."""

import pytest

from tests.builders.handwritten import ddl, resolved
from tests.builders.stage import P0, P1, Stage, create, put, ran

AGAIN = (ddl(30, "DROP TABLE `shop`.`orders`", t=4), create(40, columns="id INT PRIMARY KEY, n INT, c INT"))


@pytest.mark.parametrize("restarts", [True, False])
def test_s4_a_replay_drops_no_rows(tmp_path, restarts):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1)).everywhere(*AGAIN)
    stage.write(P1, put(50, 2, 2, c=1)).everywhere(resolved(60))
    if restarts:
        stage.catch_up()
    # The owner dies and begins at 25: DDLs, rows and resolved events step back.
    stage.everywhere(resolved(25), *AGAIN).write(P1, put(50, 2, 2, c=1)).everywhere(resolved(60)).write(P0, put(70, 3, 3, c=1))
    stage.everywhere(resolved(80)).catch_up()
    assert stage.rows() == [(2, 2, 1), (3, 3, 1)]
    assert ran(stage.replica())[-2:] == [(30, "DROP TABLE"), (40, "CREATE TABLE")]


def test_s4_a_copy_that_arrives_after_everything_else_does_not_run(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, *AGAIN, put(50, 2, 2, c=1)).everywhere(resolved(60))
    stage.catch_up()
    stage.write(P1, *AGAIN).everywhere(resolved(70)).catch_up()
    assert stage.rows() == [(2, 2, 1)]
    assert len(ran(stage.replica())) == 4
