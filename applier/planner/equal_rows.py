"""Equal rows of one transaction that may be one row, in tables without a key: who decides what they are, and the error that asks.

The operator decides, table by table; what the wire shows is counted in ``keyless``. The error names the earliest commit of its segment, and
all tables in which that commit has such rows: of an operator who decides about these, nothing else is guessed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from applier.model.errors import NeedsOperator
from applier.model.events import FoldedName
from applier.planner.table_check.acceptance import fits

EQUAL_REMEDY: Final = (
    'Name the tables under [sink.equal_rows_of]: "all" if upstream\'s transaction has so many equal rows, "once" if the producer has sent '
    'them again. If you cannot tell, set "once", run `applier catchup --until-ts …`, write these tables again as of that checkpoint, '
    "and remove the setting: docs/tables.md"
)


class EqualRows(StrEnum):
    """What happens to equal rows of one transaction in several records, which may be one row that was sent again."""

    STOP = "stop"
    ONCE = "once"
    """They were sent again: the rows of one record count."""
    ALL = "all"
    """They are real."""


@dataclass(frozen=True, slots=True)
class EqualRowsRule:
    """``patterns`` of tables as of ``Acceptance``: the first that fits decides; ``otherwise``: of all other tables."""

    otherwise: EqualRows = EqualRows.STOP
    patterns: tuple[tuple[str, EqualRows], ...] = ()

    def of(self, table: FoldedName) -> EqualRows:
        """Return what happens to equal rows of a table."""
        return next((choice for pattern, choice in self.patterns if fits(pattern, table)), self.otherwise)


ALL_REAL: Final = EqualRowsRule(EqualRows.ALL)


class AmbiguousRows(NeedsOperator):
    """Equal rows may be one row that was sent again, and nobody has said so."""

    @classmethod
    def of(cls, place: Mapping[str, Any], **facts: Any) -> "AmbiguousRows":
        """Make the error of one table; ``place``: the facts of a row."""
        return cls(
            "equal rows of one transaction came in several records: they are real, or the producer has sent them again",
            remedy=EQUAL_REMEDY,
            kind="equal_rows",
            **facts,
            **place,
            tables=place["table"],
        )


def earliest(errors: Iterable[AmbiguousRows]) -> AmbiguousRows:
    """Return the error about the earliest commit, with the tables of all errors about it."""
    # The earliest first: what follows it may be counted once it is settled.
    found = sorted(errors, key=lambda error: (error.facts["commit_ts"], error.facts["tables"]))
    first = found[0]
    of_commit = (error.facts["tables"] for error in found if error.facts["commit_ts"] == first.facts["commit_ts"])
    first.facts["tables"] = ", ".join(dict.fromkeys(table for tables in of_commit for table in tables.split(", ")))
    return first
