"""Tables that foreign keys with actions join, over several levels; statements about them, and what they hold."""

from collections.abc import Sequence
from contextlib import closing, suppress
from random import Random
from typing import Any

import pymysql
from pymysql.err import IntegrityError, OperationalError

from tests.rig.mysql_oracle import connect
from tests.rig.primary import Primary

CHECKED = "SET foreign_key_checks = 1"
"""The sessions of the rig check no keys."""
DELETES, UPDATES = "ON DELETE CASCADE", "ON UPDATE CASCADE"
KEYS = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.customer (id INT PRIMARY KEY, code VARCHAR(20) NOT NULL UNIQUE, name VARCHAR(20)) COLLATE utf8mb4_bin",
    # Over several levels; the key of `note` is its parent's.
    f"CREATE TABLE shop.item (id INT PRIMARY KEY, customer INT, FOREIGN KEY (customer) REFERENCES shop.customer (id) {DELETES} {UPDATES})",
    f"CREATE TABLE shop.part (id INT PRIMARY KEY, item INT, FOREIGN KEY (item) REFERENCES shop.item (id) ON DELETE SET NULL {UPDATES})",
    "CREATE TABLE shop.note (customer INT PRIMARY KEY, text VARCHAR(20))",
    f"ALTER TABLE shop.note ADD FOREIGN KEY (customer) REFERENCES shop.customer (id) {DELETES} {UPDATES}",
    # By a key that is not the primary one.
    "CREATE TABLE shop.card (id INT PRIMARY KEY, code VARCHAR(20)) COLLATE utf8mb4_bin",
    f"ALTER TABLE shop.card ADD FOREIGN KEY (code) REFERENCES shop.customer (code) ON DELETE SET NULL {UPDATES}",
    "CREATE TABLE shop.bill (id INT PRIMARY KEY, part INT, FOREIGN KEY (part) REFERENCES shop.part (id) ON DELETE RESTRICT)",
    f"CREATE TABLE shop.folder (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES shop.folder (id) {DELETES})",
    # Without a key of its own.
    f"CREATE TABLE shop.tag (item INT, text VARCHAR(20), FOREIGN KEY (item) REFERENCES shop.item (id) {DELETES} {UPDATES})",
    "CREATE TABLE shop.other (id INT PRIMARY KEY, n INT)",
)
TABLES = ("customer", "item", "part", "note", "card", "bill", "folder", "tag", "other")
ROWS = (
    "INSERT INTO shop.customer VALUES (1, 'a', 'Ann'), (2, 'b', 'Bob'), (3, 'c', 'Cid'), (4, 'd', 'Dan')",
    "INSERT INTO shop.item VALUES (10, 1), (11, 1), (20, 2), (30, 3), (40, 4)",
    "INSERT INTO shop.part VALUES (100, 10), (101, 11), (200, 20), (300, 30), (400, 40)",
    "INSERT INTO shop.note VALUES (1, 'one'), (2, 'two'), (3, 'three')",
    "INSERT INTO shop.card VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)",
    "INSERT INTO shop.bill VALUES (1, 200)",
    "INSERT INTO shop.folder VALUES (1, NULL), (2, 1), (3, 2), (4, NULL), (5, 4)",
    "INSERT INTO shop.tag VALUES (10, 'x'), (10, 'x'), (20, 'y'), (30, 'z'), (40, 'w')",
    "INSERT INTO shop.other VALUES (1, 1), (2, 2)",
)


def rows(url: str) -> dict[str, Sequence[Any]]:
    """Return what the tables hold, all at one point in time."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        return {table: _sorted_rows(cursor, table) for table in TABLES}


def _sorted_rows(cursor: "pymysql.cursors.Cursor", table: str) -> Sequence[Any]:
    cursor.execute(f"SELECT * FROM shop.{table}")
    return sorted(cursor.fetchall(), key=repr)


def random_statement(rng: Random) -> str:
    """One of many statements about the tables of ``KEYS``; upstream may refuse it."""
    number, other = rng.randrange(1, 9), rng.choice([*range(1, 9), "NULL"])
    return rng.choice(
        [
            f"INSERT INTO shop.customer VALUES ({number}, 'c{rng.randrange(99)}', 'x')",
            f"DELETE FROM shop.customer WHERE id <= {number} LIMIT 2",
            f"UPDATE shop.customer SET id = {rng.randrange(1, 9)}, code = 'c{rng.randrange(99)}' WHERE id = {number}",
            f"UPDATE shop.customer SET code = 'c{rng.randrange(99)}' WHERE id = {number}",
            f"REPLACE INTO shop.customer VALUES ({number}, 'c{number}', 'y')",
            f"INSERT INTO shop.item VALUES ({number}, {other}), ({number + 20}, {other})",
            f"UPDATE shop.item SET id = {rng.randrange(1, 40)}, customer = {other} WHERE id = {number}",
            f"DELETE FROM shop.item WHERE id = {number}",
            f"INSERT INTO shop.part VALUES ({number}, {other})",
            f"UPDATE shop.part SET id = id + 10 WHERE id = {number}",
            f"INSERT INTO shop.note VALUES ({number}, 'n')",
            f"INSERT INTO shop.card VALUES ({number}, (SELECT MIN(code) FROM shop.customer))",
            f"INSERT INTO shop.bill VALUES ({number}, {other})",
            f"DELETE FROM shop.bill WHERE id = {number}",
            f"INSERT INTO shop.folder VALUES ({number}, {other})",
            f"UPDATE shop.folder SET parent = {other} WHERE id = {number}",
            f"DELETE FROM shop.folder WHERE id = {number}",
            f"INSERT INTO shop.tag VALUES ({number}, 't'), ({number}, 't')",
            f"DELETE FROM shop.tag WHERE item = {number} LIMIT 1",
            f"UPDATE shop.other SET n = n + {number}",
            f"SET foreign_key_checks = {int(rng.random() < 0.8)}",
        ]
    )


def run_random(primary: Primary, rng: Random, transactions: int) -> list[dict[str, Sequence[Any]]]:
    """Run random transactions in one session; return what the tables held after each."""
    states = []
    with closing(connect(primary.url)) as connection, connection.cursor() as cursor:
        cursor.execute(CHECKED)
        for _ in range(transactions):
            for _ in range(rng.randrange(1, 6)):
                with suppress(IntegrityError, OperationalError):
                    cursor.execute(random_statement(rng))
            connection.commit() if rng.random() < 0.9 else connection.rollback()
            states.append({table: _sorted_rows(cursor, table) for table in TABLES})
            connection.commit()
    return states
