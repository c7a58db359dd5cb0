"""The encoder writes the very bytes of producers: golden records, and the worked examples of the protocol's description."""

import base64
import json
from pathlib import Path

import pytest

from applier.demo.simulator.encoder import EncodedColumn, Encoder, frame, record_length
from applier.demo.simulator.json_text import Flavour, float_text, go_quote, ticdc_string, tiflow_string
from applier.demo.simulator.wire_format import KeyExtras, WireEvent
from applier.model.position import Ts
from tests.rig.golden import reencoded

VECTORS = Path(__file__).parents[3] / "data" / "vectors" / "open_protocol.jsonl"
# What events do not show: the lost bytes behind U+FFFD, absent or zero flags, LZ4 block parameters, the producer's edition of Unicode.
NOT_REPEATABLE = ("noflags/", "staleflags/", "binary/runes", "claimcheck_bad/")


def is_determined(line):
    """Return whether the events of a golden record determine its bytes."""
    lossy = "invalid_utf8" in line["name"] and line["flavour"] == "tiflow"
    return not line["name"].startswith(NOT_REPEATABLE) and not lossy and line.get("compression") != "lz4"


def test_golden_records_are_written_byte_by_byte():
    lines = [json.loads(text) for text in VECTORS.read_text().splitlines()]
    chosen = [line for line in lines if "events" in line and line.get("flavour") and is_determined(line)]
    wrong = [line["name"] for line in chosen if reencoded(line) != (base64.b64decode(line["key_b64"]), base64.b64decode(line["value_b64"]))]
    assert len(chosen) > 500
    assert wrong == []


def test_the_worked_example_is_188_bytes_long():
    encoder = Encoder(Flavour.TIFLOW)
    columns = (EncodedColumn("a", 15, 10), EncodedColumn("b", 15, 64))
    event = WireEvent(
        encoder.row_key(Ts(418658114257813514), "test", "t"), encoder.row_value(after=encoder.image_writer(columns).write(["aa", "bb"]))
    )
    assert event.key == b'{"ts":418658114257813514,"scm":"test","tbl":"t","t":1}'
    assert event.value == b'{"u":{"a":{"t":15,"h":true,"f":10,"v":"aa"},"b":{"t":15,"f":64,"v":"bb"}}}'
    assert record_length([event]) == 188
    key, value = frame([event])
    assert (len(key), len(value)) == (70, 82)


def test_tiflow_sorts_members_and_ticdc_keeps_the_order_of_the_table():
    columns = (EncodedColumn("z", 3, 11), EncodedColumn("a", 3, 65))
    images = [Encoder(flavour).image_writer(columns).write([1, None]) for flavour in (Flavour.TIFLOW, Flavour.TICDC)]
    assert images[0] == '{"a":{"t":3,"f":65,"v":null},"z":{"t":3,"h":true,"f":11,"v":1}}'
    assert images[1] == '{"z":{"t":3,"h":true,"f":11,"v":1},"a":{"t":3,"f":65,"v":null}}'


def test_ticdc_repeats_ohk_in_claim_check_keys_and_writes_ptn_last():
    key = Encoder(Flavour.TICDC).row_key(Ts(1), "s", "t", KeyExtras(partition_id=7, claim_check="file:///x.json"))
    assert key == b'{"ts":1,"scm":"s","tbl":"t","t":1,"ohk":true,"ohk":false,"ccl":"file:///x.json","ptn":7}'


@pytest.mark.parametrize(
    ("flavour", "key"), [(Flavour.TIFLOW, b'{"ts":5,"scm":"s","t":2}'), (Flavour.TICDC, b'{"ts":5,"scm":"s","tbl":"","t":2}')]
)
def test_an_empty_table_name_is_left_out_by_tiflow_only(flavour, key):
    assert Encoder(flavour).ddl(Ts(5), ("s", ""), "DROP DATABASE `s`", 2).key == key


@pytest.mark.parametrize(
    ("value", "single", "tiflow", "ticdc"),
    [
        (0.0, False, "0", "0"),
        (-0.0, False, "-0", "-0"),
        (1e-7, False, "1e-7", "1e-07"),
        (1e21, False, "1e+21", "1e+21"),
        (1e20, False, "100000000000000000000", "100000000000000000000"),
        (0.000001, False, "0.000001", "0.000001"),
        (5e-324, False, "5e-324", "5e-324"),
        (3.4028234663852886e38, True, "3.4028235e+38", "3.4028235e+38"),
        (0.10000000149011612, True, "0.1", "0.1"),
        (16777216.0, True, "16777216", "16777216"),
        (-123.456, False, "-123.456", "-123.456"),
    ],
)
def test_floats_are_written_as_the_shortest_decimal(value, single, tiflow, ticdc):
    assert float_text(value, single=single, flavour=Flavour.TIFLOW) == tiflow
    assert float_text(value, single=single, flavour=Flavour.TICDC) == ticdc


def test_binary_text_is_quoted_as_go_does():
    assert go_quote(b"\x89PNG\r\n\x1a\n") == r"\x89PNG\r\n\x1a\n"
    assert go_quote("a\\b\"c'\u00a0é\U000e0001".encode() + b"\xff\x7f\a\v") == "a\\\\b\\\"c'\\u00a0é\\U000e0001\\xff\\x7f\\a\\v"


def test_strings_differ_in_what_they_escape():
    text = "<&>\u2028\x08\udcff\x01/"
    assert tiflow_string(text) == '"\\u003c\\u0026\\u003e\\u2028\\b\\ufffd\\u0001/"'
    assert ticdc_string(text) == '"<&>\u2028\\u0008\udcff\\u0001/"'
