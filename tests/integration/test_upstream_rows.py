"""What is asked of upstream gives the exact values on real servers: rows that are read and written again are the same, by checksum.

TiDB itself is not among the servers: they take the same statements, except for the snapshot, which is left out here.
"""

import pytest

from applier.model.chunk import Chunk, pack
from applier.model.errors import ConfigError
from applier.model.events import FoldedName, TableName
from applier.model.position import Stream
from applier.mysql.catalogue import describe
from applier.mysql.session import discard, execute_text
from applier.planner import PlanTarget, TransactionSet, plan_bucket
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from applier.sources.column_flags import Flag, shape_of
from applier.sources.open_protocol import OpenProtocolDecoder
from applier.sources.open_protocol.image_codec import encode_image
from applier.sources.ticdc.large_row import WholeRowSources
from applier.upstream import row_lookup
from applier.upstream.row_lookup import TidbRowLookup
from applier.upstream.settings import UpstreamSettings
from applier.upstream.snapshot_session import SnapshotSession
from tests.builders.planning import between
from tests.integration.mysql_replica import read, run

SCHEMA = "upstream_rows"
MEMBERS = ",".join(f"'m{number}'" for number in range(64))
COLUMNS = f"""
  id BIGINT UNSIGNED, word VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, raw VARBINARY(20), price DECIMAL(20,4), day DATE,
  kind ENUM('a','it''s','c'), flags SET({MEMBERS}),
  f FLOAT, d DOUBLE, bits BIT(64), bit1 BIT(1), long_price DECIMAL(65,30), y YEAR, at TIMESTAMP(6) NULL, dt DATETIME(3), t TIME(6),
  ch CHAR(10), fixed BINARY(6), v256 VARBINARY(300), small_text TINYTEXT, blob_ MEDIUMBLOB, j JSON, latin VARCHAR(20) CHARACTER SET latin1,
  gbk_ VARCHAR(20) CHARACTER SET gbk, tiny TINYINT UNSIGNED, medium MEDIUMINT, n INT, calculated INT AS (n + 1),
  PRIMARY KEY (id, word, raw, price, day, kind)
"""
KEY = ("id", "word", "raw", "price", "day", "kind")
KEY_TYPES = {"id": (8, 128 | 1), "word": (15, 0), "raw": (15, 1), "price": (246, 1), "day": (10, 1), "kind": (247, 0)}
ALL_BYTES = bytes(range(256)).hex()
ROWS = [
    f"""(18446744073709551615, 'It''s', x'00ff27', -1234.5000, '2024-02-29', 2, 18446744073709551615, 3.4028234e38, 1.7976931348623157e308,
    18446744073709551615, 1, -99999999999999999999999999999999999.999999999999999999999999999999, 2155, '2038-01-19 03:14:07.999999',
    '9999-12-31 23:59:59.999', '-838:59:59.000000', 'é', x'0102', x'{ALL_BYTES}', 'tiny', x'{ALL_BYTES}', '{{"a": [1, 2.5, "x"]}}', 'é',
    '你', 255, -8388608, -2147483648)""",
    """(0, '', x'', 0.0000, '0000-00-00', 1, 0, 0.1, 0.1, 0, 0, 0.000000000000000000000000000000, 0, '0000-00-00 00:00:00', '0000-00-00',
    '838:59:59', '', x'', x'', '', x'', 'null', '', '', 0, 0, 0)""",
    """(1, 'null', x'30', 1.5000, '2026-11-22', 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL)""",
    """(2, '\U0001f600', x'5c', 1.5000, '2026-11-22', 3, 9223372036854775808, 16777217, -5e-324, 1, 1, 0.1, 1970, '1970-01-01 00:00:01',
    '2020-02-30', '-00:00:00.000001', ' x', x'00', x'5c00', '\\\\n', x'00', '"\\\\u0000"', 'x', 'x', 1, 1, 1)""",
    """(3, 'floats', x'', 0, '2026-11-22', 1, 1, 1.17549435e-38, 2.2250738585072014e-308, 1, 1, 1, 2000, '2026-01-01', '2026-01-01', '0',
    '', '', '', '', '', '0', '', '', 1, 1, 1)""",
]


class _Now(SnapshotSession):
    """A session of a server without snapshots."""

    def _set_snapshot(self) -> None:
        self.max_packet_bytes = 1 << 20

    def end(self) -> None:
        self.abandon()


@pytest.fixture
def url(mysql_url):
    run(mysql_url, f"DROP SCHEMA IF EXISTS {SCHEMA}", f"CREATE SCHEMA {SCHEMA} DEFAULT CHARACTER SET utf8mb4")
    yield mysql_url
    run(mysql_url, f"DROP SCHEMA {SCHEMA}")


def execute(url, *statements, zone="+08:00"):
    session = open_session(SinkSettings(url=url, time_zone=zone), Purpose.WRITE)
    try:
        for statement in statements:
            execute_text(session, statement)
        execute_text(session, "COMMIT")
        return describe(session, [TableName(SCHEMA, "copies")])
    finally:
        discard(session)


def test_rows_that_are_read_from_upstream_are_stored_as_they_are_there(url, monkeypatch):
    monkeypatch.setattr(row_lookup, "SnapshotSession", _Now)
    monkeypatch.setattr(row_lookup, "FIRST_KEYS", 2)
    execute(url, *(f"CREATE TABLE {SCHEMA}.{table} ({COLUMNS})" for table in ("orders", "copies")))
    names = [str(row[0]) for row in read(url, f"SHOW COLUMNS FROM {SCHEMA}.orders")]
    listed = ",".join(f"`{name}`" for name in names if name != "calculated")
    described = execute(url, *(f"INSERT INTO {SCHEMA}.orders ({listed}) VALUES {row}" for row in ROWS))
    lookup = TidbRowLookup(UpstreamSettings(url=url, time_zone="+08:00"))
    columns = tuple((name, KEY_TYPES[name][0], KEY_TYPES[name][1] | int(Flag.HANDLE_KEY)) for name in KEY)
    placeholder = shape_of(SCHEMA, "copies", columns)._replace(placeholder=True, routed_from=TableName(SCHEMA, "orders"))
    keys = [
        (2**64 - 1, "It's", b"\x00\xff'", "-1234.5000", "2024-02-29", 2),
        (0, "", b"", "0.0000", "0000-00-00", 1),
        (1, "null", b"0", "1.5000", "2026-11-22", 3),
        (2, "\U0001f600", b"\\", "1.5000", "2026-11-22", 3),
        (3, "floats", b"", "0.0000", "2026-11-22", 1),
        (3, "FLOATS", b"", "0.0000", "2026-11-22", 1),  # the same key under the collation, but no row of this key
    ]
    order = [KEY.index(column.name) for column in placeholder.handle_key]
    found = [place for part in lookup.rows(placeholder, [[key[place] for place in order] for key in keys], 1) for place in part.found]
    assert sorted(found) == [0, 1, 2, 3, 4]

    chunk = Chunk(
        origins=[(Stream("t", 0), placeholder)], origin=[0] * 5, commit_ts=[5] * 5, kind=[1] * 5, offset=list(range(5)), index=[0] * 5,
        key=[str(number).encode() for number in range(5)], image=[encode_image(placeholder, key) for key in keys[:5]],
    )  # fmt: skip
    decoder = OpenProtocolDecoder(WholeRowSources(lookup=lookup))
    target = PlanTarget({FoldedName(SCHEMA, "copies"): described[FoldedName(SCHEMA, "copies")]}, {}, MysqlDialect())
    statements = [item for item in plan_bucket([pack(0, chunk).data], between(), target, decoder) if not isinstance(item, TransactionSet)]
    execute(url, *(statement.text for statement in statements))
    assert read(url, f"SELECT COUNT(*) FROM {SCHEMA}.copies") == [(5,)]
    (_, first), (_, second) = read(url, f"CHECKSUM TABLE {SCHEMA}.orders, {SCHEMA}.copies")
    assert first == second


def test_a_server_that_is_not_tidb_is_refused_by_name(url):
    run(url, f"CREATE TABLE {SCHEMA}.orders (id INT PRIMARY KEY)")
    placeholder = shape_of(SCHEMA, "orders", (("id", 3, int(Flag.HANDLE_KEY)),))._replace(placeholder=True)
    with pytest.raises(ConfigError) as raised:
        list(TidbRowLookup(UpstreamSettings(url=url)).rows(placeholder, [[1]], 5))
    assert (raised.value.facts["key"], raised.value.facts["code"]) == ("source.upstream", 1193)
