import pytest

from applier.model.events import FoldedName
from tests.builders.planning import ORDERS, between


def test_a_window_is_open_below_and_its_floor_is_the_checkpoint() -> None:
    assert between(10, 20).floor(ORDERS, keyed=True) == 10


def test_rows_at_the_checkpoint_come_again_where_the_group_is_repeated() -> None:
    assert between(10, 20, again=True).floor(ORDERS, keyed=True) == 9


@pytest.mark.parametrize("settled", [{ORDERS}, {FoldedName("shop", "")}], ids=["table", "whole schema"])
def test_rows_at_the_checkpoint_stay_out_where_a_ddl_has_touched_the_table(settled: set[FoldedName]) -> None:
    assert between(10, 20, again=True, settled=settled).floor(ORDERS, keyed=True) == 10


def test_rows_at_the_checkpoint_stay_out_for_tables_without_a_key() -> None:
    assert between(10, 20, again=True).floor(ORDERS, keyed=False) == 10


def test_another_tables_ddl_settles_nothing_here() -> None:
    others = {FoldedName("shop", "carts"), FoldedName("other", "")}
    assert between(10, 20, again=True, settled=others).floor(ORDERS, keyed=True) == 9
