"""S10: the new producer sends DDLs of different tables in any order."""

import pytest

from applier.model.errors import NeedsOperator
from tests.builders.handwritten import ddl, resolved
from tests.builders.stage import P0, P1, Stage, create, put, ran


def test_s10_they_run_by_ts(tmp_path):
    stage = Stage(tmp_path, tables=("orders", "items")).everywhere(create(20, "items"), create(10))
    stage.write(P0, put(25, 1, 1, "items"), put(15, 1, 1))
    stage.everywhere(ddl(40, "TRUNCATE TABLE `items`", "items", t=11), ddl(30, "ALTER TABLE `orders` ADD COLUMN `c` INT", t=5))
    stage.write(P1, put(41, 2, 2, "items")).everywhere(resolved(50)).catch_up()
    assert [ts for ts, _ in ran(stage.replica())] == [5, 10, 20, 30, 40]
    assert (stage.rows(), stage.rows("items")) == ([(1, 1, None)], [(2, 2)])


def test_s10_a_later_ddl_waits_while_one_partition_may_still_bring_an_earlier_one(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, ddl(40, "TRUNCATE TABLE `orders`", t=11), resolved(50))
    stage.write(P1, put(20, 1, 1), resolved(25)).catch_up()
    assert stage.rows() == [(1, 1)]
    stage.write(P1, ddl(30, "ALTER TABLE `orders` ADD COLUMN `c` INT", t=5), resolved(50)).catch_up()
    assert ran(stage.replica())[-2:] == [(30, "ALTER TABLE"), (40, "TRUNCATE TABLE")]


def test_s10_a_ddl_below_the_checkpoint_that_never_ran_is_not_skipped_but_stops(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1)).everywhere(resolved(50))
    stage.catch_up()
    stage.everywhere(ddl(30, "ALTER TABLE `orders` ADD COLUMN `c` INT", t=5), resolved(60))
    with pytest.raises(NeedsOperator) as stopped:
        stage.catch_up()
    assert (stopped.value.facts["kind"], stopped.value.facts["commit_ts"]) == ("missed_ddl", 30)
