"""Finds every remedy of the code: the calls ``Remedy("area.id", "text")`` in the syntax trees of the package.

mypy refuses a bare string as a remedy. Values that are filled in are written ``{}``; names of constants are resolved.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import applier

PACKAGE = Path(applier.__file__).parent
FILLED_IN = "{}"
DEFINITIONS = {"Remedy", "NO_REMEDY"}
"""The class makes remedies of others, and the constant is none."""


class FoundRemedy(NamedTuple):
    """A remedy's identifier (empty if it is not a literal), its text, and the place of the code that makes it."""

    id: str
    text: str
    place: str


class Module(NamedTuple):
    """A module's tree, its constants by name, and the (module, name) of what it imports."""

    tree: ast.Module
    constants: dict[str, ast.expr]
    imported: dict[str, tuple[str, str]]


@cache
def modules() -> dict[str, Module]:
    """Read the package."""
    return {path.relative_to(PACKAGE.parent).as_posix(): _module(path) for path in sorted(PACKAGE.rglob("*.py"))}


def _module(path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants, imported = {}, {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    constants[target.id] = node.value
        if isinstance(node, ast.ImportFrom) and node.module:
            imported.update({alias.asname or alias.name: (f"{node.module.replace('.', '/')}.py", alias.name) for alias in node.names})
    return Module(tree, constants, imported)


@cache
def remedies() -> tuple[FoundRemedy, ...]:
    """Return every remedy of the package."""
    return tuple(found for name in modules() for found in _of_module(name))


def _of_module(name: str) -> Iterator[FoundRemedy]:
    parts = (part for part in modules()[name].tree.body if _defined(part) not in DEFINITIONS)
    for node in (node for part in parts for node in ast.walk(part)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Remedy":
            match node.args:
                case [ast.Constant(value=str(identifier)), text]:
                    yield FoundRemedy(identifier, template(name, text), f"{name}:{node.lineno}")
                case _:
                    yield FoundRemedy("", "", f"{name}:{node.lineno}")


def _defined(part: ast.stmt) -> str:
    match part:
        case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def template(name: str, value: ast.AST) -> str:
    """Return a text of a module with ``{}`` for what is filled in."""
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(template(name, part) for part in parts)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return template(name, left) + template(name, right)
        case ast.FormattedValue(value=inner) | ast.Call(func=ast.Name(id="Remedy"), args=[_, inner]):
            return template(name, inner)
        case ast.Name(id=constant):
            return _constant(name, constant)
    return FILLED_IN


def _constant(name: str, constant: str) -> str:
    module = modules().get(name)
    if module is not None and constant in module.constants:
        return template(name, module.constants[constant])
    if module is not None and constant in module.imported:
        path, there = module.imported[constant]
        return _constant(path if path in modules() else path.replace(".py", "/__init__.py"), there)
    return FILLED_IN
