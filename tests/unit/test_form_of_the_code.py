"""The form of the code that a linter does not hold: length of functions, constructors, and one meaning per class name."""

import ast
from collections import Counter
from pathlib import Path

import applier

PACKAGE = Path(applier.__file__).parent
TREES = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def nodes(kind):
    return [(module, node) for module, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, kind)]


def test_no_function_is_longer_than_50_lines():
    lengths = ((module, node, node.end_lineno - node.lineno + 1) for module, node in nodes(Function))
    assert [f"{module}: {node.name}, {length} lines" for module, node, length in lengths if length > 50] == []


def test_no_constructor_takes_more_than_five_arguments():
    constructors = [(module, node.args) for module, node in nodes(ast.FunctionDef) if node.name == "__init__"]
    assert [module for module, args in constructors if len(args.posonlyargs + args.args + args.kwonlyargs) > 6] == []


def test_every_class_name_has_one_meaning():
    named = Counter(node.name for _, node in nodes(ast.ClassDef))
    assert {name: number for name, number in named.items() if number > 1} == {}


def test_modules_lie_in_packages():
    assert sorted(module for module in TREES if "/" not in module) == ["__init__.py", "__main__.py", "submit.py"]
