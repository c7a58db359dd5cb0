"""Finds the files that the applier ships with its code: ``sql/``, ``migrations/``, ``docs/``, the README and the changelog.

An installed package and the zip for Spark hold them as ``applier/_data/…``; in a checkout they are at the repository's root. A file of
``sql/`` has named statements: one begins with ``-- name: purpose`` and ends with ``;``.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import BindParameter, TextClause, bindparam, text

PACKAGE = "applier"
CARRIED = "_data"


def read_text(name: str) -> str:
    """Return the text of a carried file such as ``sql/queries.sql``; it works inside a zip. FileNotFoundError if there is none."""
    return _find(name).read_text(encoding="utf-8")


def names(directory: str, suffix: str) -> list[str]:
    """Return the names of the carried files of a directory such as ``docs`` that end with ``suffix``, sorted; it works inside a zip."""
    return sorted(entry.name for entry in _find(directory).iterdir() if entry.name.endswith(suffix))


@contextmanager
def path(name: str) -> Iterator[Path]:
    """Give a carried directory such as ``migrations`` as a real path: unpacked, for the time of the block, if it is in a zip."""
    found = _find(name)
    if isinstance(found, Path):
        yield found
        return
    with TemporaryDirectory() as directory:
        target = Path(directory) / found.name
        _unpack(found, target)
        yield target


def _find(name: str) -> Traversable:
    package = files(PACKAGE)
    carried = package.joinpath(CARRIED)
    # First the carried copy: where a package is installed, its parent directory is site-packages.
    if carried.is_dir():
        return carried.joinpath(name)
    if isinstance(package, Path):
        return package.parent / name
    raise FileNotFoundError(name)


def _unpack(source: Traversable, target: Path) -> None:
    if source.is_dir():
        target.mkdir()
        for entry in source.iterdir():
            _unpack(entry, target / entry.name)
    else:
        target.write_bytes(source.read_bytes())


_NAMED = re.compile(r"^-- (?P<name>\w+): .+\n(?P<body>[^;]+);", re.MULTILINE)
_LISTED = re.compile(r"\bIN :(\w+)")


def read_statements(file: str) -> dict[str, str]:
    """Return the statements of a carried file by name."""
    return {match["name"]: match["body"].strip() for match in _NAMED.finditer(read_text(file))}


def clause(statement: str) -> TextClause:
    """Return a statement for SQLAlchemy. Values are bound as ``:name``; one after IN takes a list."""
    lists: list[BindParameter[Any]] = [bindparam(name, expanding=True) for name in _LISTED.findall(statement)]
    return text(statement).bindparams(*lists)
