"""A replica in a file, for the tests of what SQLite alone promises; and its own process that can be killed."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from applier.ddl import identity
from applier.model.events import DdlEvent
from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.planner.port import Phase, Statement
from applier.sinks.failpoint import VARIABLE
from applier.sinks.progress import ProgressCommit, WriteState
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.sink import SqliteSink

CREATE = "CREATE TABLE `t` (`id` BIGINT UNSIGNED PRIMARY KEY, `v` VARCHAR(20))"
STREAM = Stream("feed", 0)


def settings(path, **more):
    return SinkSettings(url=f"sqlite:///{path}", lock_timeout_s=0.0, lock_wait_timeout_s=5, **more)


def commit(ts, **more):
    positions = {STREAM: StreamPosition(next_offset=Offset(ts), resolved_ts=Ts(ts))}
    return ProgressCommit(checkpoint_ts=Ts(ts), positions=positions, topic_ids={"feed": "id-1"}, **more)


def rows(*texts):
    return [Statement(Phase.REPLACE, "shop.t", f'REPLACE INTO "shop.t" VALUES {text}'.encode(), 1, 7, 8) for text in texts]


def run(sink, fence, query, ts, **more):
    ddl = DdlEvent(commit_ts=Ts(ts), schema="shop", table="t", query=query, ddl_type=3)
    return sink.run_ddl(fence, identity(ddl), ddl, before=commit(ts, **more), after=commit(ts))


def contents(path, query='SELECT * FROM "shop.t" ORDER BY 1'):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


CHILD = """
import sys
from tests.unit.sinks.sqlite import sqlite_replica as t
t.child(sys.argv[1], sys.argv[2])
"""
ALTER = "ALTER TABLE `t` ADD COLUMN `n` INT NOT NULL DEFAULT 5 FIRST"


def child(path, what):
    """Run in its own process: resume the replica, then one DDL or one write."""
    sink = SqliteSink(settings(path))
    sink.acquire()
    fence = sink.load().fence
    if what == "ddl":
        run(sink, fence, ALTER, 6)
    elif what == "write":
        outcome = sink.writer.write(fence, rows("(1,'new')", "(2,'new')"), commit(6))
        assert outcome.state is WriteState.COMMITTED
    elif what == "full":
        outcome = sink.writer.write(fence, full_disk(path), commit(6))
        print(outcome.state.value, type(outcome.error).__name__, outcome.error.message, flush=True)
    else:
        print("owner", flush=True)
        time.sleep(600)


def full_disk(path):
    """One row, and then no file may grow any more: the COMMIT is what fails."""
    yield from rows("(2,'new')")
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{path}-wal").stat().st_size, resource.RLIM_INFINITY))


def start(path, what, failpoint=""):
    environment = os.environ | ({VARIABLE: failpoint} if failpoint else {})
    script = "import sys; sys.path.insert(0, '.');" + CHILD.replace("\n", ";").strip(";")
    return subprocess.Popen([sys.executable, "-c", script, str(path), what], env=environment, stdout=subprocess.PIPE)


def killed(path, what, failpoint):
    with start(path, what, failpoint) as process:
        assert process.wait() == -signal.SIGKILL
