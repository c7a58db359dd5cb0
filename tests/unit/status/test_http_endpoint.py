"""When a run answers over HTTP: from its start if the address is free, else as soon as it becomes free."""

import json
import socket
import time
from dataclasses import dataclass
from threading import Thread

import pytest

from applier.model.errors import ConfigError, Remedy
from applier.status.http_endpoint import HttpEndpoint, StatusApp, StatusServer
from applier.telemetry.monitor import Monitor
from applier.telemetry.observer import SilentObserver
from tests.builders.run_state import STATE
from tests.rig.http_client import get

LOOPBACK = "127.0.0.1"


@dataclass
class Address:
    host: str
    port: int


@dataclass
class Settings:
    listen: Address | None
    unhealthy_after_s: float = 600.0
    names: tuple[str, ...] = ()
    secret: str = ""


class NoteBook(SilentObserver):
    def __init__(self):
        self.notes = []

    def note(self, message, /, **facts):
        self.notes.append((message, facts))


@pytest.fixture
def taken():
    """An address that is in use."""
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        yield Address(LOOPBACK, other.getsockname()[1])


def test_a_run_answers_from_its_start_and_logs_where():
    book = NoteBook()
    with HttpEndpoint(Settings(Address(LOOPBACK, 0)), Monitor(book)) as endpoint:
        endpoint.open()
        endpoint.keep_open()
        ((message, facts),) = book.notes
        assert message == "http_listening"
        assert get(facts["address"], "/readyz")[0] == 503


def test_an_address_in_use_does_not_stop_a_run_and_is_reported_once(taken):
    book = NoteBook()
    with HttpEndpoint(Settings(taken), Monitor(book)) as endpoint:
        endpoint.open()
        assert book.notes == []  # another run may answer there, which the owner of the replica reports
        endpoint.keep_open()
        endpoint.keep_open()
    ((message, facts),) = book.notes
    assert message == "http_address_in_use"
    assert (facts["host"], facts["port"]) == (taken.host, taken.port)


def test_a_run_answers_as_soon_as_its_address_is_free():
    book = NoteBook()
    with socket.socket() as frozen:
        frozen.bind((LOOPBACK, 0))
        frozen.listen()
        address = Address(LOOPBACK, frozen.getsockname()[1])
        with HttpEndpoint(Settings(address), Monitor(book)) as endpoint:
            endpoint.keep_open()
            frozen.close()
            endpoint.keep_open()
            assert get(f"{address.host}:{address.port}", "/readyz")[0] == 503
    assert [message for message, _ in book.notes] == ["http_address_in_use", "http_listening"]


def test_an_address_of_another_machine_stops_a_run_before_it_owns_anything():
    with HttpEndpoint(Settings(Address("192.0.2.1", 9464)), Monitor(SilentObserver())) as endpoint, pytest.raises(ConfigError) as caught:
        endpoint.open()
    assert caught.value.facts["kind"] == "address"


def test_an_address_that_became_free_is_taken_when_the_replica_is_owned(taken):
    book = NoteBook()
    settings = Settings(taken)
    with HttpEndpoint(settings, Monitor(book)) as endpoint:
        endpoint.open()
        assert book.notes == []
    free = StatusServer(LOOPBACK, 0, StatusApp(lambda: STATE, 600))
    free.start()
    with HttpEndpoint(Settings(Address(LOOPBACK, int(free.address.rpartition(":")[2]))), Monitor(book)) as endpoint:
        endpoint.open()
        free.close()
        endpoint.keep_open()
        assert [message for message, _ in book.notes] == ["http_listening"]


def status_of(address):
    return json.loads(get(address, "/status")[2])


def test_the_end_of_a_run_is_told_to_a_page_that_asks_and_only_the_first_reason_counts():
    book, told = NoteBook(), []
    error = ConfigError("the cause", remedy=Remedy("test.remedy", "mend it"))
    with HttpEndpoint(Settings(Address(LOOPBACK, 0)), Monitor(book)) as endpoint:
        endpoint.open()
        address = book.notes[0][1]["address"]
        assert status_of(address)["end"] is None
        asking = Thread(target=lambda: told.append(tell(address)))
        asking.start()
        endpoint.report_end(ConfigError, error, None)
        endpoint.report_end(OSError, OSError("while closing"), None)
    asking.join()
    assert (told[0]["error"], told[0]["exit_code"], told[0]["remedy"]) == ("the cause", 2, "mend it")


def tell(address):
    """Ask as a page does, until the run has ended."""
    while (end := status_of(address)["end"]) is None:
        time.sleep(0.01)
    return end


def test_the_endpoint_can_be_switched_off():
    book = NoteBook()
    with HttpEndpoint(Settings(None), Monitor(book)) as endpoint:
        endpoint.open()
        endpoint.keep_open()
    assert book.notes == []
