"""What a process keeps of shapes: one object for each, and a bounded cache of what is compiled for it.

The cost per row does not depend on the number of shapes.

A cache that drops the oldest entry would compile at every row as soon as rows of one shape more than it holds alternate. So
a new shape replaces another only after ROWS_TO_REPLACE rows; until then its rows take the full parse.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from applier.model.events import Shape

T = TypeVar("T")

ROWS_TO_REPLACE: Final = 256
"""Rows of a shape after which it replaces another one: compiling costs as much as the full parse of some 20 rows."""

MAX_SHAPES: Final = 4096
"""Compiled shapes kept per process. With 12 columns one takes 14 KB and 0.4 ms to compile, and its image decoders 10 KB and 0.3 ms."""

MAX_COUNTED: Final = 65_536
"""Shapes whose rows are counted; then counting starts again."""


class CompiledShapes(Generic[T]):
    """Keeps at most ``most`` results of ``compile_shape``."""

    __slots__ = ("_compile", "_kept", "_most", "_rows")

    def __init__(self, compile_shape: Callable[[Shape], T], most: int) -> None:
        self._compile, self._most = compile_shape, most
        self._kept: dict[Shape, T] = {}
        self._rows: dict[Shape, int] = {}

    def get(self, shape: Shape) -> T | None:
        """Return what is compiled for a shape, and count one more row of it; None if compiling does not pay yet."""
        if shape in self._kept:
            return self._kept[shape]
        if len(self._kept) >= self._most and not self._has_enough_rows(shape):
            return None
        if len(self._kept) >= self._most:
            del self._kept[next(iter(self._kept))]
        compiled = self._kept[shape] = self._compile(shape)
        return compiled

    def kept(self) -> Iterable[T]:
        """Return what is compiled now."""
        return self._kept.values()

    def _has_enough_rows(self, shape: Shape) -> bool:
        """Count a row; return whether there were enough to replace another shape."""
        rows = self._rows.pop(shape, 0) + 1
        if rows >= ROWS_TO_REPLACE:
            return True
        if len(self._rows) >= MAX_COUNTED:
            self._rows.clear()
        self._rows[shape] = rows
        return False


MAX_INTERNED: Final = 65_536
"""Shapes kept from earlier ranges; one takes a few hundred bytes."""

_shapes: Final[dict[Shape, Shape]] = {}


def intern_shape(shape: Shape) -> Shape:
    """Return the one object that represents a shape in this process, so that shapes can be compared by identity."""
    return _shapes.setdefault(shape, shape)


def forget_shapes(kept: Iterable[Shape]) -> None:
    """Forget the shapes of earlier ranges but ``kept`` if they are many. Called before a range only: its report names each shape once."""
    if len(_shapes) > MAX_INTERNED:
        _shapes.clear()
        _shapes.update((shape, shape) for shape in kept)
