"""Which of upstream's tables are compared, and where the sink has them."""

import re
from collections.abc import Sequence
from fnmatch import translate

from applier.model.errors import ConfigError
from applier.model.events import TableName
from applier.verify.verification import Route


def route_of(patterns: Sequence[str]) -> Route:
    """Return the route by patterns ``schema.table`` (``*`` and ``?`` are wild, ``!`` excludes; the last one that fits decides)."""
    rules = [_rule(pattern) for pattern in patterns]

    def route(name: TableName) -> TableName | None:
        if not rules:
            return name
        decided = [wanted for wanted, expression in rules if expression.fullmatch(str(name).casefold())]
        return name if decided and decided[-1] else None

    return route


def _rule(pattern: str) -> tuple[bool, re.Pattern[str]]:
    name = pattern.removeprefix("!")
    if "." not in name:
        raise ConfigError(f"--tables names no table: {pattern!r}", remedy="Write schema.table, for instance 'shop.*' or '!shop.log_*'")
    return not pattern.startswith("!"), re.compile(translate(name.casefold()))
