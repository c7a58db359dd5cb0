"""A TCP proxy for one test: it passes everything through, until a test makes it drop the answer to COMMIT."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

COMMIT = b"\x03COMMIT"
ANSWER_S = 60
ROWS = b"\x03REPLACE INTO `"
"""Rows of a segment: the bookkeeping does not quote the names of its tables."""


class Proxy:
    """Listens on ``port``. ``cut_before`` cuts in front of COMMIT (it never arrives); ``cut_after`` behind it (its answer is lost).

    ``cut_segments`` cuts behind the COMMIT of these segments only, counted from 1; ``cuts`` are those that were.
    """

    def __init__(self, host: str, port: int, *, own_port: int = 0) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", own_port))
        self.port: int = self._listener.getsockname()[1]
        self.cut_before = False
        self.cut_after = False
        self.cut_segments: frozenset[int] = frozenset()
        self.commits = self.segments = 0
        self.cuts: list[int] = []
        self._sockets: list[socket.socket] = []
        self._unheard: dict[socket.socket, threading.Event] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close everything."""
        for each in (self._listener, *self._sockets):
            _close(each)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._sockets += [client, server]
                threading.Thread(target=self._to_server, args=(client, server), daemon=True).start()
                threading.Thread(target=self._to_client, args=(server, client), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        is_segment = False
        with suppress(OSError):
            while data := client.recv(65536):
                is_segment = is_segment or ROWS in data[:64]
                if COMMIT in data[:64]:
                    self.commits += 1
                    if is_segment and self._is_cut():
                        self._commit_unheard(client, server, data)
                        return
                    is_segment = False
                    if self.cut_before:
                        break
                    if self.cut_after:
                        self._commit_unheard(client, server, data)
                        return
                server.sendall(data)
        _close(client)
        _close(server)

    def _is_cut(self) -> bool:
        self.segments += 1
        if self.segments not in self.cut_segments:
            return False
        self.cuts.append(self.segments)
        return True

    def _commit_unheard(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        # The answer is awaited, so that it has committed before the client, who must not hear it, notices anything.
        answered = self._unheard[server] = threading.Event()
        server.sendall(data)
        answered.wait(ANSWER_S)
        _close(client)
        _close(server)

    def _to_client(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if server in self._unheard:
                    break
                client.sendall(data)
        if (answered := self._unheard.get(server)) is not None:
            answered.set()
        else:
            # The server has closed: a client that is not told would wait for its own timeout.
            _close(client)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextmanager
def proxy_to(host: str, port: int, *, own_port: int = 0) -> Iterator[Proxy]:
    """Yield a proxy in front of ``host:port``, on a port that is free, or on ``own_port``."""
    proxy = Proxy(host, port, own_port=own_port)
    try:
        yield proxy
    finally:
        proxy.close()
