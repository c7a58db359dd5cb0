"""Indexes that are built in the background (``[ddl] background``).

The ledger says ``background`` before the first word is sent, so the DDL is settled for the coordinator and is not lost. It is sent on a
session of its own, which is registered: who takes the replica over ends it, and the server takes back what was built. A thread waits for
the answer; everything else happens in the main thread, which looks at the end of each cycle, and before a DDL that touches the table.

Success is done. Whatever else the answer was (the server cannot do it online, the session was killed, the disk is full), the foreground
takes the DDL over: it compares, sends the statement again, and stops as it does for every other DDL.
"""

import logging
from collections.abc import Callable
from threading import Thread

from sqlalchemy import Connection

from applier.ddl.background import background_form
from applier.model.events import DdlEvent, FoldedName
from applier.mysql.errors import code_of
from applier.mysql.session import discard
from applier.sinks.mysql.ddl.intents import Intent
from applier.sinks.mysql.ddl.statement import send

Touches = frozenset[FoldedName] | None
_log = logging.getLogger(__name__)


class BackgroundDdl:
    """One DDL that runs in the background. ``there``: the statement and the names as the sink has them."""

    def __init__(self, intent: Intent, there: DdlEvent, connection: Connection) -> None:
        self.intent = intent
        self.error: BaseException | None = None
        self._there, self._connection = there, connection
        # A daemon thread: a run that ends does not wait for an index. The next one finds out what became of it.
        self._thread = Thread(target=self._run, name="applier index build", daemon=True)

    def start(self) -> None:
        """Send the statement."""
        _log.info("index_building", extra=self.intent.facts)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the server has not answered yet."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait for the answer."""
        self._thread.join()

    def _run(self) -> None:
        try:
            send(self._connection, self._there, background_form(self._there.query))
        except BaseException as error:  # noqa: BLE001 - nobody would see it in this thread; the main thread answers it
            self.error = error
        finally:
            discard(self._connection)


class BackgroundDdls:
    """The indexes that this run builds. ``take_over`` runs a DDL in the foreground, ``end`` writes that it is done. Main thread only."""

    def __init__(self, take_over: Callable[[Intent], None], end: Callable[[Intent], None]) -> None:
        self._take_over, self._end = take_over, end
        self._builds: list[BackgroundDdl] = []

    def start(self, intent: Intent, there: DdlEvent, connection: Connection) -> None:
        """Build an index on a session of its own, which is closed at the end."""
        build = BackgroundDdl(intent, there, connection)
        self._builds.append(build)
        build.start()

    def take_ended(self) -> None:
        """Write what has ended. Raises what stops a DDL; it is tried again at the next call."""
        for build in [build for build in self._builds if not build.is_running]:
            self._finish(build)

    def wait_for(self, touches: Touches) -> None:
        """Wait for the builds on any of these tables (None: on all), and write them."""
        for build in [build for build in self._builds if _meet(build.intent.identity.touches, touches)]:
            build.join()
            self._finish(build)

    def forget(self) -> None:
        """Forget all builds: their sessions have been ended, and the ledger has what is to be done."""
        for build in self._builds:
            build.join()
        self._builds.clear()

    def _finish(self, build: BackgroundDdl) -> None:
        if build.error is not None:
            _log.info("index_build_failed", extra={**build.intent.facts, "code": code_of(build.error)})
            self._take_over(build.intent)
        self._end(build.intent)
        _log.info("index_built", extra=build.intent.facts)
        self._builds.remove(build)


def _meet(one: Touches, other: Touches) -> bool:
    """Return whether two DDLs touch a table in common; None touches everything."""
    if one is None or other is None:
        return True
    return any(name.is_covered(other) for name in one) or any(name.is_covered(one) for name in other)
