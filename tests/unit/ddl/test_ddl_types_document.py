"""docs/ddl_types.md says of every type what each sink does; what TiCDC sends was tried on each (``tests/rig/ddl_types.py``)."""

from itertools import groupby
from pathlib import Path

from applier.ddl.policy import DDL_TYPE_NAMES, REPLICATED, STOPS, default_policy
from tests.rig.ddl_types import CASES, Stops, TypeCase

DOCUMENT = Path(__file__).parents[3] / "docs" / "ddl_types.md"
SINKS = ("mariadb", "mysql", "sqlite")


def rows() -> list[str]:
    """Write both tables as the document shows them."""
    lines = ["| type | DDL | MariaDB 10.11 | MySQL 9.7 | SQLite | remarks |", "|---|---|---|---|---|---|"]
    replicated = [case for case in CASES if case.number in REPLICATED]
    for number, cases in groupby(sorted(replicated, key=lambda case: case.number), key=lambda case: case.number):
        name = f"`{DDL_TYPE_NAMES[number]}` ({number})"
        lines += [f"| {name} | {case.what} | {' | '.join(_outcome(case, sink) for sink in SINKS)} | {case.note} |" for case in cases]
    lines += ["", "| other types | default | why |", "|---|---|---|"]
    others = sorted(DDL_TYPE_NAMES.keys() - REPLICATED)
    for (policy, why), numbers in groupby(sorted(others, key=_default), key=_default):
        lines.append(f"| {', '.join(f'`{DDL_TYPE_NAMES[number]}`' for number in numbers)} | {policy} | {why} |")
    return lines


def _outcome(case: TypeCase, sink: str) -> str:
    expected = case.expected(sink)
    if isinstance(expected, Stops):
        return f"stops: {expected.why}"
    return dict(case.notes).get(sink, "applied")


def _default(number: int) -> tuple[str, str]:
    name = DDL_TYPE_NAMES[number]
    policy = default_policy(name)
    reasons = {"apply": "clauses that only TiDB has are skipped, the rest is applied", "skip": "it changes no table and no row"}
    return policy, STOPS.get(name) or reasons[policy]


def test_the_document_shows_every_type() -> None:
    assert "\n".join(rows()) in DOCUMENT.read_text()
