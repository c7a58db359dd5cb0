"""A Spark without a JVM: it answers everything with itself, its jobs deliver the bytes that a test gives it, or all of it fails."""

import socket
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import Any

from pyspark import RDD

from applier.model.seal import seal


class AnsweringSpark:
    """Context, JVM and every object of it at once. ``deliveries``: what the jobs that come next deliver to the driver, one after the other.

    ``error``: how jobs fail from now on, or with ``is_dead`` every word to it.
    """

    def __init__(self, *deliveries: Any) -> None:
        self.deliveries = list(deliveries)
        self.error: Exception | None = None
        self.is_dead = False
        self.said: Counter[str] = Counter()
        self.context = self
        self._jsc: Any = self
        self._pickled_broadcast_vars: list[Any] = []
        self.defaultParallelism = 2
        self.profiler_collector = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self.said[name] += 1
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        if self.is_dead and self.error is not None:
            raise self.error
        return self

    def __lt__(self, other: object) -> bool:
        return False

    def __getitem__(self, index: int) -> Any:
        return self

    def __setitem__(self, index: int, value: object) -> None:
        self.said["items"] += 1

    def runJob(self, first: object, *_: object) -> Any:  # noqa: N802 - Spark's name, of the context and of the JVM's class
        if self.error is not None:
            raise self.error
        delivered = self.deliveries.pop(0)
        if isinstance(first, RDD):
            return list(map(seal, delivered))
        return [_served(delivered if isinstance(delivered, bytes) else frames(delivered)), None]

    def stop(self) -> None:
        """Fail once: Spark's own has forgotten the JVM then, and ends the rest."""
        is_dead, self.is_dead = self.is_dead, False
        if is_dead and self.error is not None:
            raise self.error

    @property
    def kept_shuffles(self) -> int:
        """How many shuffles were made whose files were not deleted."""
        return self.said["PairwiseRDD"] - self.said["doCleanupShuffle"]


def frames(elements: list[Any]) -> bytes:
    """The bytes of a shuffle's elements on their way to the driver."""
    framed = [seal([element]) for element in elements]
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in framed)


def _served(data: bytes) -> str:
    """Offer some bytes to the one who connects to the socket of the path that is returned."""
    path = str(Path(mkdtemp(prefix="served")) / "s")
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(path)
    server.listen(1)

    def serve() -> None:
        with server:
            connection, _ = server.accept()
            with connection:
                connection.sendall(data)
        Path(path).unlink()
        Path(path).parent.rmdir()

    Thread(target=serve, daemon=True).start()
    return path
