"""The packets of the client protocol that carry a dump: the buffer that a socket fills."""

from typing import Final

BUFFER_BYTES: Final = 1 << 20
MAX_PACKET_BYTES: Final = 0xFFFFFF
"""A packet of this size is continued by the next one."""
PACKET_HEAD_BYTES: Final = 4


class PacketBuffer:
    """What has come and is not taken yet: ``data[first:last]``."""

    def __init__(self) -> None:
        self.data = bytearray(BUFFER_BYTES)
        self.first = self.last = 0

    def room(self) -> memoryview:
        """Return where the next bytes go; never empty."""
        if self.first == self.last:
            self.first = self.last = 0
            if len(self.data) > BUFFER_BYTES:
                self.data = bytearray(BUFFER_BYTES)
        elif self.last == len(self.data):
            self._move(len(self.data))
        return memoryview(self.data)[self.last :]

    def took(self, size: int) -> None:
        """Say how many bytes the room got."""
        self.last += size

    def need(self, size: int) -> None:
        """Make the room large enough for a packet that begins at ``first`` and has ``size`` bytes."""
        if self.first + size > len(self.data):
            self._move(size)

    def _move(self, size: int) -> None:
        rest = self.data[self.first : self.last]
        if size > len(self.data) or len(rest) == len(self.data):
            self.data = bytearray(max(size, 2 * len(rest)))
        self.data[: len(rest)] = rest
        self.first, self.last = 0, len(rest)
