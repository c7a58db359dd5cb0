"""``model/segment.py`` alone decides ``<`` against ``<=`` of timestamps. What else compares them stands here with its reason."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import applier

PACKAGE = Path(applier.__file__).parent
TIMESTAMP = re.compile(r"(^|_)ts$|watermark$")
RULES = Path("model/segment.py")
ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)

ALLOWED = {
    ("sinks/bookkeeping/bookkeeping.py", "ts > self.dialect.greatest_number"): "what a column of the bookkeeping can hold",
    ("sources/open_protocol/record.py", "0 <= ts <= MAX_UINT64"): "what the wire allows",
    ("sources/canal_json/record.py", "0 < ts <= MAX_TS"): "what the wire allows",
    ("sources/canal_json/placer.py", "0 < min(commit_ts) <= max(commit_ts) <= MAX_TS"): "what the wire allows",
    ("sources/simple/placer.py", "0 < message.commit_ts < 1 << 64"): "what the wire allows",
    ("coordinator/cache.py", "bisect_left(self._entries, IndexedRange(ts, number, name))"): "finds one entry among sorted ones",
    ("dataframe/changelog.py", "ts <= MAX_TS"): "what a column of Spark can hold",
    ("dataframe/changelog.py", "ts > MAX_TS"): "what a column of Spark can hold",
    ("dataframe/table_columns.py", "ts >= found.ts"): "a running maximum: the newest description of a column",
    ("model/position.py", "earliest_record_ms <= (timeline.time_ms(start_ts) or 0) - CLOCK_SKEW_MS"): "times of two clocks, with a margin",
    ("sources/changefeed.py", "len({moment.start_ts for moment in found}) > 1"): "how many there are",
    ("tasks/range_summary.py", "min_ts < self.min_ts"): "a running minimum",
    ("tasks/range_summary.py", "max_ts > self.max_ts"): "a running maximum",
    ("tasks/range_summary.py", "bisect_right(sorted_ts, ts, i)"): "RowCount counts the rows up to a ts, whatever a segment is",
}
UPSTREAM = Path("demo/simulator")
"""A second, independent upstream: it would hide a wrong rule if it shared the applier's."""
PLACES = Path("sources/binlog")
"""Where a timestamp is a place in a log: it is compared with places."""


def names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        yield str(node.slice.value)
    else:
        for child in ast.iter_child_nodes(node):
            yield from names(child)


def operands(node: ast.AST) -> list[ast.expr]:
    """What an ordering comparison, or a search in a sorted list, compares."""
    match node:
        case ast.Compare(left=left, ops=signs, comparators=others) if any(isinstance(sign, ORDERING) for sign in signs):
            return [left, *others]
        case ast.Call(func=ast.Name(id="bisect_left" | "bisect_right"), args=arguments):
            return arguments
        case _:
            return []


def comparisons(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if any(TIMESTAMP.search(name) for operand in operands(node) for name in names(operand)):
            yield ast.unparse(node)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("row.commit_ts <= upto", 1),
        ("after < status['resolved_ts']", 1),
        ("max(a.commit_ts, b) > c", 1),
        ("self._watermark >= c", 1),
        ("0 < ts", 1),
        ("bisect_left(points, upto_ts)", 1),
        ("bisect_left(bounds, seconds)", 0),
        ("commit_ts == other_ts", 0),
        ("offset < end", 0),
        ("starts < ends", 0),
    ],
)
def test_the_check_sees_comparisons_by_the_names_of_timestamps(source: str, found: int) -> None:
    assert len(list(comparisons(source))) == found


def test_no_other_module_compares_timestamps() -> None:
    found = [
        (path.relative_to(PACKAGE).as_posix(), text)
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE) != RULES and not {UPSTREAM, PLACES} & {*path.relative_to(PACKAGE).parents}
        for text in comparisons(path.read_text(encoding="utf-8"))
    ]
    left = [(module, text) for module, text in found if not any(module == where and part in text for where, part in ALLOWED)]
    unused = [entry for entry in ALLOWED if not any(module == entry[0] and entry[1] in text for module, text in found)]
    assert left == []
    assert unused == []
