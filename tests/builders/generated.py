"""A changefeed's rows with STORED columns: values that a sink must not compute itself. Upstream's sessions are at +08:00, TiCDC at UTC."""

from tests.builders.handwritten import CREATE_SCHEMA, ONE, ddl, everywhere, resolved, row
from tests.builders.wire import column

INT, FLOAT, TIMESTAMP, DATE, TEXT = 3, 4, 7, 10, 15
KEY, STORED_KEY, STORED_UNIQUE, PLAIN = 11, 2 | 4 | 8, 4 | 16 | 64, 64

CREATES = (
    "CREATE TABLE days (id INT PRIMARY KEY, at TIMESTAMP NULL, day DATE GENERATED ALWAYS AS (DATE(at)) STORED, UNIQUE KEY (day))",
    "CREATE TABLE floats (id INT PRIMARY KEY, f FLOAT, s VARCHAR(30) COLLATE utf8mb4_bin AS (CONCAT(f)) STORED, UNIQUE KEY (s))",
    "CREATE TABLE keyed (at TIMESTAMP NULL, day DATE AS (DATE(at)) STORED NOT NULL, n INT, PRIMARY KEY (day))",
    "CREATE TABLE portable (a INT PRIMARY KEY, b INT AS (a + 1) STORED NOT NULL, UNIQUE KEY (b))",
)


def days(ts, number, at, day):
    return row(ts, "days", id=column(INT, KEY, number), at=column(TIMESTAMP, PLAIN, at), day=column(DATE, STORED_UNIQUE, day))


def floats(ts, number, value, text):
    return row(ts, "floats", id=column(INT, KEY, number), f=column(FLOAT, PLAIN, value), s=column(TEXT, STORED_UNIQUE, text))


def keyed(ts, at, day, n, **more):
    columns = {"at": column(TIMESTAMP, PLAIN, at), "day": column(DATE, STORED_KEY, day), "n": column(INT, PLAIN, n)}
    return row(ts, "keyed", **columns, **more)


def beginning():
    made = [place for number, query in enumerate(CREATES) for place in everywhere(ddl(10 + number, query, query.split()[2]))]
    return [*everywhere(CREATE_SCHEMA), *made, *everywhere(resolved(15))]


ROWS = [
    # One day for the sink's server, two upstream.
    (ONE, days(20, 1, "2024-05-01 15:00:00", "2024-05-01")),
    (ONE, days(21, 2, "2024-05-01 17:00:00", "2024-05-02")),
    # MySQL prints six digits of a FLOAT, TiDB all of them.
    (ONE, floats(22, 1, 33554.44, "33554.44")),
    (ONE, floats(23, 2, 33554.438, "33554.438")),
    (ONE, keyed(24, "2024-05-01 17:00:00", "2024-05-02", 1)),
    (ONE, keyed(25, "2024-05-02 17:00:00", "2024-05-03", 2)),
    (ONE, row(26, "portable", a=column(INT, KEY, 1), b=column(INT, 4 | 16, 2))),
    *everywhere(resolved(30)),
]
CHANGES = [
    (ONE, keyed(32, "2024-05-01 17:00:00", "2024-05-02", 1, deleted=True)),
    (ONE, keyed(33, "2024-05-02 17:00:00", "2024-05-03", 20)),
    (ONE, days(34, 2, "2024-05-01 15:30:00", "2024-05-03")),
    *everywhere(resolved(40)),
]
SELECTED = (
    "SELECT id, CAST(day AS CHAR), '' FROM shop.days UNION SELECT id, s, 'float' FROM shop.floats "
    "UNION SELECT n, CAST(day AS CHAR), 'key' FROM shop.keyed"
)
EXPECTED = {
    (1, "2024-05-01", ""),
    (2, "2024-05-03", ""),
    (1, "33554.44", "float"),
    (2, "33554.438", "float"),
    (20, "2024-05-03", "key"),
}
