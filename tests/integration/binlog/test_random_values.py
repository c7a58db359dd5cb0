"""Random values of every type: what is decoded from the binlog is what the server itself says that it holds."""

import json
from random import Random

import pytest

from applier.model.events import RowOperation
from applier.model.position import RecordPosition
from applier.model.range_report import RangeId
from applier.sources.binlog.decoder import BINLOG
from applier.sources.binlog.position import STREAM, BinlogPosition, split_file_name
from applier.sources.binlog.reader import BinlogRangeReader
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.database import Kind

SCHEMA = "random_values"
ROWS = 150
HEXED, AS_TEXT, NUMBER, AS_UTF8 = "HEX({})", "CAST({} AS CHAR)", "CAST({} AS UNSIGNED)", "HEX(CONVERT({} USING utf8mb4))"
LETTERS = {
    "utf8mb4": "aé日😀\\'\0",
    "latin1": "a€ÿ\x81\\'",
    "latin2": "aŽč",
    "cp1251": "aЖ№",
    "koi8r": "aЖё",
    "greek": "aΩΆ",
    "hebrew": "aש÷",
    "tis620": "aไท",
    "sjis": "a日ソ",
    "cp932": "a日①纊",
    "big5": "a許功",
    "gbk": "a日誠",
    "euckr": "a한갂",
    "ujis": "a日ｱ",
    "eucjpms": "a日ｱ①",
    "cp850": "aéß░",
    "swe7": "aÄå",
    **dict.fromkeys(("utf16", "utf16le", "utf32"), "a日😀"),
    "ucs2": "a日",
}
BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}


def columns(kind):
    """Name, type, expression that shows the stored value."""
    yield from ((f"TEXT CHARACTER SET {charset}", AS_UTF8) for charset in LETTERS)
    yield from (
        (f"DECIMAL({whole + scale},{scale})", AS_TEXT) for whole, scale in ((8, 2), (1, 0), (0, 9), (20, 10), (35, 30), (9, 9), (10, 1))
    )
    yield from ((f"{name}({digits})", AS_TEXT) for name in ("TIME", "DATETIME", "TIMESTAMP") for digits in (0, 1, 2, 3, 5, 6))
    yield from ((f"{name} UNSIGNED", AS_TEXT) for name in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"))
    yield from ((name, AS_TEXT) for name in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "DATE", "YEAR"))
    yield from ((f"BIT({bits})", NUMBER) for bits in (1, 8, 9, 33, 64))
    yield from ((f"{name}(300)", HEXED) for name in ("VARBINARY",))
    yield ("BINARY(20)", HEXED)
    yield ("DOUBLE", AS_TEXT)
    if kind is Kind.MYSQL:
        yield ("JSON", AS_TEXT)


def literal(sql, random):
    """A random value of a type, as an application would write it."""
    name = sql.split("(")[0].split()[0]
    if random.random() < 0.1:
        return "NULL"
    if name in BITS:
        return str(random.getrandbits(BITS[name]) - (0 if "UNSIGNED" in sql else 1 << BITS[name] - 1))
    return WRITERS[name](sql, random)


def text(sql, random):
    found = "".join(random.choices(LETTERS[sql.split()[-1]], k=random.choice((0, 1, 5, 300))))
    return f"CONVERT(x'{found.encode().hex()}' USING utf8mb4)"


def decimal(sql, random):
    precision, scale = map(int, sql[8:-1].split(","))
    digits = "".join(random.choices("0123456789", k=precision)) if random.random() < 0.8 else "0" * precision
    fraction = f".{digits[precision - scale :]}" if scale else ""
    return random.choice(("", "-")) + (digits[: precision - scale] or "0") + fraction


def clock(random, hours):
    return f"{random.randrange(hours):02d}:{random.randrange(60):02d}:{random.randrange(59):02d}.{random.randrange(10**6):06d}"


def day(random, first, last):
    return f"{random.randrange(first, last)}-{random.randrange(1, 13):02d}-{random.randrange(1, 29):02d}"


def real(_sql, random):
    return repr(random.choice((random.random(), random.uniform(-1, 1) * 10.0 ** random.randrange(-300, 300), 0.0, 1e15)))


WRITERS = {
    "TEXT": text,
    "DECIMAL": decimal,
    "TIME": lambda _sql, random: f"'{random.choice(('', '-'))}{clock(random, 838)}'",
    "DATE": lambda _sql, random: f"'{day(random, 1000, 9999)}'",
    "DATETIME": lambda _sql, random: f"'{day(random, 1000, 9999)} {clock(random, 24)}'",
    "TIMESTAMP": lambda _sql, random: f"'{day(random, 1971, 2037)} {clock(random, 24)}'",
    "YEAR": lambda _sql, random: str(random.choice((0, *range(1901, 2156)))),
    "BIT": lambda sql, random: str(random.getrandbits(int(sql[4:-1]))),
    "VARBINARY": lambda _sql, random: f"x'{random.randbytes(random.randrange(21)).hex()}'",
    "BINARY": lambda _sql, random: f"x'{random.randbytes(random.randrange(21)).hex()}'",
    "DOUBLE": real,
    "JSON": lambda _sql, random: "'" + json.dumps(document(random, 0)).replace("\\", "\\\\").replace("'", "''") + "'",
}


def document(random, depth):
    number = random.choice((random.randrange(-(2**63), 2**64), random.randrange(-9, 9), random.random()))
    leaf = random.choice((None, True, False, number, 'é"\\\n\x01x' * random.randrange(30)))
    size = random.randrange(6) if depth < 4 else 0
    if random.random() < 0.5 or not size:
        return leaf
    return random.choice(
        (
            [document(random, depth + 1) for _ in range(size)],
            {f"k{random.randrange(300)}": document(random, depth + 1) for _ in range(size)},
        )
    )


def shown(value, form):
    """A decoded value as the server shows it."""
    if value is None:
        return None
    if form == AS_UTF8:
        return value.encode("utf-8", "surrogateescape").hex().upper()
    if form == HEXED:
        return value.hex().upper()
    return float(value) if isinstance(value, float) else str(value)


def offset_of(place):
    name, _, position = place.partition(":")
    return BinlogPosition(0, split_file_name(name)[1], int(position)).number


@pytest.mark.parametrize("image", ["FULL", "NOBLOB"])
def test_values_are_decoded_as_the_server_shows_them(primary, image):
    random = Random(f"{primary.kind}{image}")
    types = list(columns(primary.kind))
    names = [f"c{number}" for number in range(len(types))]
    declared = [f"{name} {sql} NULL" for name, (sql, _) in zip(names, types, strict=True)]
    primary.run(
        f"DROP DATABASE IF EXISTS {SCHEMA}",
        f"CREATE DATABASE {SCHEMA}",
        f"CREATE TABLE {SCHEMA}.t (id INT PRIMARY KEY, {', '.join(declared)})",
    )
    first = primary.place()
    primary.run(
        "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = ''",
        f"SET SESSION binlog_row_image = {image}",
        *(f"INSERT INTO {SCHEMA}.t VALUES ({row},{','.join(literal(sql, random) for sql, _ in types)})" for row in range(ROWS)),
    )
    ranges = [RangeId(STREAM, offset_of(first), offset_of(primary.place()))]
    settings = BinlogSettings(url=primary.url)
    rows = {}
    for _, records in BinlogRangeReader(settings, first.rpartition(".")[0], {}).read(ranges):
        assert isinstance(records, list), records
        for record in records:
            for event in BINLOG.events(record, RecordPosition(STREAM, record.offset)):
                if getattr(event, "table", "") == "t":
                    assert event.operation is RowOperation.INSERT
                    rows[event.after["id"].value] = [event.after[name].value for name in names]
    forms = [form for _, form in types]
    # MariaDB writes a YEAR of 0 as 0000.
    query = ", ".join(
        f"CAST(CAST({name} AS UNSIGNED) AS CHAR)" if sql == "YEAR" else form.format(name)
        for name, (sql, form) in zip(names, types, strict=True)
    )
    stored = primary.ask(f"SELECT id, {query} FROM (SELECT * FROM {SCHEMA}.t) AS t")
    assert len(stored) == len(rows) == ROWS
    for key, *values in stored:
        found = [shown(value, form) for value, form in zip(rows[key], forms, strict=True)]
        for one, said, (sql, _) in zip(found, values, types, strict=True):
            assert one == (said if said is None else float(said) if sql == "DOUBLE" else str(said)), (sql, key)
