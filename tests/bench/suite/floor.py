"""The floor: the same final rows as ready REPLACE text, replayed by the ``mariadb`` client. No replica of one connection is faster.

The text is in transactions of as many rows as the applier's. Over two connections each client replays every other transaction.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby, islice
from pathlib import Path

from sqlalchemy import make_url

from applier.demo.simulator.mysql_text import quote_name
from applier.demo.simulator.schema import Table
from applier.model.events import Value
from tests.bench.suite.process_cpu import of_process, server_process
from tests.bench.suite.rows import SCHEMA
from tests.bench.suite.sink import Sink
from tests.bench.suite.workload import Workload

CLIENT = "mariadb"
TRANSACTION_ROWS = 100_000
STATEMENT_BYTES = 1 << 20
KEPT = Path(__file__).parents[3] / "build" / "bench"
HEAD = b"SET SESSION time_zone='+00:00', sql_mode='NO_AUTO_VALUE_ON_ZERO', foreign_key_checks=0, unique_checks=1, autocommit=0;\n"
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"})


def measure(sink: Sink, workload: Workload, rows: int, connections: int) -> dict[str, float]:
    """Replay the final rows into empty tables; return their number, seconds, the server's CPU and a checksum.

    ``rows`` are events: after updates and deletes fewer rows are left.
    """
    texts, final = _texts(workload, rows, connections), _final_rows(workload, rows)
    sink.clear(workload.tables)
    server = server_process(sink.url)
    began, before = time.monotonic(), of_process(server)
    with ExitStack() as open_files:
        clients = [_start(sink.url, open_files.enter_context(text.open("rb"))) for text in texts]
        codes = [client.wait() for client in clients]
    seconds, after = time.monotonic() - began, of_process(server)
    if any(codes):
        raise SystemExit(f"the floor failed: {CLIENT} ended with {codes}")
    return {
        "seconds": seconds,
        "final_rows": final,
        "rows_per_s": final / seconds,
        "database_us": (after - before) / final * 1e6,
        "checksum": sink.checksum(workload.tables),
    }


def _start(url: str, text: object) -> "subprocess.Popen[bytes]":
    where = make_url(url)
    options = [f"--host={where.host}", f"--port={where.port or 3306}", f"--user={where.username}", "--protocol=tcp", "--skip-ssl"]
    command = [_client(), "--no-defaults", *options, "--default-character-set=utf8mb4", "--max-allowed-packet=64M", "--batch", SCHEMA]
    return subprocess.Popen(command, stdin=text, env=os.environ | {"MYSQL_PWD": str(where.password or "")})  # type: ignore[call-overload]


def _client() -> str:
    found = shutil.which(CLIENT)
    if found is None:
        raise SystemExit(f"missing: {CLIENT}, the client that replays the floor (Debian: apt-get install mariadb-client)")
    return found


def _texts(workload: Workload, rows: int, connections: int) -> list[Path]:
    """Return the files of so many connections; make them unless they are kept from an earlier run."""
    KEPT.mkdir(parents=True, exist_ok=True)
    names = [KEPT / f"{workload.topic(rows)}.{place + 1}-of-{connections}.sql" for place in range(connections)]
    if not all(name.exists() for name in (*names, _count_of(workload, rows))):
        with ExitStack() as open_files:
            files = [open_files.enter_context(name.with_suffix(".new").open("wb")) for name in names]
            for file in files:
                file.write(HEAD)
            final = 0
            for number, (count, transaction) in enumerate(_transactions(workload, rows)):
                final += count
                files[number % connections].writelines(transaction)
            _count_of(workload, rows).write_text(str(final), encoding="ascii")
        for name in names:
            name.with_suffix(".new").rename(name)
    return names


def _count_of(workload: Workload, rows: int) -> Path:
    return KEPT / f"{workload.topic(rows)}.rows"


def _final_rows(workload: Workload, rows: int) -> int:
    return int(_count_of(workload, rows).read_text(encoding="ascii"))


def _transactions(workload: Workload, rows: int) -> Iterator[tuple[int, Sequence[bytes]]]:
    final = iter(workload.final(rows))
    while part := list(islice(final, TRANSACTION_ROWS)):
        yield len(part), [*_statements(part), b"COMMIT;\n"]


def _statements(part: list[tuple[Table, Sequence[Value]]]) -> Iterator[bytes]:
    for table, found in groupby(part, key=lambda item: item[0]):
        names = ",".join(quote_name(column.name) for column in table.columns)
        head = f"REPLACE INTO {quote_name(table.name.table)} ({names}) VALUES ".encode()
        values: list[bytes] = []
        size = 0
        for _, row in found:
            values.append(f"({','.join(map(_literal, row))})".encode())
            size += len(values[-1])
            if size > STATEMENT_BYTES:
                yield head + b",".join(values) + b";\n"
                values, size = [], 0
        if values:
            yield head + b",".join(values) + b";\n"


def _literal(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"x'{value.hex()}'"
        case str():
            return f"'{value.translate(_ESCAPES)}'"
        case _:
            return repr(value)
