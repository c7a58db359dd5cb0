"""The schema of a row is found in its range, before it, behind it, on partition 0; else it is said which option is missing."""

import pytest

from applier.model.errors import ProtocolError, SourceError
from applier.model.events import PlacedRow
from applier.model.failure import FailureKind
from applier.model.position import Offset, Stream
from applier.sources.port import Record
from applier.sources.simple import SimpleDecoder
from applier.sources.simple import schema_log as module
from tests.builders.simple_wire import BUILT, VERSION, bootstrap, column, ddl, order, primary, row, schema, watermark
from tests.rig.placing import place_records
from tests.rig.simple_placing import STREAM, KnownLog, placed

FIRST = Stream("changefeed", 0)
MINUTE = 60_000


def rows_of(log, offset, stream=STREAM):
    decoder = SimpleDecoder().in_log(log)
    found = place_records(decoder.placer(stream), [Record(Offset(offset), None, log.values[stream][offset])])
    return [event for _, event in found]


def test_a_range_that_begins_behind_the_schema_finds_it_before_the_range():
    values = [bootstrap(), *[watermark()] * 20, row("INSERT", order(1))]
    for first in range(len(values)):
        found = placed(*values, first=first)
        assert [event.shape.handle_key[0].name for event in found if isinstance(event, PlacedRow)] == ["id"]


def test_rows_are_the_same_wherever_their_schema_was_found():
    values = [bootstrap(), row("INSERT", order(1)), row("UPDATE", order(2), order(1)), bootstrap(), row("DELETE", old=order(2))]
    whole = placed(*values)
    assert len(whole) == 4
    for first, rows in ((1, 4), (2, 3), (3, 1), (4, 1)):
        assert placed(*values, first=first) == whole[-rows:]


def test_a_schema_behind_the_first_rows_is_found_as_when_a_filter_held_back_the_ddl():
    newer = VERSION + 1
    late = bootstrap(schema(column("id", "int"), column("more", "int"), version=newer))
    values = [bootstrap(), row("INSERT", {"id": "1", "more": "5"}, version=newer), *[watermark()] * 5, late]
    (found,) = placed(values[0], *values[1:])[:1]
    assert [member.name for member in found.shape.columns] == ["id", "more"]


def test_a_row_waits_for_a_schema_and_goes_on_when_the_changefeed_has_sent_it():
    values = {STREAM: [row("INSERT", order(1)), watermark()]}
    log = KnownLog(values)
    with pytest.raises(SourceError, match="has not come yet") as caught:
        rows_of(log, 0)
    assert caught.value.kind is FailureKind.UNREACHABLE
    assert caught.value.kind.is_transient
    assert "send-bootstrap-interval-in-sec" in str(caught.value)
    read = len(log.read_offsets)
    values[STREAM].append(bootstrap())
    assert len(rows_of(log, 0)) == 1
    assert log.read_offsets[read:] == [(STREAM, 2, 3)], "what was searched before is not read again"


def test_a_row_whose_schema_never_came_stops_with_the_options():
    later = [watermark(), row("INSERT", order(1), table="other", buildTs=BUILT + 131_000)]
    with pytest.raises(ProtocolError, match="was not sent") as caught:
        placed(row("INSERT", order(1)), *later)
    assert not isinstance(caught.value.kind, FailureKind)
    for word in ("send-bootstrap-in-msg-count", "send-bootstrap-to-all-partition = true", "event filter", "RENAME"):
        assert word in str(caught.value)
    assert caught.value.exit_code == 3


def test_nothing_is_searched_beyond_the_horizon(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PIECE", 10)
    monkeypatch.setattr(module, "GROWTH", 1)
    old = [bootstrap(schema(table=f"t{n}"), built=BUILT - (100 - n) * MINUTE) for n in range(100)]
    log = KnownLog({STREAM: [*old, row("INSERT", order(1))]})
    for _ in range(3):
        with pytest.raises(SourceError, match="has not come yet"):
            rows_of(log, 100)
    assert min(start for _, start, _ in log.read_offsets) == 60
    assert len(log.read_offsets) == len(set(log.read_offsets)), "and nothing twice"


class ExpiringLog(KnownLog):
    """Its first record is deleted once its offsets were listed."""

    def listing(self):
        found = super().listing()
        self.earliest[STREAM] = 1
        return found


def test_records_that_expire_while_they_are_searched_end_the_search():
    log = ExpiringLog({STREAM: [bootstrap(), row("INSERT", order(1)), bootstrap()]})
    assert len(rows_of(log, 1)) == 1


@pytest.mark.parametrize("kept", [0, 1])
def test_a_schema_that_retention_has_deleted_is_looked_for_behind_the_row(kept):
    values = [bootstrap(), row("INSERT", order(1)), *([bootstrap()] * kept)]
    log = KnownLog({STREAM: values}, earliest={STREAM: 1})
    if kept:
        assert len(rows_of(log, 1)) == 1
    else:
        with pytest.raises(SourceError, match="has not come yet"):
            rows_of(log, 1)


def test_schemas_on_partition_0_alone_are_found_there():
    log = KnownLog({FIRST: [watermark(), bootstrap(), watermark()], STREAM: [row("INSERT", order(1))]})
    assert len(rows_of(log, 0)) == 1


def test_a_rename_to_another_topic_is_found_in_the_old_one():
    renamed = ddl("RENAME TABLE `orders` TO `new`", schema(table="new"), schema())
    log = KnownLog({Stream("old", 0): [bootstrap(), renamed], STREAM: [row("INSERT", order(1), table="new")]})
    (found,) = rows_of(log, 0)
    assert (found.shape.table, found.shape.handle_key[0].name) == ("new", "id")


def test_a_rename_keeps_the_version_and_names_are_compared_without_case():
    renamed = ddl("RENAME TABLE `orders` TO `new`", schema(table="new"))
    placed_rows = placed(bootstrap(), renamed, row("INSERT", order(1), table="NEW"), row("INSERT", order(2)))
    assert [event.shape.table for event in placed_rows if isinstance(event, PlacedRow)] == ["NEW", "orders"]
    with pytest.raises(ProtocolError, match="schema of the row was not sent"):
        list(SimpleDecoder().placer(STREAM).place_all([Record(Offset(0), None, row("INSERT", order(1)))]))


BY_NOTE = (column("id", "int"), column("note", "varchar"), column("blob", "varbinary", nullable=True))
"""The columns of a table that was created in the same statement as ``orders``, and therefore has its version."""
NOTE_KEY = (primary("note"),)


def swapped(first=7, second=8):
    """Two tables of one version swap their names: each row names the id of its table, or of a partition of it."""
    other = schema(*BY_NOTE, table="other", indexes=NOTE_KEY, table_id=8)
    return [
        bootstrap(),
        bootstrap(other),
        row("INSERT", order(1), tableID=first),
        ddl("RENAME TABLE `orders` TO `x`", schema(table="x"), schema()),
        ddl("RENAME TABLE `other` TO `orders`", schema(*BY_NOTE, indexes=NOTE_KEY, table_id=8), other),
        ddl("RENAME TABLE `x` TO `other`", schema(table="other"), schema(table="x")),
        row("INSERT", order(1), tableID=second),
        row("INSERT", order(2), tableID=second),
    ]


def keys_of(found):
    return [event.shape.handle_key[0].name for event in found if isinstance(event, PlacedRow)]


@pytest.mark.parametrize("ids", [(7, 8), (70, 80)], ids=["tables", "partitions"])
def test_rows_of_two_tables_of_one_version_that_swap_names_are_told_apart(ids):
    values = swapped(*ids)
    assert keys_of(placed(*values)) == ["id", "note", "note"]
    assert keys_of(placed(*values, first=6)) == ["note", "note"]


def test_a_process_that_has_read_the_time_before_a_swap_tells_the_rows_after_it():
    for ids in ((7, 8), (70, 80)):
        log = KnownLog({STREAM: swapped(*ids)})
        assert [*keys_of(rows_of(log, 2)), *keys_of(rows_of(log, 6)), *keys_of(rows_of(log, 7)), *keys_of(rows_of(log, 2))] == [
            "id",
            "note",
            "note",
            "id",
        ]


def test_the_partitions_of_a_table_are_looked_for_once():
    log = KnownLog({STREAM: [bootstrap(), *[row("INSERT", order(n), tableID=100 + n) for n in range(50)]]})
    for offset in range(1, 51):
        assert keys_of(rows_of(log, offset)) == ["id"]
    read = len(log.read_offsets)
    for offset in range(1, 51):
        assert keys_of(rows_of(log, offset)) == ["id"]
    assert len(log.read_offsets) == read


def test_the_schema_before_a_ddl_is_one_too():
    newer = schema(column("id", "int"), column("x", "int"), version=VERSION + 1)
    found = placed(
        ddl("ALTER TABLE `orders` ADD `x` INT", newer, schema()),
        row("INSERT", order(1)),
        row("INSERT", {"id": "1", "x": "2"}, version=VERSION + 1),
    )
    assert [len(event.shape.columns) for event in found if isinstance(event, PlacedRow)] == [3, 2]


def test_a_process_forgets_versions_when_they_are_many(monkeypatch):
    monkeypatch.setattr(module, "MAX_VERSIONS", 3)
    values = [bootstrap(schema(table=f"t{n}")) for n in range(10)]
    values += [row("INSERT", order(n), table=f"t{n}") for n in range(10)]
    log = KnownLog({STREAM: values})
    for offset in range(10, 20):
        assert len(rows_of(log, offset)) == 1


def test_logs_do_not_share_what_is_known():
    values = [bootstrap(), row("INSERT", order(1))]
    rows_of(KnownLog({STREAM: values}), 1)
    with pytest.raises(SourceError):
        rows_of(KnownLog({STREAM: values[1:]}), 0)


def test_a_damaged_record_is_passed_by_the_search_and_reported_in_its_own_range():
    values = [bootstrap(), b"rubbish", b"", b'{"version":1,"type":"BOOTSTRAP","tableSchema":5}', row("INSERT", order(1))]
    assert len(placed(*values, first=4)) == 1
    with pytest.raises(ProtocolError):
        placed(*values)
