"""S7: rows, resolved events and DDLs arrive twice, mixed with new ones."""

from tests.builders.handwritten import ddl, resolved
from tests.builders.stage import P0, P1, Stage, create, gone, put, ran

WIDER = ddl(30, "ALTER TABLE `orders` ADD COLUMN `c` INT DEFAULT 7", t=5)


def test_s7_repeats_among_new_events_change_nothing(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10))
    stage.write(P0, put(20, 1, 1), put(20, 1, 1), put(21, 1, 2), put(20, 1, 1), resolved(25), WIDER, resolved(25), WIDER)
    stage.write(P1, put(22, 2, 1), gone(24, 2), put(22, 2, 1), resolved(25), WIDER, create(10), put(31, 3, 3, c=3), put(31, 3, 3, c=3))
    stage.everywhere(resolved(40), WIDER, resolved(40)).write(P0, put(21, 1, 2)).write(P1, put(41, 4, 4, c=4)).everywhere(resolved(50))
    stage.catch_up()
    assert stage.rows() == [(1, 2, 7), (3, 3, 3), (4, 4, 4)]
    assert ran(stage.replica()) == [(5, "CREATE DATABASE"), (10, "CREATE TABLE"), (30, "ALTER TABLE")]


def test_s7_a_whole_log_that_is_written_twice_gives_the_same_tables(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1), gone(35, 1)).write(P1, put(33, 2, 2, c=2))
    stage.everywhere(WIDER, resolved(40)).catch_up()
    once = stage.rows()
    stage.write(P0, put(20, 1, 1), gone(35, 1)).write(P1, put(33, 2, 2, c=2)).everywhere(WIDER, resolved(40), resolved(41)).catch_up()
    assert (stage.rows(), len(ran(stage.replica()))) == (once, 3)
