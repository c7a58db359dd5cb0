"""Generated columns of the simulated upstream: their expressions, and the values that upstream computes.

The values are the upstream's alone: they follow its session (zone, collation) and its way to write numbers. No database computes them
here, so a sink that computes them again shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from applier.demo.simulator.session_zone import in_session
from applier.model.events import Value


class GeneratedRule(StrEnum):
    """What a generated column holds. Of one column: its ``source``."""

    SESSION_DAY = "session_day"
    """The day of a TIMESTAMP, in the zone of the session that wrote the row."""
    FLOAT_TEXT = "float_text"
    """A FLOAT as text. Servers write it with different digits."""
    LETTER = "letter"
    """Whether a number's hexadecimal text begins with a small letter: never under a binary collation."""
    SUCCESSOR = "successor"
    """A number and one: the same in every database."""


_EXPRESSIONS = {
    GeneratedRule.SESSION_DAY: "DATE({})",
    GeneratedRule.FLOAT_TEXT: "CONCAT({})",
    GeneratedRule.LETTER: "LEFT(HEX({}), 1) = _UTF8MB4'f'",
    GeneratedRule.SUCCESSOR: "{} + 1",
}
_VALUES: dict[GeneratedRule, Callable[[Value], Value]] = {
    GeneratedRule.SESSION_DAY: lambda value: in_session(str(value))[:10],
    GeneratedRule.FLOAT_TEXT: lambda value: f"{cast('float', value):.9g}",
    GeneratedRule.LETTER: lambda _: 0,
    GeneratedRule.SUCCESSOR: lambda value: cast("int", value) + 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """How a column is generated: of the column ``source``; ``stored`` False: VIRTUAL, which the wire never has."""

    rule: GeneratedRule
    source: str
    stored: bool = True

    def expression(self, quoted_source: str) -> str:
        """Return the expression as DDL spells it."""
        return _EXPRESSIONS[self.rule].format(quoted_source)

    def value(self, source: Value) -> Value:
        """Return what upstream computes."""
        return None if source is None else _VALUES[self.rule](source)
