"""What is compiled per shape, in bounded memory, at a cost per row that does not depend on the number of shapes.

A cache that drops the oldest when it is full would compile at every row, once there is one shape too many and they take turns. So a
shape that would take another one's place has to earn it: until then its rows are read without compiled code.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from applier.model.events import Shape

T = TypeVar("T")

ROWS_TO_REPLACE: Final = 256
"""Rows of a shape after which it takes the place of another: compiling costs as much as some 20 rows read the exact way."""

MAX_COUNTED: Final = 65_536
"""Shapes whose rows are counted; then counting begins anew."""


class Compiled(Generic[T]):
    """Keeps at most ``most`` results of ``compile_shape``."""

    __slots__ = ("_compile", "_made", "_most", "_rows")

    def __init__(self, compile_shape: Callable[[Shape], T], most: int) -> None:
        self._compile, self._most = compile_shape, most
        self._made: dict[Shape, T] = {}
        self._rows: dict[Shape, int] = {}

    def get(self, shape: Shape) -> T | None:
        """Return what is compiled for a shape that has one more row; None if compiling it does not pay yet."""
        if shape in self._made:
            return self._made[shape]
        if len(self._made) >= self._most and not self._has_earned(shape):
            return None
        if len(self._made) >= self._most:
            del self._made[next(iter(self._made))]
        made = self._made[shape] = self._compile(shape)
        return made

    def made(self) -> Iterable[T]:
        """Give what is compiled now."""
        return self._made.values()

    def _has_earned(self, shape: Shape) -> bool:
        """Count a row; tell whether there were enough of them."""
        rows = self._rows.pop(shape, 0) + 1
        if rows >= ROWS_TO_REPLACE:
            return True
        if len(self._rows) >= MAX_COUNTED:
            self._rows.clear()
        self._rows[shape] = rows
        return False
