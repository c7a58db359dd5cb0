"""Finds every remedy of the code: the texts that an error may carry as what to do, read from the syntax trees of the package.

A remedy is what reaches a parameter or a name called ``remedy``: as a keyword, by position, by an assignment, or as a table's element.
Values that are filled in are written ``{}``.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import applier

PACKAGE = Path(applier.__file__).parent
FILLED_IN = "{}"
DEEPEST = 6
"""Of names that stand for names."""


class Remedy(NamedTuple):
    """A remedy's text, and the module in which the text stands."""

    module: str
    text: str


@dataclass(frozen=True)
class Module:
    """A module's tree and its own string constants, by name."""

    name: str
    tree: ast.Module
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name to (module, name there)."""


@cache
def modules() -> dict[str, Module]:
    """Read the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE.parent).as_posix()
        found[name] = _module(name, ast.parse(path.read_text(encoding="utf-8")))
    return found


def _module(name: str, tree: ast.Module) -> Module:
    module = Module(name, tree)
    for node in tree.body:
        for target, value in _assigned(node):
            if isinstance(target, ast.Name):
                module.constants[target.id] = value
        if isinstance(node, ast.ImportFrom) and node.module:
            path = f"{node.module.replace('.', '/')}.py"
            module.imported.update({alias.asname or alias.name: (path, alias.name) for alias in node.names})
    return module


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value


@cache
def remedies() -> frozenset[Remedy]:
    """Return every remedy of the package."""
    found = (remedy for module in modules().values() for remedy in _of_module(module))
    # What only joins remedies has no words of its own.
    return frozenset(remedy for remedy in found if any(map(str.isalpha, remedy.text)))


def _of_module(module: Module) -> Iterator[Remedy]:
    for function in _functions(module.tree):
        local = dict(_locals(function))
        for node in _own_nodes(function):
            for value in _remedy_values(module, node):
                yield from _texts(module, value, local)
        if "remedy" in function.name:
            for node in _own_nodes(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from _texts(module, node.value, local)
    for node in _outside_of_functions(module.tree):
        for value in _remedy_values(module, node):
            yield from _texts(module, value, {})


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Walk a body without the functions in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _own_nodes(child)


_outside_of_functions = _own_nodes


def _locals(function: ast.FunctionDef) -> Iterator[tuple[str, list[ast.expr]]]:
    found: dict[str, list[ast.expr]] = {}
    for node in _own_nodes(function):
        for target, value in _assigned(node):
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(value)
    return iter(found.items())


def _remedy_values(module: Module, node: ast.AST) -> Iterator[ast.expr]:
    """Return the expressions of a node that become a remedy."""
    if isinstance(node, ast.Call):
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "remedy")
        place = _positions(module.name).get(_called(node))
        if place is not None and place < len(node.args) and not isinstance(node.args[place], ast.Starred):
            yield node.args[place]
    if isinstance(node, ast.Dict):
        yield from (value for key, value in zip(node.keys, node.values, strict=True) if _is(key, "remedy"))
    for target, value in _assigned(node):
        if _is_remedy(target):
            yield value
        elif isinstance(target, ast.Tuple) and (index := _index_of_remedy(target)) is not None:
            yield from _elements(module, value, index)


def _is(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _is_remedy(target: ast.expr) -> bool:
    name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
    return "remedy" in name.casefold()


def _index_of_remedy(target: ast.Tuple) -> int | None:
    return next((index for index, element in enumerate(target.elts) if _is_remedy(element)), None)


def _elements(module: Module, value: ast.expr, index: int) -> Iterator[ast.expr]:
    """Return the element ``index`` of each tuple in a value: of the tuple itself, or of the table in which it is looked up."""
    seen = [value, *(found[1] for name in _names(value) if (found := _constant(module, name)) is not None)]
    for root in seen:
        for node in ast.walk(root):
            if isinstance(node, ast.Tuple) and len(node.elts) > index:
                yield node.elts[index]


def _names(value: ast.expr) -> Iterable[str]:
    return (node.id for node in ast.walk(value) if isinstance(node, ast.Name))


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""


@cache
def _class_positions() -> dict[str, int]:
    found = {}
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and (place := _place_in(node)) is not None:
                found[node.name] = place
    return found


@cache
def _positions(name: str) -> dict[str, int]:
    """Map each callable with a parameter ``remedy``, as a module names it, to its place among the positional arguments."""
    imported = modules()[name].imported.items()
    other = {alias: _places(path)[there] for alias, (path, there) in imported if path in modules() and there in _places(path)}
    return _class_positions() | other | _places(name)


@cache
def _places(name: str) -> dict[str, int]:
    """Map each function of a module that has a parameter ``remedy`` to its place."""
    functions = _functions(modules()[name].tree)
    return {found.name: place for found in functions if found.name != "__init__" and (place := _parameter(found, 0)) is not None}


def _place_in(node: ast.ClassDef) -> int | None:
    for function in node.body:
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            return _parameter(function, 1)
    fields = [child.target.id for child in node.body if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name)]
    return fields.index("remedy") if "remedy" in fields else None


def _parameter(function: ast.FunctionDef, skipped: int) -> int | None:
    names = [argument.arg for argument in function.args.args][skipped:]
    return names.index("remedy") if "remedy" in names else None


def _constant(module: Module, name: str) -> tuple[Module, ast.expr] | None:
    if name in module.constants:
        return module, module.constants[name]
    if name in module.imported:
        path, there = module.imported[name]
        if path not in modules():
            path = path.replace(".py", "/__init__.py")
        return _constant(modules()[path], there) if path in modules() else None
    return None


def _texts(module: Module, value: ast.expr, local: dict[str, list[ast.expr]], depth: int = 0) -> Iterator[Remedy]:
    """Return the remedies that an expression may be."""
    if isinstance(value, ast.Constant):
        if isinstance(value.value, str) and value.value:
            yield Remedy(module.name, value.value)
    elif isinstance(value, ast.JoinedStr | ast.BinOp):
        yield Remedy(module.name, _template(module, value, local))
    elif depth < DEEPEST:
        for where, part, known in _parts(module, value, local):
            yield from _texts(where, part, known, depth + 1)


def _parts(module: Module, value: ast.expr, local: dict[str, list[ast.expr]]) -> Iterator[tuple[Module, ast.expr, dict[str, Any]]]:
    """Return what an expression chooses among, each with where it stands and the local names there."""
    match value:
        case ast.IfExp():
            yield from ((module, part, local) for part in (value.body, value.orelse))
        case ast.BoolOp():
            yield from ((module, part, local) for part in value.values)
        case ast.Name(id=name) if name in local:
            others = {key: some for key, some in local.items() if key != name}
            yield from ((module, part, others) for part in local[name])
        case ast.Name(id=name) if (found := _constant(module, name)) is not None:
            yield (*found, {})
        case ast.Subscript(value=ast.Name(id=name)):
            yield from _table(module, name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=[_, *default]):
            yield from _table(module, name)
            yield from ((module, part, local) for part in default)


def _table(module: Module, name: str) -> Iterator[tuple[Module, ast.expr, dict[str, Any]]]:
    found = _constant(module, name)
    if found is not None and isinstance(found[1], ast.Dict):
        yield from ((found[0], part, {}) for part in found[1].values)


def _template(module: Module, value: ast.expr, local: dict[str, list[ast.expr]]) -> str:
    """Return a text with ``{}`` for what is filled in; names of constants are resolved."""
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(_template(module, part, local) for part in value.values)
        case ast.FormattedValue():
            return _template(module, value.value, local)
        case ast.BinOp(op=ast.Add()):
            return _template(module, value.left, local) + _template(module, value.right, local)
        case ast.Name(id=name) if name not in local and (found := _constant(module, name)) is not None:
            return _template(found[0], found[1], {})
    return FILLED_IN
