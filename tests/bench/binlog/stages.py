"""CPU of single stages for the rows of a backlog, in one process; and that of the library's own loop for the same rows."""

import time
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
from sqlalchemy import make_url

from tests.bench.binlog.primary import Backlog

SERVER_ID = 429_000_000


def of_library(primary: str, backlog: Backlog) -> dict[str, Any]:
    """Read the backlog by the library's own loop, all columns decoded."""
    where = make_url(primary)
    rows = 0
    began = time.process_time()
    stream = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": where.port, "user": where.username, "passwd": str(where.password)},
        server_id=SERVER_ID,
        log_file=backlog.first.file,
        log_pos=backlog.first.position,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )
    try:
        for event in stream:
            rows += len(event.rows)
    finally:
        stream.close()
    return {"stage": "the library's own loop", "rows": rows, "us": (time.process_time() - began) / rows * 1e6}
