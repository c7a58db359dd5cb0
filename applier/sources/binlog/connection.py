"""The connection that a server sends its binlog over: opened as a replica's, with a server id that no other connection of ours uses."""

import random
import struct
from typing import Any, Final

import pymysql
from pymysql.constants.COMMAND import COM_BINLOG_DUMP, COM_REGISTER_SLAVE

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy
from applier.mysql.session import discard, driver_of
from applier.sources.binlog.refusal import ended
from applier.sources.binlog.server import address_of, connect, failed
from applier.sources.binlog.settings import BinlogSettings

HEARTBEAT_S: Final = 1
"""How long a server that has nothing to send is silent."""
RECEIVE_BYTES: Final = 1 << 20
"""The socket's buffer: the server goes on while a process is busy."""

_VARIABLES: Final = (
    # Both names: MySQL 8.4 asks for the new ones first. MariaDB and older servers of MySQL know the old ones only.
    f"SET @master_heartbeat_period = {HEARTBEAT_S * 10**9}, @source_heartbeat_period = {HEARTBEAT_S * 10**9}, "
    "@master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32', "
    # 4: the replica knows MariaDB's GTID events. With less, the server would turn events into others.
    "@mariadb_slave_capability = 4"
)
_OWN_UUID: Final = "SET @slave_uuid = UUID(), @replica_uuid = @slave_uuid"
"""MySQL ends another dump of the same UUID, or, without one, of the same server id."""
_ANNOTATED: Final = 2
"""MariaDB: send the events that hold the text of statements too. Without them, positions would have gaps."""


class Dump:
    """A dump from a position on. Events come until it is closed, or the server ends it.

    ``server``: its identity as ``Server.identity`` gives it; '' is not compared. Errors: those of ``connect``, and "other_server".
    """

    def __init__(self, settings: BinlogSettings, server: str, file_name: str, position: int) -> None:
        self._settings = settings
        self._session = connect(settings)
        try:
            driver = driver_of(self._session)
            is_mariadb = "mariadb" in str(driver.get_server_info()).lower()
            self.server_id = _begin_session(driver, settings, server, "@@server_id" if is_mariadb else "@@server_uuid")
            _register(driver, settings, self.server_id)
            head = struct.pack("<BIHI", COM_BINLOG_DUMP, position, _ANNOTATED if is_mariadb else 0, self.server_id)
            _send(driver, head + file_name.encode())
        except BaseException as error:
            self.close()
            if isinstance(error, (pymysql.MySQLError, OSError)):
                raise failed(settings, "beginning to read the binlog", error) from error
            raise
        self._socket = driver._sock  # noqa: SLF001 - PyMySQL has no words for a dump
        self._timeout_s = -1.0

    def receive(self, room: memoryview, timeout_s: float, at: str) -> int:
        """Read what has come into ``room``; return how much; 0: nothing came in time. ``at``: behind what.

        SourceError "unreachable": the connection is lost.
        """
        try:
            if timeout_s != self._timeout_s:
                self._socket.settimeout(timeout_s)
                self._timeout_s = timeout_s
            size = self._socket.recv_into(room)
        except TimeoutError:
            return 0
        except OSError as error:
            raise failed(self._settings, "reading the binlog", error) from error
        if not size:
            raise ended("the connection to the server of the binlog was lost", at, address=address_of(self._settings))
        return int(size)

    def close(self) -> None:
        """End the dump. The server frees its id when it notices."""
        self._session.end()  # first: close() would send a command, which a dump takes none of
        discard(self._session)


def _begin_session(session: Any, settings: BinlogSettings, server: str, identity: str) -> int:
    """Check which server it is, and return a server id that is free; the session holds it until it ends."""
    first, last = settings.server_ids
    ids = list(range(first, last + 1))
    random.shuffle(ids)
    with session.cursor() as cursor:
        cursor.execute(_VARIABLES)
        cursor.execute(_OWN_UUID)
        for server_id in ids:
            cursor.execute(f"SELECT GET_LOCK(%s, 0), {identity}", (f"applier.server_id.{server_id}",))
            is_free, answering = cursor.fetchone()
            if server and str(answering) != server:
                raise SourceError(
                    "another server answers than the one whose binlog is read",
                    kind=FailureKind.OTHER_SERVER,
                    expected=server,
                    answers=str(answering),
                    address=address_of(settings),
                )
            if is_free == 1:
                return server_id
    raise SourceError(
        "all server ids for reading the binlog are in use",
        remedy=Remedy(
            "binlog.give-two-server-ids-per-task",
            "Give more in source.server_ids: two for each task that reads, and one for the driver. An id of a lost connection is free "
            "again when the server notices the loss",
        ),
        kind=FailureKind.UNREACHABLE,
        server_ids=f"{first}-{last}",
        address=address_of(settings),
    )


def _register(session: Any, settings: BinlogSettings, server_id: int) -> None:
    """Let the server list this connection among its replicas, under the name of ours."""
    host = f"applier-{settings.name}".encode()[:60]
    _send(session, struct.pack("<BIB", COM_REGISTER_SLAVE, server_id, len(host)) + host + struct.pack("<BBHII", 0, 0, 0, 0, 0))
    session._read_packet()  # noqa: SLF001 - PyMySQL has no words for this command


def _send(session: Any, command: bytes) -> None:
    session._next_seq_id = 0  # noqa: SLF001 - each command begins a sequence
    session.write_packet(command)
