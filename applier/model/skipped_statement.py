"""A statement of upstream that is not applied."""

from typing import NamedTuple


class SkippedStatement(NamedTuple):
    """A statement of upstream that is not applied, because it changes no table of a replica: one about accounts, a routine, or FLUSH.

    ``kind`` is a label of the metric; ``schema`` that of the session.
    """

    ts: int
    kind: str
    schema: str
