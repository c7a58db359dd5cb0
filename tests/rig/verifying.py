"""``applier verify`` in the process of a test: two databases, and what it says about them."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from applier.model.events import TableName
from applier.sinks.settings import SinkSettings
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.verify.comparison import Patience
from applier.verify.difference import Report, RowState, TableResult
from applier.verify.verification import ComparedTables, Options, Task, perform
from tests.rig.mysql_oracle import connect


class Listener:
    """Keeps what an operator would be told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.rows = 0

    def begin(self, rows: int) -> None:
        del rows

    def advance(self, table: TableName, rows: int) -> None:
        del table
        self.rows += rows

    def say(self, line: str) -> None:
        self.said.append(line)


def of_schemas(*schemas: str) -> ComparedTables:
    """Compare the tables of these schemas only."""
    return ComparedTables(lambda name: name if name.schema in schemas else None)


def verify(
    upstream: str,
    sink: str,
    tables: ComparedTables,
    *,
    fix_sql: Path | None = None,
    patience: Patience | None = None,
    listener: Listener | None = None,
    replica: SinkSettings | None = None,
    statement_timeout_s: int = 600,
    **options: Any,
) -> Report:
    """Compare two databases."""
    task = Task(
        upstream=SinkSettings(url=upstream),
        sink=replace(replica or SinkSettings(url=sink), url=sink),
        tables=tables,
        options=Options(**{"jobs": 2, **options}),
        statement_timeout_s=statement_timeout_s,
        fix_sql=fix_sql,
        rows_in_flight=patience,
        timeline=TSO_TIMELINE,
    )
    return perform(task, listener or Listener())


def wrong(report: Report) -> dict[str, tuple[int, int, int] | str]:
    """Return what differs: table -> (missing, extra, different), or its problem."""
    return {str(table.name): _shown(table) for table in report.tables if not table.is_equal}


def _shown(table: TableResult) -> tuple[int, int, int] | str:
    if table.problem:
        return table.problem
    counts = [table.count(state) for state in RowState]
    return (counts[0], counts[1], counts[2]) if any(counts) else "no key"


def run(url: str, *statements: str) -> None:
    """Run statements as an administrator."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def read(url: str, query: str) -> list[tuple[Any, ...]]:
    """Run a query as an administrator."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def execute_file(url: str, path: Path) -> None:
    """Run the statements of a repair, one a line, as a client would."""
    lines = path.read_bytes().decode("utf-8", "surrogateescape").split(";\n")
    statements = ["\n".join(line for line in text.split("\n") if not line.startswith("--")).strip() for text in lines]
    run(url, *(text for text in statements if text))
