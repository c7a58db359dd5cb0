"""What a sink keeps of prepared transactions: the same in all sinks, in pieces, until it is forgotten."""

import pickle

import pytest

from applier.sinks.bookkeeping import xa_table
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.integration.mysql_replica import clean
from tests.rig.database import Kind

PLACE = 2**63 + 5
"""Above SQLite's integers."""
PIECES = [bytes(range(256)) * 4, b"", b"'\\%\0\xff"]


@pytest.fixture(
    params=["sqlite", pytest.param(Kind.MARIADB, marks=pytest.mark.integration), pytest.param(Kind.MYSQL, marks=pytest.mark.integration)]
)
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/replica.db"
        return
    server = request.getfixturevalue("databases").plain(request.param).url
    clean(server)
    yield server
    clean(server)


def test_prepared_transactions_are_kept_in_pieces_until_they_are_forgotten(url, monkeypatch):
    monkeypatch.setattr(xa_table, "PIECES", 2)
    with open_sink(SinkSettings(url=url, name="one")) as sink, open_sink(SinkSettings(url=url, name="two")) as other:
        sink.migrate()
        store = sink.bookkeeping.xa
        reader = pickle.loads(pickle.dumps(store.reader))  # noqa: S301 - our own
        assert (dict(store.sizes()), list(reader.read(PLACE))) == ({}, [])
        store.keep(PLACE, [b"of a run that died"] * 9)
        store.keep(PLACE, iter(PIECES))
        store.keep(7, [b"small"])
        other.bookkeeping.xa.keep(7, [b"another"])
        assert list(reader.read(PLACE)) == PIECES
        assert dict(store.sizes()) == {PLACE: sum(map(len, PIECES)), 7: 5}
        store.forget([PLACE, 8])
        assert (list(reader.read(PLACE)), dict(store.sizes())) == ([], {7: 5})
        store.forget([])
        assert sink.bookkeeping.replicas.holdings()["prepared_transaction"] == 1
        assert list(other.bookkeeping.xa.reader.read(7)) == [b"another"]
