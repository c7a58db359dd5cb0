"""S9: a DDL whose ts equals the watermark: the old producer promises the ts before it sends the DDL."""

from tests.builders.handwritten import ddl, resolved
from tests.builders.stage import P0, P1, Stage, create, put, ran

DROPPED = ddl(30, "ALTER TABLE `orders` DROP COLUMN `n`", t=6)


def test_s9_it_is_new_and_runs_after_all_rows_at_its_ts_once_the_watermark_is_above_it(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1)).write(P1, put(30, 2, 2)).everywhere(resolved(30))
    stage.catch_up()
    assert stage.rows() == [(1, 1), (2, 2)]
    stage.everywhere(DROPPED, resolved(30))
    # Another DDL or row at this ts may still come, so it waits; the catch-up says so.
    result = stage.catch_up()
    assert (result.checkpoint_ts, list(result.pending_ddls)) == (30, ["ALTER TABLE `orders` DROP COLUMN `n`"])
    stage.everywhere(resolved(31)).catch_up()
    assert stage.rows() == [(1,), (2,)]
    assert ran(stage.replica())[-1] == (30, "ALTER TABLE")


def test_s9_a_row_at_the_watermark_that_arrives_with_it_is_applied_before_it(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1)).everywhere(resolved(30))
    stage.catch_up()
    stage.write(P1, put(30, 2, 2)).everywhere(ddl(30, "ALTER TABLE `orders` ADD COLUMN `c` INT DEFAULT 9", t=5), resolved(40)).catch_up()
    assert stage.rows() == [(1, 1, 9), (2, 2, 9)]
