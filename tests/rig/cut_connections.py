"""A TCP proxy that cuts each of its first connections after so many bytes of the server's."""

import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

NEVER = 1 << 62


class CutConnections:
    """Listens on ``port``. ``cuts``: how many connections were cut."""

    def __init__(self, host: str, port: int, after: Sequence[int]) -> None:
        self._target, self._after = (host, port), deque(after)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more."""
        _close(self._listener)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                left = self._after.popleft() if self._after else NEVER
                threading.Thread(target=self._pass, args=(client, server, NEVER), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, left), daemon=True).start()

    def _pass(self, here: socket.socket, there: socket.socket, left: int) -> None:
        with suppress(OSError):
            while left and (data := here.recv(min(left, 65536))):
                there.sendall(data)
                left -= len(data)
        self.cuts += not left
        _close(here)
        _close(there)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextmanager
def cutting(host: str, port: int, after: Sequence[int]) -> Iterator[CutConnections]:
    """Yield a proxy in front of ``host:port``."""
    proxy = CutConnections(host, port, after)
    try:
        yield proxy
    finally:
        proxy.close()
