"""Names and patterns of topics, as librdkafka writes them: what begins with ``^`` is a regular expression for the beginning of names."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

PATTERN_MARK: Final = "^"

INTERNAL: Final = "__"
"""How Kafka's own topics begin (``__consumer_offsets``, ``__transaction_state``). No pattern matches them."""


def is_pattern(text: str) -> bool:
    """Whether a text is a pattern, and not the name of a topic."""
    return text.startswith(PATTERN_MARK)


@lru_cache(maxsize=4096)
def matches_pattern(topic: str, pattern: str) -> bool:
    """Return whether a pattern names a topic. ``^cdc_`` names all that begin so; ``$`` marks the end."""
    return not topic.startswith(INTERNAL) and re.match(pattern, topic) is not None


def is_named(topic: str, wanted: Collection[str]) -> bool:
    """Return whether a topic is among names and patterns."""
    return topic in wanted or any(is_pattern(text) and matches_pattern(topic, text) for text in wanted)


@dataclass(frozen=True, slots=True)
class PartitionLimits:
    """How many partitions of each topic count, by names and patterns: the name itself before the first pattern that matches."""

    limits: tuple[tuple[str, int], ...]

    def get(self, topic: str, default: int) -> int:
        """Return the number for a topic, or ``default`` if none is set."""
        found = _limit_of(topic, self.limits)
        return default if found is None else found


@lru_cache(maxsize=4096)
def _limit_of(topic: str, limits: Iterable[tuple[str, int]]) -> int | None:
    exact = (number for name, number in limits if name == topic)
    by_pattern = (number for name, number in limits if is_pattern(name) and matches_pattern(topic, name))
    return next(exact, next(by_pattern, None))
