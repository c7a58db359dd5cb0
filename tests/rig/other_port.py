"""A port on which something else than a server of the MySQL family answers."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

SILENT = None
"""Accepts the connection, and says nothing."""
CLOSING = b""
"""Accepts the connection, and closes it."""
OTHERS = {
    "ssh": b"SSH-2.0-OpenSSH_9.2p1\r\n",
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "smtp": b"220 mail ready\r\n",
    "mysqlx": b"\x05\x00\x00\x00\x0b\x08\x05\x1a\x00",
    "empty packet": b"\x00\x00\x00\x00",
    "text in a packet": b"\x05\x00\x00\x00hello",
}
"""What other servers send first."""


@contextmanager
def other_port(first: bytes | None) -> Iterator[int]:
    """Yield a port whose server sends ``first`` to each client, and then waits (b"": closes the connection)."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        kept: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                kept.append(client)
                with suppress(OSError):  # the client may have gone
                    client.sendall(first or b"")
                    if first == CLOSING:
                        client.close()

        serving = Thread(target=serve, daemon=True)
        serving.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()
            for client in kept:
                client.close()
