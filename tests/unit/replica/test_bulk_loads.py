"""Whether a run loads in bulk, and what it notes when the database refuses that."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from applier.model.errors import BulkRefused, BulkUnavailable
from applier.replica.segment_writer import MOST_REFUSED, BulkLoads


@dataclass
class Server:
    """A sink, as far as bulk loads need one."""

    bulk: bool = True


@dataclass
class Notebook:
    noted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def note(self, event, /, **facts):
        self.noted.append((str(event), facts))

    @property
    def events(self):
        return [event for event, _ in self.noted]


@pytest.mark.parametrize("bulk", [True, False])
def test_the_sink_says_whether_there_are_loads(bulk):
    assert BulkLoads(Server(bulk), Notebook()).are_used is bulk


def test_a_load_that_is_not_exact_is_noted_with_its_table_and_others_follow():
    book = Notebook()
    loads = BulkLoads(Server(), book)
    loads.refused(BulkRefused("a bulk load would have changed a value", table="s.t", code=1265))
    assert book.noted == [("bulk_load_refused", {"error_message": "a bulk load would have changed a value", "table": "s.t", "code": 1265})]
    assert loads.are_used


def test_a_server_that_takes_none_is_asked_once_and_ends_them_with_one_line():
    book = Notebook()
    loads = BulkLoads(Server(), book)
    for _ in range(3):
        loads.refused(BulkUnavailable("the database refused a bulk load", code=3948))
    assert book.events == ["bulk_load_refused", "bulk_loads_ended"]
    assert not loads.are_used


def test_several_refused_loads_end_them_as_each_costs_a_second_write():
    book = Notebook()
    loads = BulkLoads(Server(), book)
    for number in range(MOST_REFUSED):
        assert loads.are_used, number
        loads.refused(BulkRefused("a bulk load would have changed a value"))
    assert not loads.are_used
    assert book.events == [*["bulk_load_refused"] * MOST_REFUSED, "bulk_loads_ended"]
