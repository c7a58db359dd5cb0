"""A new file for every test, and a replica in it."""

import pytest

from applier.model.position import NO_TS
from applier.sinks.sqlite.sink import SqliteSink
from tests.rig.sqlite_file import SqliteFile
from tests.unit.sinks.sqlite.sqlite_replica import CREATE, commit, rows, run, settings


@pytest.fixture
def file(tmp_path):
    opened = SqliteFile(tmp_path / "replica.db")
    yield opened
    opened.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "replica.db"


@pytest.fixture
def sink(path):
    with SqliteSink(settings(path)) as opened:
        opened.migrate()
        opened.acquire()
        yield opened


@pytest.fixture
def fence(sink):
    return run(sink, sink.begin(NO_TS).fence, CREATE, 5)


@pytest.fixture
def left(path):
    """A replica with one row, which no run owns."""
    with SqliteSink(settings(path)) as sink:
        sink.migrate()
        sink.acquire()
        fence = run(sink, sink.begin(NO_TS).fence, CREATE, 5)
        sink.writer.write(fence, rows("(1,'old')"), commit(5))
    return path
