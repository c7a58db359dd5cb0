"""S1: rows of one transaction, of three tables and on four partitions, become visible at once."""

import pytest

from applier.coordinator import Policy
from tests.builders.handwritten import resolved
from tests.builders.stage import P0, P1, P2, P3, Stage, create, put

TABLES = ("orders", "items", "stock")


def transactions(stage):
    stage.everywhere(*(create(10 + number, table) for number, table in enumerate(TABLES)))
    for number, ts in enumerate((20, 30, 40)):
        stage.write(P0, put(ts, 1, number, "orders"))
        stage.write(P1, put(ts, 1, number, "items"))
        stage.write(P2, put(ts, 2, number, "items"))
        stage.write(P3, put(ts, 1, number, "stock"))
    return stage


EMPTY = ([], [], [])
WHOLE = [([(1, n)], [(1, n), (2, n)], [(1, n)]) for n in range(3)]


def test_s1_a_reader_sees_all_tables_change_together_even_in_segments_of_one_row(tmp_path):
    stage = transactions(Stage(tmp_path, P0, P1, P2, P3, tables=TABLES, policy=Policy(segment_rows=1)))
    stage.everywhere(resolved(50)).catch_up()
    assert stage.seen[-4:] == [EMPTY, *WHOLE]


@pytest.mark.parametrize("late", [P0, P1, P2, P3])
def test_s1_nothing_of_a_transaction_is_seen_before_its_last_partition_has_promised_it(tmp_path, late):
    stage = transactions(Stage(tmp_path, P0, P1, P2, P3, tables=TABLES, policy=Policy(segment_rows=1)))
    for stream in stage.streams:
        stage.write(stream, resolved(29 if stream is late else 50))
    stage.catch_up()
    assert stage.seen[-2:] == [EMPTY, WHOLE[0]]
    stage.write(late, resolved(50)).catch_up()
    assert stage.seen[-3:] == WHOLE
