"""librdkafka's mock cluster in a separate process: ``python -m applier.demo.simulator.broker``.

Prints its bootstrap address on one line and lives until its standard input closes, so that it never outlives who started it. It has
four partitions per topic, creates topics at their first use, knows no CreateTopics, and forgets what is beyond some 5 MB per partition.
"""

import subprocess
import sys
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

MOCK_PARTITIONS = 4
KEPT_BYTES = 5_000_000
"""What a partition keeps at least, in bytes of whole batches: it keeps 5 MiB."""
_BROKERS = 1
_METADATA_TIMEOUT_S = 30
_STOP_TIMEOUT_S = 30


def serve() -> None:
    """Run a mock cluster until standard input closes."""
    # The cluster lives inside this client; any broker address will do for it.
    cluster = Producer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": _BROKERS, "log_level": 0})
    metadata = cluster.list_topics(timeout=_METADATA_TIMEOUT_S)
    addresses = [f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()]
    sys.stdout.write(",".join(addresses) + "\n")
    sys.stdout.flush()
    # The pipe closes with the parent, however that ends: no broker outlives a killed test.
    sys.stdin.read()


class MockBroker:
    """A mock cluster in its own process. Use it as a context manager."""

    def __init__(self) -> None:
        self.bootstrap_servers = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start the process and return its bootstrap address; RuntimeError if it ends at once."""
        command = [sys.executable, "-m", "applier.demo.simulator.broker"]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # The terminal's Ctrl-C reaches only the program that has started it, whose end closes the standard input.
            start_new_session=True,
        )
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line.strip():
            code = self._process.wait(_STOP_TIMEOUT_S)
            message = f"the mock broker ended with {code} before it printed its address"
            raise RuntimeError(message)
        self.bootstrap_servers = line.strip()
        return self.bootstrap_servers

    def stop(self) -> None:
        """Close the process's standard input and wait for its end; kill it if it does not end."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


if __name__ == "__main__":
    serve()
