"""A TCP proxy in front of a Kafka broker that changes bytes of its answers. The broker's own port is among them: clients stay with it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class ChangingProxy:
    """Listens on ``address``. ``changes``: what stands in for which bytes of the broker's answers."""

    def __init__(self, broker: str) -> None:
        host, _, port = broker.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        own = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{own}"
        self.changes = {int(port).to_bytes(4, "big"): own.to_bytes(4, "big")}
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close everything."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._target)
                self._sockets += [client, broker]
                threading.Thread(target=self._pass, args=(client, broker, {}), daemon=True).start()
                threading.Thread(target=self._pass, args=(broker, client, self.changes), daemon=True).start()

    def _pass(self, sender: socket.socket, receiver: socket.socket, changes: dict[bytes, bytes]) -> None:
        with suppress(OSError):
            # An answer of a test is small: it comes at once.
            while data := sender.recv(1 << 20):
                for there, other in changes.items():
                    data = data.replace(there, other)
                receiver.sendall(data)


@contextmanager
def changing_proxy(broker: str) -> Iterator[ChangingProxy]:
    """Yield a proxy in front of a broker."""
    proxy = ChangingProxy(broker)
    try:
        yield proxy
    finally:
        proxy.close()
