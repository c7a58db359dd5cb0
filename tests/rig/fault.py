"""The faults that may befall a daemon and its servers, each with how it is made."""

import random
import signal
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum

import pymysql
from sqlalchemy import make_url

from tests.rig.database import PROCESS_LIST, Database
from tests.rig.kafka import Kafka
from tests.rig.mysql_oracle import connect
from tests.rig.process_tree import Process, Role, processes, session
from tests.rig.server import Server
from tests.rig.spark_cluster import Cluster
from tests.rig.supervisor import Supervisor

DOWN_S = (0.0, 2.0)
PATIENCE_S = 60.0
POLL_S = 0.02
DDL_POINTS = ("ddl.before_intent", "ddl.after_intent", "ddl.after_statement", "ddl.before_done", "ddl.after_done")


class Fault(StrEnum):
    """What happens."""

    DRIVER = "driver killed"
    DRIVER_AT_DDL = "driver killed at a DDL"
    WORKER = "python worker killed"
    JVM = "jvm killed"
    EXECUTOR = "executor killed"
    DATABASE = "database killed and started"
    KAFKA = "kafka killed and started"
    CONNECTIONS = "the database's connections killed"
    LOCK = "progress row locked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What can be hurt. ``lock_s``: how long somebody keeps the progress row."""

    supervisor: Supervisor
    database: Database
    kafka: Kafka
    user: str
    lock_s: float
    rng: random.Random
    cluster: Cluster | None = None

    def inject(self, fault: Fault) -> None:
        """Let ``fault`` happen; returns when what was killed is up again."""
        _MAKERS[fault](self)

    def _kill_driver(self) -> None:
        self.supervisor.kill()

    def _kill_driver_at_ddl(self) -> None:
        self.supervisor.kill(APPLIER_FAILPOINT=self.rng.choice(DDL_POINTS))

    def _kill_worker(self) -> None:
        self._kill_one(self._workers)

    def _workers(self) -> list[Process]:
        # On a cluster they are the executors'.
        return [process for leader in self._leaders() for process in session(leader) if process.role is Role.WORKER]

    def _leaders(self) -> list[int]:
        return [self.supervisor.program.pid, *(worker.pid for worker in (self.cluster.workers if self.cluster else ()))]

    def _kill_jvm(self) -> None:
        self._kill_one(lambda: processes(self.supervisor.program.pid, Role.JVM))

    def _kill_executor(self) -> None:
        self._kill_one(lambda: [process for leader in self._leaders() for process in session(leader) if process.role is Role.EXECUTOR])

    def _kill_one(self, candidates: Callable[[], list[Process]]) -> None:
        """SIGKILL one of the candidates, as soon as there is one."""
        give_up = time.monotonic() + PATIENCE_S
        while not (found := candidates()):
            assert time.monotonic() < give_up, "the daemon does not start what is to be killed"
            time.sleep(POLL_S)
        self.rng.choice(found).signal(signal.SIGKILL)

    def _crash_database(self) -> None:
        self._crash(self.database.server)

    def _crash_kafka(self) -> None:
        self._crash(self.kafka.server)

    def _crash(self, server: Server) -> None:
        server.kill()
        time.sleep(self.rng.uniform(*DOWN_S))
        server.start()

    def _kill_connections(self) -> None:
        with closing(connect(self.database.url)) as connection, connection.cursor() as cursor:
            sessions = PROCESS_LIST[self.database.kind]
            cursor.execute(f"SELECT id FROM {sessions} WHERE user = %s AND id <> CONNECTION_ID()", (self.user,))
            for (number,) in cursor.fetchall():
                with suppress(pymysql.MySQLError):  # it has ended already
                    cursor.execute(f"KILL {number}")

    def _lock_progress(self) -> None:
        with closing(connect(self.database.url)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM applier.progress FOR UPDATE")
            time.sleep(self.lock_s)
            connection.rollback()


_MAKERS: dict[Fault, Callable[[Stage], None]] = {
    Fault.DRIVER: Stage._kill_driver,
    Fault.DRIVER_AT_DDL: Stage._kill_driver_at_ddl,
    Fault.WORKER: Stage._kill_worker,
    Fault.JVM: Stage._kill_jvm,
    Fault.EXECUTOR: Stage._kill_executor,
    Fault.DATABASE: Stage._crash_database,
    Fault.KAFKA: Stage._crash_kafka,
    Fault.CONNECTIONS: Stage._kill_connections,
    Fault.LOCK: Stage._lock_progress,
}


def user_of(url: str) -> str:
    """Return the user as which a URL connects."""
    return str(make_url(url).username)
