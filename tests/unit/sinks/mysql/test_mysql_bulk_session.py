"""A server that asks for a file: it gets the rows of the load, or nothing."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
import pytest
from pymysql.constants import CLIENT

from applier.model.errors import FatalSinkError
from applier.sinks.mysql.bulk_load import FILE_NAME
from applier.sinks.mysql.bulk_write import PACKET_BYTES, Loaded, send_load

OK = b"\0\0\0\x02\0\0\0"
GREETING = b"\x0a8.0.0-fake\0" + struct.pack("<I", 1) + b"saltsalt\0" + struct.pack("<HBHHB", 0xF7FF, 45, 2, 0x0008, 21)
GREETING += b"\0" * 10 + b"saltsaltsalt\0mysql_native_password\0"


class FakeServer:
    """Accepts any user, and answers each statement with the next of its answers. ``received``: packets after a request for a file."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.received: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            stream = connection.makefile("rb")
            self._send(connection, 0, GREETING)
            self._read(stream)
            self._send(connection, 2, OK)
            while self._read(stream) is not None:  # the driver's own statement, then those of the test
                answer = self._answers.pop(0)
                self._send(connection, 1, answer)
                if not answer.startswith(b"\xfb"):
                    continue
                while packet := self._read(stream):
                    self.received.append(packet)
                if packet is None:
                    return
                self._send(connection, len(self.received) + 3, self._answers.pop(0))

    def _send(self, connection: socket.socket, number: int, payload: bytes) -> None:
        connection.sendall(struct.pack("<I", len(payload))[:3] + bytes([number % 256]) + payload)

    def _read(self, stream: object) -> bytes | None:
        head = stream.read(4)
        return stream.read(int.from_bytes(head[:3], "little")) if len(head) == 4 else None

    def end(self) -> None:
        self._listener.close()
        self._thread.join(10)
        assert not self._thread.is_alive()


@contextmanager
def fake(*answers: bytes) -> Iterator[tuple[FakeServer, pymysql.Connection]]:
    server = FakeServer(*answers)
    driver = pymysql.connect(
        host="127.0.0.1", port=server.port, user="u", autocommit=None, charset="utf8mb4", client_flag=CLIENT.LOCAL_FILES
    )
    try:
        yield server, driver
    finally:
        driver._force_close()
        server.end()


def asks_for(name: str) -> bytes:
    return b"\xfb" + name.encode()


def answer(message: bytes, warnings: int = 0) -> bytes:
    return b"\0\0\0" + struct.pack("<HH", 2, warnings) + bytes([len(message)]) + message


def test_the_rows_are_sent_in_packets_to_a_server_that_asks_for_our_name():
    content = bytes(range(256)) * 1000
    done = answer(b"Records: 7  Deleted: 2  Skipped: 0  Warnings: 3", 3)
    with fake(OK, asks_for(FILE_NAME), done) as (server, driver):
        assert send_load(driver, b"LOAD", content) == Loaded(7, 3)
    assert b"".join(server.received) == content
    assert max(map(len, server.received)) == PACKET_BYTES


def test_skipped_records_do_not_count():
    with fake(OK, asks_for(FILE_NAME), answer(b"Records: 7  Deleted: 2  Skipped: 1  Warnings: 0")) as (_, driver):
        assert send_load(driver, b"LOAD", b"x") == Loaded(6, 0)


def test_a_server_that_does_not_say_how_many_has_not_loaded_them():
    with fake(OK, asks_for(FILE_NAME), answer(b"")) as (_, driver):
        assert send_load(driver, b"LOAD", b"x") == Loaded(None, 0)


def test_a_server_that_asks_for_nothing_has_loaded_nothing():
    with fake(OK, OK) as (_, driver):
        assert send_load(driver, b"LOAD", b"x") == Loaded(None, 0)


@pytest.mark.parametrize("name", ["/etc/passwd", "", FILE_NAME + "/", "./" + FILE_NAME, FILE_NAME.upper(), "/proc/self/environ"])
def test_a_server_that_asks_for_another_file_gets_nothing(name):
    with fake(OK, asks_for(name)) as (server, driver), pytest.raises(FatalSinkError) as caught:
        send_load(driver, b"LOAD", b"x")
    assert server.received == []
    assert caught.value.facts == {"asked_for": name}
    assert "tls_mode" in caught.value.remedy


@pytest.mark.parametrize("name", ["/etc/passwd", FILE_NAME])
def test_a_server_that_answers_another_statement_with_a_request_gets_nothing(name):
    with fake(OK, asks_for(name)) as (server, driver), pytest.raises(RuntimeError, match="LOAD_LOCAL"):
        driver.query("SELECT 1")
    assert server.received == []
