"""What an operator sees while a catch-up runs: where it begins, each DDL, each retry with its class, each rebuild. And what it logs."""

import logging
import sqlite3
from dataclasses import replace

import stamina

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import Faults, FaultySink
from tests.rig.local_replica import sqlite_replica
from tests.rig.protocol import in_format

REBUILD = ("recovering", "state_reloaded")


class NoteBook:
    """An observer that remembers the notes."""

    def __init__(self):
        self.notes = []

    def update(self, state):
        pass

    def note(self, message, /, **facts):
        self.notes.append((message, facts))

    def of(self, message):
        return [facts for noted, facts in self.notes if noted == message]

    @property
    def messages(self):
        return [message for message, _ in self.notes]


def replica_of(seed, tmp_path, **more):
    history = History(seed, HistoryOptions(transactions=15, ddl_share=0.3))
    log = list(Producer(history, in_format(replace(ProducerOptions.drawn(seed), partitions=1 + seed % 4))).log())
    return history, sqlite_replica(tmp_path, FakeSource(log), observer=NoteBook(), **more)


def test_a_first_run_begins_and_names_every_ddl_in_the_order_in_which_they_were_done(tmp_path):
    _, replica = replica_of(200, tmp_path)
    result = replica.catch_up()
    book = replica.observer
    assert book.notes[0] == ("replica_created", {"start_ts": 0, "epoch": 1})
    assert set(book.messages[1:]) == {"ddl_applied"}
    # Not by text: the ledger's has names for what upstream left unnamed.
    assert [facts["commit_ts"] for facts in book.of("ddl_applied")] == sorted(entry.ddl.commit_ts for entry in replica.ledger())
    assert len(book.of("ddl_applied")) == result.ddls > 0


def test_the_next_run_resumes_at_the_checkpoint_of_the_last_one_under_another_epoch(tmp_path):
    _, replica = replica_of(201, tmp_path)
    checkpoint_ts = replica.catch_up().checkpoint_ts
    replica.observer = NoteBook()
    replica.catch_up()
    assert replica.observer.notes == [("replica_resumed", {"checkpoint_ts": checkpoint_ts, "epoch": 2})]


def test_a_skipped_ddl_is_not_called_done(tmp_path):
    _, replica = replica_of(43, tmp_path, ddl_policy={"create_view": "skip", "drop_view": "skip"})
    result = replica.catch_up()
    assert all("VIEW" in facts["query"] for facts in replica.observer.of("ddl_skipped"))
    assert not any(facts["query"].startswith("CREATE VIEW") for facts in replica.observer.of("ddl_applied"))
    assert len(replica.observer.of("ddl_skipped")) == result.skipped_ddls > 0
    assert len(replica.observer.of("ddl_applied")) == result.ddls > 0


def test_every_retry_and_every_rebuild_is_noted_with_its_reason(tmp_path, without_waiting):
    faults = Faults(224, rate=0.2)
    _, replica = replica_of(224, tmp_path, wrap=lambda sink: FaultySink(sink, faults))
    replica.catch_up()
    book = replica.observer
    retries = book.of("retry")
    lost = faults.counts["lost before"] + faults.counts["lost after"]
    assert {(facts["error"], facts["reason"]) for facts in retries} == {
        ("RetryableSinkError", "deadlock found"),
        ("UnknownOutcome", "connection lost"),
    }
    assert [facts["error"] for facts in retries].count("UnknownOutcome") == lost
    assert len(retries) - lost <= faults.counts["refused"]  # a refusal drawn for a DDL is none
    assert all(facts["attempt"] >= 1 for facts in retries)
    reloads = [message for message in book.messages if message in REBUILD]
    rebuilds = [*zip(reloads[::2], reloads[1::2], strict=True)]
    assert rebuilds == [REBUILD] * lost
    assert {facts["reason"] for facts in book.of(REBUILD[0])} == {"connection lost"}


class Looks(Faults):
    """Looks at what the run is said to do whenever something is written. Nothing fails."""

    def __init__(self, observer):
        super().__init__("looks")
        self._observer, self.phases = observer, []

    def draw(self):
        self.phases.append(self._observer.shown.phase)


class LastShown(NoteBook):
    def update(self, state):
        self.shown = state


def test_what_a_run_does_is_said_before_it_is_done_and_not_any_more_when_it_waits_for_what_comes_after(tmp_path):
    observer, ddls, listings = LastShown(), [], []
    looks = Looks(observer)

    class Sink(FaultySink):
        def run_ddl(self, fence, identity, ddl, *, before, after):
            fence = self._sink.run_ddl(fence, identity, ddl, before=before, after=after)
            ddls.append((observer.shown.phase, observer.shown.current_ddl == ddl.query))
            return fence

    class Source(FakeSource):
        def listing(self):
            listings.append(observer.shown.phase if hasattr(observer, "shown") else "listening")
            return super().listing()

    _, replica = replica_of(205, tmp_path, wrap=lambda sink: Sink(sink, looks))
    replica.source.__class__, replica.observer = Source, observer
    replica.catch_up()
    assert set(looks.phases) == {"writing"}
    assert set(ddls) == {("ddl", True)}
    # Partitions are listed again once the place of the replica is known, and while a segment is written; that is what is shown.
    assert set(listings) <= {"listing partitions", "reading positions", "listening", "idle", "preparing", "writing"}
    assert len(ddls) > 1 < len(listings)
    assert observer.shown.current_ddl == ""


def test_the_log_has_each_checkpoint_once_and_each_note(tmp_path, caplog):
    caplog.set_level(logging.INFO, "applier")
    _, replica = replica_of(203, tmp_path)
    result = replica.catch_up()
    checkpoints = [record.checkpoint_ts for record in caplog.records if record.getMessage() == "checkpoint_advanced"]
    assert checkpoints == sorted(set(checkpoints))
    assert checkpoints[-1] == result.checkpoint_ts
    assert [record.query for record in caplog.records if record.getMessage() == "ddl_applied"] == [
        facts["query"] for facts in replica.observer.of("ddl_applied")
    ]


def test_the_hooks_of_others_are_as_they_were_after_a_run(tmp_path):
    before = stamina.instrumentation.get_on_retry_hooks()
    _, replica = replica_of(204, tmp_path)
    replica.catch_up()
    assert stamina.instrumentation.get_on_retry_hooks() == before


def test_deletes_of_rows_that_the_sink_lacks_are_counted_and_noted(tmp_path):
    def order(ts, number, **more):
        return ONE, row(ts, id=column(3, KEY, number), **more)

    made = [*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY)")), order(20, 1), order(20, 2)]
    # The rows 3 and 4 begin in this window. Row 5 was never there.
    changes = [*(order(32, number, deleted=True) for number in (1, 2, 5)), order(33, 3), order(34, 3, deleted=True), order(35, 4)]
    parts = ([*made, *everywhere(resolved(30))], [*changes, *everywhere(resolved(40))])
    source = FakeSource(log_of(*parts[0], *parts[1]), hidden=True)
    replica = sqlite_replica(tmp_path, source, observer=NoteBook())
    source.advance(len(parts[0]))
    replica.catch_up()
    with sqlite3.connect(tmp_path / "replica.db") as file:
        file.execute('DELETE FROM "shop.orders" WHERE id = 2')
    source.advance(len(parts[1]))
    replica.catch_up()
    (facts,) = replica.observer.of("deletes_without_row")
    assert (facts["table"], facts["rows"]) == ("shop.orders", 2)
    assert rows_of(tmp_path) == [(4,)]
