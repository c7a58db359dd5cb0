"""The measurements' own parts: what a workload does leads to what the floor writes, and the documents' command lines are understood."""

import re
import shlex
from itertools import islice, pairwise

import pytest

from tests.bench.suite.__main__ import arguments
from tests.bench.suite.checkout import ROOT
from tests.bench.suite.last_release import KEPT, compared
from tests.bench.suite.live import quantile
from tests.bench.suite.report import median_of
from tests.bench.suite.topic import CountedLog
from tests.bench.suite.workload import PER_TRANSACTION, WORKLOADS
from tests.rig.protocol import is_watermark

ROWS = 3000


def batches(changes):
    while batch := list(islice(changes, PER_TRANSACTION)):
        yield batch


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name.startswith("A")])
def test_the_bytes_of_every_protocol_are_counted(name):
    counted = CountedLog(WORKLOADS[name].log(100))
    assert counted.bytes < sum(len(record.key or b"") + len(record.value) for record in counted) == counted.bytes


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_the_changes_of_a_workload_lead_to_its_final_rows(workload):
    rows = {}
    for table, before, after in workload.changes(ROWS):
        places = table.handle_places
        if before is not None:
            assert rows.pop((table.name, *(before[place] for place in places))) == before
        if after is not None:
            rows[table.name, *(after[place] for place in places)] = after
    final = list(workload.final(ROWS))
    assert {(table.name, *(row[place] for place in table.handle_places)): row for table, row in final} == rows
    assert len(final) == len(rows)
    assert all(first.name <= second.name for (first, _), (second, _) in pairwise(final))


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_no_row_changes_twice_in_one_transaction(workload):
    for transaction in batches(workload.changes(ROWS)):
        keys = [(table.name, (after or before)[0]) for table, before, after in transaction]
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_a_log_ends_with_a_resolved_event_on_every_partition(workload):
    records = list(workload.log(ROWS))
    last = records[-workload.partitions :]
    assert sorted(record.stream.partition for record in last) == list(range(workload.partitions))
    assert all(map(is_watermark, last))


def test_the_uneven_workload_gives_one_partition_a_fifth_and_every_partition_something():
    slots = WORKLOADS["G"].slots
    shares = [slots.count(place) / len(slots) for place in range(64)]
    assert 0.18 < shares[0] < 0.25
    assert min(shares) > 0


def test_a_row_of_orders_has_some_200_bytes():
    _, row = next(iter(WORKLOADS["A"].final(1)))
    assert 180 < sum(len(str(value)) for value in row) < 220
    assert len(WORKLOADS["C"].tables[0].columns) == 40


def test_medians_are_taken_of_every_figure_and_of_nested_ones():
    runs = [
        {"a": 1.0, "b": {"c": 3.0}, "ok": True},
        {"a": 9.0, "b": {"c": float("nan")}, "ok": False},
        {"a": 2.0, "b": {"c": 5.0}, "ok": True},
    ]
    assert median_of(runs) == {"a": 2.0, "b": {"c": 4.0}, "ok": True}


def test_quantiles_of_few_values_are_among_them():
    assert [quantile([1.0, 2.0, 3.0], share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 2.0, 3.0, 3.0]


def test_the_comparison_names_each_figure_of_the_last_release():
    results = [
        {"kind": "floor", "median": {}},
        {"kind": "backlog", "median": {"of_floor": 0.5, "all_us": 50.0}},
        {"kind": "live", "median": {"latency_s": {"median": 0.3}, "cores": {"all": 0.4}}},
    ]
    assert compared(results).count("\n") == 5
    assert KEPT.exists()


def test_the_command_lines_of_the_document_are_understood():
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    found = re.findall(r'make bench(?: BENCH=("[^"]*"|[^\s`]+))?', text)
    assert len(found) > 8
    for given in found:
        arguments(shlex.split(given.strip('"')))
