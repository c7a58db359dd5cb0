"""Rows that are read together are placed as each of them alone: the same events, the same place, the same first error."""

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from applier.model.errors import ProtocolError
from applier.model.events import RowKind, TableName
from applier.model.position import Stream
from applier.selection import EVERYTHING
from applier.sources.column_flags import shape_of
from applier.sources.compiled import intern_shape
from applier.sources.open_protocol import OpenProtocolPlacer
from applier.sources.open_protocol import placer as row_head
from applier.sources.open_protocol.placer import KnownTable
from applier.sources.open_protocol.record import read_head
from applier.sources.port import Record
from tests.builders.wire import TS, column, dump, head, integer_key, record, text
from tests.rig.placing import place_records

STREAM = Stream("changefeed", 2)
SHAPE = intern_shape(shape_of("shop", "orders", (("id", 3, 11), ("note", 15, 64))))
DEEP = [{"x": 1}, {"y": {}}, [{}, {}], "}\n{", '}{"', {"}": {"{": []}}]


def known_shapes():
    known = KnownTable(EVERYTHING.table(TableName("shop", "orders"))).upserts
    known.learn(SHAPE)
    return known


def image(number, note):
    return dump({"id": integer_key(number), "note": {"t": 15, "f": 64, "v": note}})


notes = st.recursive(st.sampled_from(["", "x", "}", "{", "}{", '"', "\\", "é", 1, None, *DEEP]), lambda inner: st.lists(inner, max_size=3))
images = st.builds(image, st.integers(-5, 70_000), notes)


@st.composite
def pieces_of_a_text(draw):
    """A text of some images, cut anywhere between ``}`` and ``{``: mostly not where they end."""
    whole = b"".join(
        draw(images) + draw(st.sampled_from([b",", b",", b"\n", b" ", b"", b"]", b",["])) for _ in range(draw(st.integers(1, 5)))
    )
    cuts = [0, *(at for at in range(1, len(whole) - 1) if whole[at : at + 1] == b"{" and draw(st.booleans()))]
    pieces = [whole[start:end] for start, end in zip(cuts, [*cuts[1:], len(whole)], strict=True)]
    return [piece[: piece.rfind(b"}") + 1] for piece in pieces if b"}" in piece and piece[:1] == b"{"]


@st.composite
def damaged(draw):
    """An image with some bytes changed, that still begins and ends like one."""
    changed = bytearray(draw(images))
    byte = st.sampled_from(b'{}[]",:\\0159-.eEtfnulhpdv \x00\n\xff\xc3')
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(1, len(changed) - 1))
        changed[at : at + draw(st.integers(0, 2))] = bytes(draw(st.lists(byte, max_size=2)))
    return b"{" + bytes(changed[1:-1]) + b"}"


HALVES = [b'{"id":{"t":3,"h":true,"f":11,"v":1},"note":{"t":15,"f":64,"v":[{}', b"{}]}}", image(2, "a") + b"," + image(3, "b")]


@settings(max_examples=600)
@given(pieces_of_a_text() | st.lists(damaged(), min_size=1, max_size=5) | st.lists(images, min_size=1, max_size=4))
@example(HALVES)
@example([HALVES[0] + b"\n" + HALVES[1], image(1, "x")])
@example([image(1, "x") + image(2, "y")])
@example([image(1, "x") + b" " + image(2, "y"), b"{}"])
@example([b'{"id":{"t":3,"h":true,"f":11,"v":1},"no}', b'{te":{"t":15,"f":64,"v":1}}'])
@example([b'{"id":{"t":3,"h":true,"f":11,"v":1},"note":{"t":15,"f":64,"v":"}', b'{"}}'])
def test_images_that_are_read_together_are_those_that_are_each_read_alone(lines):
    known = known_shapes()
    alone = [known.match_one(line, b"") for line in lines]
    together = known.match_all(lines, [b""] * len(lines))
    if together is not None:
        assert [(together[0], key) for key in together[1]] == alone
    else:
        assert None in alone


@given(st.lists(st.tuples(images, st.sampled_from([None, "same", "other", "part", "broken"])), min_size=1, max_size=5))
def test_old_images_that_are_read_together_are_those_that_are_each_read_alone(pairs):
    def old_of(line, form):
        number = json.loads(line)["id"]["v"]
        forms = {
            "same": image(number, "old"),
            "other": image(number + 1, "old"),
            "part": dump({"note": text("old")}),
            "broken": b'{"id":{}}',
        }
        return forms.get(form, b"")

    lines, olds = [line for line, _ in pairs], [old_of(*pair) for pair in pairs]
    known = known_shapes()
    alone = [known.match_one(*pair) for pair in zip(lines, olds, strict=True)]
    together = known.match_all(lines, olds)
    assert together == (None if None in alone else (SHAPE, [key for _, key in alone]))


def key_json(ts, table, has_partition, form):
    """An event key: as producers write it, with its members in another order, with a zero in front, or with a second timestamp."""
    usual = dump({"ts": ts, "scm": "shop", "tbl": table, "t": 1, **({"ptn": 7} if has_partition else {})})
    return {
        "usual": usual,
        "order": b'{"t":1,' + usual[1:],
        "zero": b'{"ts":0' + usual[6:],
        "twice": usual[:-1] + b',"ts":%d}' % (ts // 2),
    }[form]


times = st.integers(TS, TS + 20) | st.integers(10**16, 10**19)
forms = st.sampled_from(["usual", "usual", "usual", "order", "zero", "twice"])
keys = st.builds(key_json, times, st.sampled_from(["orders", "carts", '"ts"', "t\\"]), st.booleans(), forms)
usual_keys = st.builds(key_json, times, st.just("orders"), st.just(value=False), st.just("usual"))


def meant(data):
    try:
        head = read_head(data)
    except ProtocolError:
        return None
    return head.ts, head.scm, head.tbl


def said(head):
    return None if head is None else (head[0], *head[1].selected.name)


@given(st.lists(keys, max_size=8))
def test_event_keys_that_differ_in_their_timestamp_are_read_as_from_json(some):
    heads = row_head.RowHeads()
    for data in some:
        assert said(heads.of_event(data)) == said(heads.of_record(record((data, b""))[0])) == meant(data)


@given(st.lists(st.lists(keys, max_size=5) | st.lists(usual_keys, max_size=5), max_size=4))
def test_event_keys_of_one_record_are_read_as_each_of_them(groups):
    heads = row_head.RowHeads()
    for some in groups:
        key, _ = record(*[(data, b"") for data in some])
        found = heads.of_rows(key)
        assert found is None or list(map(said, zip(*found, strict=True))) == list(map(meant, some))
        if some and None not in map(meant, some) and len({len(data) for data in some}) == 1:
            assert found is not None
        assert heads.of_rows(key[:-1]) is None


def row_of(table, number, note):
    return {"id": integer_key(number), "note": note, **({"more": text("x")} if table == "carts" else {})}


@st.composite
def events(draw):
    """An event key and a body; now and then unusual, damaged, or no row."""
    table, number = draw(st.sampled_from(["orders", "orders", "carts"])), draw(st.integers(1, 3))
    key = head(table=table, ts=TS + draw(st.integers(0, 3)))
    new = row_of(table, number, draw(st.sampled_from([text("a"), text("bc"), column(15, 0, "other flags")])))
    form = draw(st.sampled_from(["u", "u", "u", "u", "p", "q", "d", "k", "resolved", "ddl", "spaced", "bad value", "bad json", "reduced"]))
    body = {
        "u": {"u": new},
        "p": {"u": new, "p": row_of(table, number, text("old"))},
        "q": {"u": new, "p": {"id": integer_key(number + 1)}},
        "d": {"d": new},
        "k": {"d": {"id": integer_key(number)}},
        "ddl": {"q": "DROP TABLE x", "t": 4},
        "bad value": {"u": {**new, "id": integer_key("x")}},
    }.get(form, {"u": new})
    match form:
        case "resolved":
            return {"ts": TS, "t": 3}, b""
        case "ddl":
            return head(t=2), body
        case "spaced":
            return key, json.dumps(body).encode()
        case "bad json":
            return key, dump(body)[:-2] + b" }}"[: draw(st.integers(0, 3))]
        case "reduced":
            return head(table=table, ohk=True), {"d": {"id": integer_key(number)}}
    return key, body


@st.composite
def records(draw):
    some = draw(st.lists(events(), min_size=1, max_size=3)) if draw(st.booleans()) else [draw(events())]
    key, value = record(*some)
    if draw(st.integers(0, 30)) == 0:
        value = value[: draw(st.integers(0, len(value)))]
    return key, value


def placed_until_an_error(placer, batches):
    """Events of batches of records in order, and the facts of the error that ends them."""
    found = []
    try:
        for batch in batches:
            found += place_records(placer, batch)
    except ProtocolError as error:
        return found, (str(error), error.facts)
    return found, None


@settings(max_examples=300)
@given(st.lists(records(), min_size=1, max_size=12), st.integers(1, 12))
def test_records_that_are_placed_together_give_what_each_gives_alone(raw, size):
    numbered = [Record(offset, key, value) for offset, (key, value) in enumerate(raw)]
    alone, error = placed_until_an_error(OpenProtocolPlacer(STREAM), [[one] for one in numbered])
    batches = [numbered[first : first + size] for first in range(0, len(numbered), size)]
    together, other_error = placed_until_an_error(OpenProtocolPlacer(STREAM), batches)
    assert other_error == error
    # place_records gives nothing of a batch with an error: what came before it must be what alone came first.
    assert together == alone[: len(together)]
    assert error or len(together) == len(alone)


def test_many_rows_in_a_record_and_many_records_are_placed_in_their_order():
    events_of_one = [(head(ts=TS + n), {"u": row_of("orders", n, text("x"))}) for n in range(700)]
    many = [Record(offset, *record(*events_of_one)) for offset in range(2)]
    singles = [Record(2 + n, *record(event)) for n, event in enumerate(events_of_one)]
    found = place_records(OpenProtocolPlacer(STREAM), [*many, *singles])
    assert [place for place, _ in found] == [(o, n) for o in range(2) for n in range(700)] + [(2 + n, 0) for n in range(700)]
    assert [row.commit_ts for _, row in found] == [TS + n for n in range(700)] * 3
    assert all(row.kind == RowKind.UPSERT for _, row in found)
    assert found[0][1].image == dump(row_of("orders", 0, text("x")))
