"""S11: rows of another table with a greater commit_ts stand before a DDL in the stream: it blocks its own table only."""

from tests.builders.handwritten import ddl, resolved
from tests.builders.stage import P0, P1, Stage, create, put

WIDER = ddl(30, "ALTER TABLE `orders` ADD COLUMN `c` INT DEFAULT 5", t=5)


def test_s11_each_row_is_written_on_its_side_of_the_ddl(tmp_path):
    stage = Stage(tmp_path, tables=("orders", "items")).everywhere(create(10), create(11, "items"))
    stage.write(P0, put(31, 1, 1, "items"), put(20, 1, 1), put(33, 2, 2, "items"), WIDER, put(32, 2, 2, c=2))
    stage.write(P1, WIDER, put(35, 3, 3, c=3)).everywhere(resolved(40)).catch_up()
    assert (stage.rows(), stage.rows("items")) == ([(1, 1, 5), (2, 2, 2), (3, 3, 3)], [(1, 1), (2, 2)])
    # Nothing above the DDL was seen before it: its table had two columns then.
    assert ([(1, 1)], []) in stage.seen


def test_s11_rows_at_the_ts_of_the_ddl_belong_to_the_old_table(tmp_path):
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, WIDER).write(P1, put(30, 1, 1), WIDER).everywhere(resolved(40))
    stage.catch_up()
    assert stage.rows() == [(1, 1, 5)]
