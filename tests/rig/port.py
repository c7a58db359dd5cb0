"""A TCP port of the loopback interface that stays ours while a server on it is stopped and started again."""

import random
import socket

# Below Linux' ephemeral range: while a server is down, no outgoing connection of another process can be given its port.
FIRST, LAST = 20_000, 31_000


def free_port() -> int:
    """Return a port that nothing listens on now."""
    while True:
        port = random.SystemRandom().randint(FIRST, LAST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
