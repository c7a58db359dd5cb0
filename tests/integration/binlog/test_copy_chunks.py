"""Chunks of real tables: upstream compares their keys, and each row is in exactly one chunk, whatever the type of the key is."""

from itertools import count

import pytest

from applier.copy.lines import rows_of
from applier.copy.port import KeyRange
from applier.selection import TableSelection
from applier.sources.binlog.copy import BinlogCopyUpstream
from applier.sources.binlog.settings import BinlogSettings

pytestmark = pytest.mark.timeout(120)

SCHEMA = "copy_chunks"
ROWS_PER_CHUNK = 3
WORDS = ("''", "'a'", "'A0'", "'á'", "'ab'", "'Z'", "'ß'", "'z z'", "'\\\\'", "'\\''", "'10'", "'9'", "'ÿ'", "'__'", "'%'")
DAYS = ("'0000-00-00'", "'2020-02-31'", "'2020-00-01'", "'1000-01-01'", "'9999-12-31'", "'2020-02-29'", "'2024-01-01'", "'1969-12-31'")
KEYS = {
    "tiny": ("TINYINT", ("-128", "-1", "0", "1", "2", "3", "127")),
    "big": ("BIGINT", ("-9223372036854775808", "-1", "0", "1", "9007199254740993", "9007199254740992", "9223372036854775807")),
    "unsigned_big": ("BIGINT UNSIGNED", ("0", "1", "2", "9223372036854775808", "18446744073709551614", "18446744073709551615")),
    "zerofill": ("INT(6) ZEROFILL", ("0", "1", "7", "10", "999999", "4294967295")),
    "decimal": ("DECIMAL(38, 10)", ("-9999999999999999999999999999.9999999999", "-0.1", "0", "0.0000000001", "0.0000000002", "1e27")),
    "year": ("YEAR", ("0", "1901", "1970", "2000", "2001", "2155")),
    "date": ("DATE", DAYS),
    "datetime": (
        "DATETIME(6)",
        (*(f"'{day[1:-1]} 00:00:00.000001'" for day in DAYS[3:]), "'0000-00-00 00:00:00'", "'2020-02-31 23:59:59'"),
    ),
    "timestamp": ("TIMESTAMP(3)", ("'1970-01-01 00:00:01'", "'2024-10-27 00:30:00.001'", "'2024-10-27 01:30:00'", "'2038-01-19 03:14:07'")),
    "time": ("TIME(2)", ("'-838:59:59'", "'-00:00:00.01'", "'00:00:00'", "'25:00:00'", "'100:00:00.50'", "'838:59:59'")),
    "text": ("VARCHAR(20) CHARACTER SET utf8mb4", (*WORDS[:2], *WORDS[4:6], *WORDS[7:], "'日本'", "'😀'")),
    "binary_text": ("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", (*WORDS, "'日本'", "'😀'", "'a\\0'")),
    "latin": ("CHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci", (*WORDS[:2], *WORDS[4:6], *WORDS[7:])),
    "wide": ("VARCHAR(20) CHARACTER SET utf16", (*WORDS[:2], *WORDS[4:6], *WORDS[7:], "'日本'", "'😀'")),
    "bytes": ("VARBINARY(20)", ("x''", "x'00'", "x'0000'", "x'1b'", "x'1e'", "x'1f'", "x'27'", "x'5c'", "x'ff'", "x'c3a9'")),
    "fixed_bytes": ("BINARY(3)", ("x''", "x'0001'", "x'1b4e'", "x'ff'", "x'ffff'", "x'31'")),
    "enum": ("ENUM('b', 'a', 'c')", ("'a'", "'b'", "'c'")),
    "bit": ("BIT(60)", ("0", "1", "255", "1152921504606846975")),
    "double": ("DOUBLE", ("-1.5", "0", "0.1", "0.30000000000000004", "1e300")),
}


@pytest.fixture
def upstream(primary):
    """A primary with an empty schema."""
    primary.clear()
    primary.run(f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4")
    return primary


def chunks_of(source, session, table):
    """Return the rows of each chunk of a table, as lines."""
    lower = None
    for number in count():
        upper = source.next_bound(table, lower, ROWS_PER_CHUNK)
        with session.read(table, KeyRange(number, lower, upper)) as rows:
            yield [tuple(row) for block in rows.blocks() for row in rows_of(block.lines)]
            rows.finish()
        if upper is None:
            return
        lower = upper


def test_each_row_is_in_one_chunk(upstream):
    for name, (sql_type, values) in KEYS.items():
        upstream.run(f"CREATE TABLE {SCHEMA}.{name} (v INT, k {sql_type} NOT NULL, PRIMARY KEY (k))")
        upstream.run(*(f"INSERT INTO {SCHEMA}.{name} VALUES ({at}, {value})" for at, value in enumerate(values)))
        # A key of several columns, in another order than the columns, with few values of its first one.
        upstream.run(f"CREATE TABLE {SCHEMA}.{name}_pair (n INT NOT NULL, v INT, k {sql_type} NOT NULL, UNIQUE KEY (k, n))")
        upstream.run(
            *(f"INSERT INTO {SCHEMA}.{name}_pair VALUES ({n}, {at * 4 + n}, {value})" for at, value in enumerate(values) for n in range(4))
        )
    with BinlogCopyUpstream(BinlogSettings(url=upstream.url), TableSelection()) as source, source.reader.open() as session:
        tables = {table.name.table: table for table in source.objects().tables}
        for name, (_, values) in KEYS.items():
            for table, rows, at in ((tables[name], len(values), 0), (tables[f"{name}_pair"], len(values) * 4, 1)):
                assert table.key
                chunks = list(chunks_of(source, session, table))
                numbers = sorted(int(row[at]) for chunk in chunks for row in chunk)
                assert numbers == list(range(rows)), f"{table.name}: {chunks}"
                if table.walkable:
                    assert max(map(len, chunks)) == ROWS_PER_CHUNK, table.name
        assert {name for name in KEYS if not tables[name].walkable} == {"enum", "bit", "double"}
