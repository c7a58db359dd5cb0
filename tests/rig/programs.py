"""Both programs over a replica in this process, for tests that must hold in each: the catch-up, and the daemon until it is idle."""

from applier.replica.shutdown import Shutdown
from applier.telemetry.observer import SilentObserver


class RequestsShutdown(SilentObserver):
    """Requests the shutdown when it has seen a phase ``looks`` times in a row."""

    def __init__(self, shutdown, phase, looks=1):
        self._shutdown, self._phase, self._looks, self._seen = shutdown, phase, looks, 0

    def update(self, state):
        self._seen = self._seen + 1 if state.phase == self._phase else 0
        if self._seen == self._looks:
            self._shutdown.request()


def catch_up(replica):
    return replica.catch_up()


def follow(replica):
    """Run as a daemon until there is nothing to do."""
    shutdown = Shutdown()
    replica.observer = RequestsShutdown(shutdown, "idle", looks=3)
    replica.follow(shutdown)


PROGRAMS = [catch_up, follow]
