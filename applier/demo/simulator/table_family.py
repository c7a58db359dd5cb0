"""The tables of the simulated upstream: a small shop and bank with relations, and tables that are hard to replicate.

Families can be chosen one by one, so that a history of five transactions stays readable.
"""

from enum import StrEnum

from applier.demo.simulator import column_type as of
from applier.demo.simulator.schema import Table, column, column_with_default, index, primary, unique
from applier.model.events import TableName


class TableFamily(StrEnum):
    """A group of tables and what happens to them."""

    MONEY = "money"
    """Accounts and wallets in two schemas; their total never changes after the funding."""
    ORDERS = "orders"
    """Orders with items that belong to them: composite key, cross-table transactions."""
    SEATS = "seats"
    """Secondary unique keys whose values swap; a table without a primary key."""
    WORDS = "words"
    """Text keys: hostile strings, and spellings that are equal under a ``_ci`` collation."""
    TYPES = "types"
    """Every column type; keys that are BIT, DECIMAL and unsigned 64-bit."""
    LAB = "lab"
    """Tables that DDLs create, alter, rename and drop at any time."""
    KEYLESS = "keyless"
    """Tables without any key, which a changefeed sends under ``force-replicate`` only. Not in a history unless chosen."""
    PARTITIONED = "partitioned"
    """Partitioned tables: each partition has an id of its own. Not in a history unless chosen."""


USUAL_FAMILIES = frozenset(TableFamily) - {TableFamily.KEYLESS, TableFamily.PARTITIONED}


ACCOUNTS = TableName("bank", "accounts")
TRANSFERS = TableName("bank", "transfers")
WALLETS = TableName("shop", "wallets")
ORDERS = TableName("shop", "orders")
ORDER_ITEMS = TableName("shop", "order_items")
LAB_SCHEMA = "lab"

MONEY_TABLES = (
    Table(
        name=ACCOUNTS,
        columns=(
            column("id", of.integer("BIGINT"), null=False),
            column("owner", of.varchar(64), null=False),
            column("balance", of.integer("BIGINT"), null=False),
        ),
        indexes=(primary("id"),),
    ),
    Table(
        name=WALLETS,
        columns=(
            column("owner", of.varchar(64), null=False),
            column("balance", of.integer("BIGINT"), null=False),
        ),
        indexes=(primary("owner"),),
    ),
    Table(
        name=TRANSFERS,
        columns=(
            column("id", of.integer("BIGINT", unsigned=True), null=False),
            column("source", of.varchar(64)),
            column("target", of.varchar(64)),
            column("amount", of.decimal(20, 2), null=False),
            column("made_at", of.timestamp(3)),
        ),
        indexes=(primary("id"), index("by_source", "source")),
        auto_increment="id",
    ),
)
ORDER_TABLES = (
    Table(
        name=ORDERS,
        columns=(
            column("id", of.integer("BIGINT"), null=False),
            column("account", of.integer("BIGINT"), null=False),
            column_with_default("status", of.enum("new", "paid", "sent", "it's lost"), 1, null=False),
            column("total", of.decimal(12, 2), null=False),
            column("created", of.datetime(3)),
            column("note", of.text()),
        ),
        indexes=(primary("id"), index("by_account", "account")),
        auto_increment="id",
    ),
    Table(
        name=ORDER_ITEMS,
        columns=(
            column("order_id", of.integer("BIGINT"), null=False),
            column("line", of.integer("SMALLINT"), null=False),
            column("sku", of.varchar(32), null=False),
            column("quantity", of.integer(), null=False),
            column("price", of.decimal(10, 2)),
        ),
        indexes=(primary("order_id", "line"), index("by_sku", "sku", "quantity")),
    ),
)
SEAT_TABLES = (
    Table(
        name=TableName("crm", "seats"),
        columns=(
            column("id", of.integer(), null=False),
            column("seat", of.integer(), null=False),
            column("code", of.varchar(40)),
            column("holder", of.varchar(40)),
        ),
        indexes=(primary("id"), unique("one_seat", "seat"), unique("one_code", "code")),
    ),
    Table(
        name=TableName("crm", "badges"),
        columns=(
            column("holder", of.integer()),
            column("code", of.varchar(40), null=False),
            column("zone", of.integer("TINYINT"), null=False),
        ),
        indexes=(unique("one_badge", "code"), unique("pair", "code", "zone")),
    ),
)
WORD_TABLES = (
    Table(
        name=TableName("crm", "words"),
        columns=(
            column("word", of.varchar(120), null=False),
            column("note", of.varchar(200)),
            column("ta`ble", of.integer()),
            column("order by", of.text("MEDIUM")),
        ),
        indexes=(primary("word"), index("weird `index`", "ta`ble")),
    ),
    Table(
        name=TableName("crm", "odd `Tags`"),
        columns=(
            column("name", of.varchar(40, "utf8mb4_general_ci"), null=False),
            column("weight", of.integer("MEDIUMINT", unsigned=True)),
        ),
        indexes=(primary("name"),),
    ),
)
_TYPE_COLUMNS = (
    ("a_tiny", of.integer("TINYINT")),
    ("a_utiny", of.integer("TINYINT", unsigned=True)),
    ("a_small", of.integer("SMALLINT")),
    ("a_medium", of.integer("MEDIUMINT")),
    ("an_uint", of.integer("INT", unsigned=True)),
    ("a_big", of.integer("BIGINT")),
    ("a_ubig", of.integer("BIGINT", unsigned=True)),
    ("a_float", of.real("FLOAT")),
    ("a_double", of.real("DOUBLE")),
    ("a_decimal", of.decimal(65, 30)),
    ("a_date", of.date()),
    ("a_time", of.time(3)),
    ("a_datetime", of.datetime(6)),
    ("a_timestamp", of.timestamp()),
    ("a_year", of.year()),
    ("a_char", of.char(12)),
    ("a_varchar", of.varchar(300)),
    ("a_binary", of.binary(4)),
    ("a_varbinary", of.varbinary(300)),
    ("a_tinytext", of.text("TINY")),
    ("a_text", of.text()),
    ("a_mediumtext", of.text("MEDIUM")),
    ("a_longtext", of.text("LONG")),
    ("a_tinyblob", of.blob("TINY")),
    ("a_blob", of.blob()),
    ("a_mediumblob", of.blob("MEDIUM")),
    ("a_longblob", of.blob("LONG")),
    ("a_bit", of.bit(64)),
    ("a_bit1", of.bit(1)),
    ("an_enum", of.enum("red", "green", "it's", 'a "b"')),
    ("a_set", of.set_of(*(f"m{number}" for number in range(64)))),
    ("a_json", of.json()),
)
TYPE_TABLES = (
    Table(
        name=TableName("types", "everything"),
        columns=(column("id", of.integer("BIGINT", unsigned=True), null=False), *(column(name, kind) for name, kind in _TYPE_COLUMNS)),
        indexes=(primary("id"), unique("one_ubig", "a_ubig"), index("by_bit", "a_bit")),
    ),
    Table(
        name=TableName("types", "bits"),
        columns=(column("b", of.bit(64), null=False), column("v", of.varchar(20))),
        indexes=(primary("b"),),
    ),
    Table(
        name=TableName("types", "amounts"),
        columns=(column("v", of.real("DOUBLE")), column("amount", of.decimal(40, 10), null=False), column("day", of.date(), null=False)),
        indexes=(primary("amount", "day"),),
    ),
    Table(
        name=TableName("types", "tokens"),
        columns=(column("token", of.varbinary(16), null=False), column("v", of.integer())),
        indexes=(primary("token"),),
    ),
)
KEYLESS_TABLES = (
    Table(
        name=TableName("log", "visits"),
        columns=(column("page", of.varchar(30)), column("at", of.datetime(3)), column("seconds", of.integer())),
        indexes=(),
    ),
    Table(
        name=TableName("log", "readings"),
        columns=(
            column("sensor", of.integer("SMALLINT"), null=False),
            column("value", of.decimal(10, 3)),
            column("raw", of.varbinary(8)),
            column_with_default("state", of.enum("ok", "late"), 1, null=False),
        ),
        indexes=(index("by_sensor", "sensor"),),
    ),
)
PARTITIONED_TABLES = (
    Table(
        name=TableName("metrics", "points"),
        columns=(
            column("sensor", of.integer(), null=False),
            column("at", of.datetime(3), null=False),
            column("value", of.real("DOUBLE")),
            column("raw", of.varbinary(12)),
        ),
        indexes=(primary("sensor", "at"), index("by_time", "at")),
        partition_by="sensor",
        partitions=4,
    ),
    Table(
        name=TableName("metrics", "totals"),
        columns=(column("day", of.integer("BIGINT"), null=False), column("total", of.decimal(20, 2)), column("seen", of.timestamp(3))),
        indexes=(unique("one_day", "day"),),
        partition_by="day",
        partitions=3,
    ),
)
FAMILY_TABLES: dict[TableFamily, tuple[Table, ...]] = {
    TableFamily.MONEY: MONEY_TABLES,
    TableFamily.ORDERS: ORDER_TABLES,
    TableFamily.SEATS: SEAT_TABLES,
    TableFamily.WORDS: WORD_TABLES,
    TableFamily.TYPES: TYPE_TABLES,
    TableFamily.LAB: (),
    TableFamily.KEYLESS: KEYLESS_TABLES,
    TableFamily.PARTITIONED: PARTITIONED_TABLES,
}
