"""The port of a source is small, and no source implements a part of it by doing nothing: such parts it has or has not."""

import ast
import inspect

import pytest

from applier.sources import port
from applier.sources.binlog import source as binlog
from applier.sources.kafka import client as kafka

PARTS = {"position", "topics", "upstream_tables"}
"""What a source may lack, and says so by None."""


def members(protocol):
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_a_source_has_about_ten_members():
    assert len(members(port.Source)) <= 11
    assert members(port.Source) >= PARTS


@pytest.mark.parametrize("module", [kafka, binlog])
def test_no_method_of_a_source_does_nothing(module):
    functions = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.FunctionDef)]
    wanted = set().union(*map(members, (port.Source, port.LogPosition, port.TopicFacts, port.RecordTimes))) - PARTS
    found = [one for one in functions if one.name in wanted]
    assert len(found) > 8
    for one in found:
        code = [line for line in one.body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))]
        assert code, one.name
        assert not (len(code) == 1 and isinstance(code[0], ast.Return) and isinstance(code[0].value, ast.Constant | None)), one.name
