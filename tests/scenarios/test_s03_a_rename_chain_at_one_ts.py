"""S3: ``RENAME TABLE a TO tmp, b TO a, tmp TO b`` arrives as three DDLs of one ts."""

from tests.builders.handwritten import ddl, resolved
from tests.builders.stage import P0, P1, Stage, create, put, ran

CHAIN = [
    ddl(30, f"RENAME TABLE `shop`.`{old}` TO `shop`.`{new}`", table=new, t=14) for old, new in (("a", "tmp"), ("b", "a"), ("tmp", "b"))
]


def before_the_chain(tmp_path):
    stage = Stage(tmp_path, tables=("a", "b")).everywhere(create(10, "a"), create(11, "b"))
    return stage.write(P0, put(20, 1, 1, "a")).write(P1, put(20, 2, 2, "b"), put(30, 3, 3, "b"))


def test_s3_the_tables_change_places_and_rows_of_each_side_of_the_ts_go_where_they_belong(tmp_path):
    stage = before_the_chain(tmp_path).everywhere(*CHAIN).write(P0, put(31, 4, 4, "a")).everywhere(resolved(40))
    stage.catch_up()
    assert (stage.rows("a"), stage.rows("b"), stage.rows("tmp")) == ([(2, 2), (3, 3), (4, 4)], [(1, 1)], None)
    assert ran(stage.replica())[-3:] == [(30, "RENAME TABLE")] * 3


def test_s3_a_chain_that_is_sent_again_in_part_does_not_run_again(tmp_path):
    stage = before_the_chain(tmp_path).everywhere(*CHAIN).everywhere(resolved(40))
    stage.catch_up()
    stage.everywhere(*CHAIN[:2]).write(P1, put(45, 5, 5, "b")).everywhere(resolved(50)).catch_up()
    assert (stage.rows("a"), stage.rows("b")) == ([(2, 2), (3, 3)], [(1, 1), (5, 5)])
    assert len(ran(stage.replica())) == 6
