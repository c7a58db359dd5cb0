"""MariaDB's own replica: the same binlog, applied by the server itself. What the applier is measured beside."""

import time
from typing import Any

from sqlalchemy import make_url

from tests.bench.binlog.primary import SCHEMA, Backlog, FilePosition, ask, checksum
from tests.bench.suite.process_cpu import of_process, server_process

WAIT_S = 3600


def start(replica: str, primary: str, first: FilePosition, threads: int) -> None:
    """Let the server at ``replica`` follow the primary from a place, with so many parallel workers (0: one thread applies)."""
    where = make_url(primary)
    ask(
        replica,
        "STOP SLAVE",
        "RESET SLAVE ALL",
        f"DROP DATABASE IF EXISTS {SCHEMA}",
        f"SET GLOBAL slave_parallel_threads = {threads}",
        f"CHANGE MASTER TO master_host = '127.0.0.1', master_port = {where.port}, master_user = '{where.username}', "
        f"master_password = '{where.password}', master_log_file = '{first.file}', master_log_pos = {first.position}, master_use_gtid = no",
        "START SLAVE",
    )


def stop(replica: str) -> None:
    """End the replication."""
    ask(replica, "STOP SLAVE", "RESET SLAVE ALL")


def measure(replica: str, primary: str, backlog: Backlog, threads: int) -> dict[str, Any]:
    """Apply the backlog into an empty server; return seconds, rows per second, and µs of CPU a row."""
    server, source = server_process(replica), server_process(primary)
    before = of_process(server), of_process(source)
    began = time.monotonic()
    start(replica, primary, backlog.first, threads)
    [(events,)] = ask(replica, f"SELECT MASTER_POS_WAIT('{backlog.end.file}', {backlog.end.position}, {WAIT_S})")
    seconds = time.monotonic() - began
    if events is None or int(events) < 0:
        raise SystemExit(f"the replica did not reach {backlog.end}: {ask(replica, 'SHOW SLAVE STATUS')}")
    after = of_process(server), of_process(source)
    figures = {
        "seconds": seconds,
        "rows": backlog.rows,
        "rows_per_s": backlog.rows / seconds,
        "database_us": (after[0] - before[0]) / backlog.rows * 1e6,
        "primary_us": (after[1] - before[1]) / backlog.rows * 1e6,
        "checksum": checksum(replica),
    }
    stop(replica)
    ask(replica, f"DROP DATABASE {SCHEMA}")
    return figures
