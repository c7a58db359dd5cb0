"""Rows around a DDL as ``documents/ticdc_online_ddl`` describes them: TiCDC reads a row with the schema that its commit_ts has."""

import pytest

from applier.model.errors import FatalSinkError
from tests.builders.handwritten import KEY, PLAIN, ddl, resolved, row
from tests.builders.stage import P0, P1, Stage, create, put
from tests.builders.wire import column, text


def test_an_added_column_is_in_no_row_up_to_the_ddl_and_is_filled_by_the_ddl_itself(tmp_path):
    """Quadrant 3: what the write-only state filled in is thrown away by TiCDC, and the DDL fills it in again."""
    added = ddl(30, "ALTER TABLE `orders` ADD COLUMN `c` INT DEFAULT 7", t=5)
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1), put(30, 2, 2)).everywhere(added)
    stage.write(P1, put(31, 2, 2, c=8), put(32, 3, 3, c=None)).everywhere(resolved(40)).catch_up()
    assert stage.rows() == [(1, 1, 7), (2, 2, 8), (3, 3, None)]


def test_a_column_that_changes_its_type_has_values_of_the_old_type_up_to_the_ddl(tmp_path):
    """Quadrant 3: only the old column is sent until the change, which the sink carries out itself."""
    changed = ddl(30, "ALTER TABLE `orders` MODIFY COLUMN `n` VARCHAR(20)", t=12)
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 41), put(30, 2, 42)).everywhere(changed)
    stage.write(P1, row(31, id=column(3, KEY, 3), n=text("forty-three"))).everywhere(resolved(40)).catch_up()
    assert stage.rows() == [(1, "41"), (2, "42"), (3, "forty-three")]


def test_a_dropped_column_is_in_all_rows_up_to_the_ddl_and_in_none_above_it(tmp_path):
    """Quadrant 3: TiCDC fills in the default until the drop."""
    dropped = ddl(30, "ALTER TABLE `orders` DROP COLUMN `n`", t=6)
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, put(20, 1, 1), put(30, 2, None)).everywhere(dropped)
    stage.write(P1, row(31, id=column(3, KEY, 3))).everywhere(resolved(40)).catch_up()
    assert stage.columns() == ["id"]
    assert stage.rows() == [(1,), (2,), (3,)]
    assert ([(1, 1), (2, None)],) in stage.seen


def test_a_row_whose_columns_are_not_those_of_the_sink_at_its_ts_is_never_written_by_halves(tmp_path):
    """Whatever TiCDC does with the states in between, the sink's own table decides: a column that it lacks stops the replica."""
    stage = Stage(tmp_path).everywhere(create(10)).write(P0, row(20, id=column(3, KEY, 1), n=column(3, PLAIN, 1), c=column(3, PLAIN, 1)))
    with pytest.raises(FatalSinkError, match="the sink's table lacks a column"):
        stage.everywhere(resolved(40)).catch_up()
