"""The tables of the workloads and their rows. A row is made from its number alone: nothing is kept, and every run makes the same rows."""

from collections.abc import Sequence

from applier.demo.simulator import column_type as of
from applier.demo.simulator.operation import Row
from applier.demo.simulator.schema import Table, column, primary
from applier.model.events import TableName

SCHEMA = "bench"
NOTES = tuple("".join(chr(97 + (seed * 31 + place * place) % 26) for place in range(149)) for seed in range(512))
"""A row of ``orders`` has some 200 bytes of values with one of them."""
JSONS = tuple(f'{{"colour": "c{seed}", "sizes": [{seed}, {seed * 3}], "stock": {{"shop": {seed % 7}}}}}' for seed in range(64))
BLOBS = tuple(bytes((seed * 7 + place * 3) % 256 for place in range(32)) for seed in range(64))


def orders(name: str = "orders") -> Table:
    """The table of all workloads but C: six columns, a primary key of one BIGINT."""
    return Table(
        name=TableName(SCHEMA, name),
        columns=(
            column("id", of.integer("BIGINT"), null=False),
            column("customer", of.integer("INT"), null=False),
            column("product", of.varchar(40), null=False),
            column("amount", of.decimal(12, 2), null=False),
            column("made_at", of.datetime()),
            column("note", of.varchar(200)),
        ),
        indexes=(primary("id"),),
    )


def order(number: int, version: int = 0) -> Row:
    """Return row ``number`` of ``orders``; another ``version`` has other values under the same key."""
    seconds = number % 60
    return (
        number,
        (number * 7919 + version) % 99_991,
        f"product {(number + version) % 613}",
        f"{(number * 31 + version * 17) % 100_000}.{number % 100:02d}",
        f"2025-11-24 10:{seconds:02d}:{seconds:02d}",
        NOTES[(number + version) & 511],
    )


_MIXED_TYPES = (
    ("n", of.integer("INT")),
    ("big", of.integer("BIGINT")),
    ("small", of.integer("SMALLINT")),
    ("tiny", of.integer("TINYINT", unsigned=True)),
    ("price", of.decimal(14, 4)),
    ("ratio", of.real("DOUBLE")),
    ("name", of.varchar(60)),
    ("code", of.char(8)),
    ("day", of.date()),
    ("made_at", of.datetime(3)),
    ("seen_at", of.timestamp()),
    ("takes", of.time()),
    ("kind", of.enum("red", "green", "blue")),
    ("data", of.varbinary(64)),
    ("doc", of.json()),
    ("words", of.text()),
)
MIXED = Table(
    name=TableName(SCHEMA, "mixed"),
    columns=(
        column("id", of.integer("BIGINT"), null=False),
        column("area", of.integer("INT"), null=False),
        *(column(f"{name}{copy}", kind) for copy in (1, 2) for name, kind in _MIXED_TYPES),
        column("born", of.year()),
        column("flags", of.bit(12)),
        column("marks", of.set_of("new", "sold", "old")),
        column("picture", of.blob()),
        column("empty1", of.varchar(20)),
        column("empty2", of.integer("INT")),
    ),
    indexes=(primary("id", "area"),),
)
"""Forty columns of every kind, two of them always NULL, under a key of two columns."""


def mixed(number: int) -> Row:
    """Return row ``number`` of ``mixed``."""
    return (
        number,
        number % 97,
        *_mixed(number),
        *_mixed(number + 12_345),
        1970 + number % 80,
        number % 4096,
        number % 8,
        BLOBS[number % 64],
        None,
        None,
    )


def _mixed(number: int) -> Sequence[int | float | str | bytes]:
    day, second = number % 28 + 1, number % 60
    return (
        number % 2_000_000_000,
        number * 1_000_003,
        number % 30_000 - 15_000,
        number % 200,
        f"{number % 1_000_000}.{number % 10_000:04d}",
        number / 8,
        f'The name of {number}: Grüße, it\'s "quoted"' if number % 8 == 0 else f"the name of {number}",
        f"K{number % 9_999_999}",
        f"2024-02-{day:02d}",
        f"2024-03-{day:02d} 23:{second:02d}:59.{number % 1000:03d}",
        f"2024-04-{day:02d} 12:00:{second:02d}",
        f"-{number % 300:02d}:{second:02d}:01" if number % 5 == 0 else f"{number % 24:02d}:{second:02d}:01",
        number % 3 + 1,
        BLOBS[number % 64],
        JSONS[number % 64],
        NOTES[number & 511],
    )
