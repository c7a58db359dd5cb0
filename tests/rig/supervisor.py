"""``applier run`` under a supervisor: started again at once when it ends; exit codes are kept, and those that nobody caused are named."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread

from tests.rig.program import Ended, Program, daemon

POLL_S = 0.05
STOP_S = 60
KILLED = -signal.SIGKILL


class Supervisor:
    """Keeps a daemon running. ``exits`` are the codes with which it ended, ``unexpected`` those that no test has caused."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._lock = Lock()
        self._stopping = Event()
        self._thread = Thread(target=self._watch, name="supervisor", daemon=True)
        self._next_environment: dict[str, str] = {}
        self._is_death_caused = False
        self._programs: list[Program] = []
        self.exits: list[int] = []
        self.unexpected: list[Ended] = []

    @property
    def program(self) -> Program:
        """The run of the moment."""
        return self._programs[-1]

    def describe(self) -> str:
        """Say how the daemon is and what it said last, for a test that fails."""
        return f"exits {self.exits}, now {self.program.poll()}, says: {self.program.said()[-2000:]}"

    def start(self) -> None:
        self._start()
        self._thread.start()

    def kill(self, **environment: str) -> None:
        """SIGKILL the driver; the next run has ``environment``, and if that lets it die (a failpoint), that is expected too."""
        with self._lock:
            self._is_death_caused = True
            self._next_environment = environment
            self.program.kill()

    def stop(self) -> Ended:
        """SIGTERM; return how it ended."""
        self._stopping.set()
        self._thread.join()
        return self.program.stop(STOP_S)

    def end(self) -> None:
        """Leave nothing behind."""
        self._stopping.set()
        self._thread.join()
        for program in self._programs:
            program.kill_all()

    def _start(self) -> None:
        self._programs.append(daemon(self._config, **self._next_environment))

    def _watch(self) -> None:
        while not self._stopping.wait(POLL_S):
            with self._lock:
                code = self.program.poll()
                if code is None:
                    continue
                ended = self.program.wait()
                self.exits.append(code)
                if not (self._is_death_caused and code == KILLED):
                    self.unexpected.append(ended)
                self._is_death_caused = bool(self._next_environment)
                self._start()
                self._next_environment = {}
            # A daemon that cannot start at all must not become a tight loop.
            time.sleep(POLL_S)


@contextmanager
def supervised(config: Path) -> Iterator[Supervisor]:
    """Yield a supervisor whose daemon runs; nothing of it is left after the block."""
    supervisor = Supervisor(config)
    supervisor.start()
    try:
        yield supervisor
    finally:
        supervisor.end()
