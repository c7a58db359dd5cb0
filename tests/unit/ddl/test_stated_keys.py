"""The foreign keys that upstream's statements leave."""

import pytest

from applier.ddl.stated_keys import StatedKeys
from applier.model.events import DdlEvent
from applier.model.position import Ts


def ddl(query, table="child", schema="shop"):
    return DdlEvent(commit_ts=Ts(1), schema=schema, table=table, query=query, ddl_type=3)


def keys(*statements):
    found = StatedKeys(one if isinstance(one, DdlEvent) else ddl(one) for one in statements)
    return [(key.name, str(key.child), str(key.parent), key.on_delete, key.on_update) for key in found.all()]


CREATE = "CREATE TABLE child (id INT PRIMARY KEY, p INT, CONSTRAINT of FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)"
KEY = ("of", "shop.child", "shop.parent", "CASCADE", "NO ACTION")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (CREATE, [KEY]),
        ("CREATE TABLE child (p INT REFERENCES `parent`(`id`) ON UPDATE SET\nNULL)", [("", *KEY[1:3], "NO ACTION", "SET NULL")]),
        (
            "ALTER TABLE child ADD FOREIGN KEY own (p) REFERENCES Other . `Pa``rent` (id) on update cascade ON DELETE set null, ADD n INT",
            [("", "shop.child", "other.pa`rent", "SET NULL", "CASCADE")],
        ),
        (
            "CREATE TABLE child (a INT, b INT, FOREIGN KEY (a) REFERENCES x (id) ON DELETE CASCADE, FOREIGN KEY (b) REFERENCES y (id))",
            [("", "shop.child", "shop.x", "CASCADE", "NO ACTION"), ("", "shop.child", "shop.y", "NO ACTION", "NO ACTION")],
        ),
        ("ALTER TABLE child ADD COLUMN n INT", []),
    ],
)
def test_a_statement_states_its_keys(query, found):
    assert keys(query) == found


@pytest.mark.parametrize(
    "later",
    ["ALTER TABLE child DROP FOREIGN KEY `of`", "ALTER TABLE child DROP CONSTRAINT OF", "DROP TABLE child", ddl("DROP DATABASE shop", "")],
)
def test_a_key_ends_with_what_drops_it(later):
    assert keys(CREATE, later) == []


def test_a_key_that_no_statement_drops_by_its_name_stays():
    assert keys(CREATE, "ALTER TABLE child DROP FOREIGN KEY child_ibfk_1", "DROP TABLE parent", "ALTER TABLE child DROP COLUMN n") == [KEY]


def test_keys_follow_the_names_of_both_tables():
    renamed = keys(CREATE, "RENAME TABLE child TO boy, parent TO man")
    assert renamed == [("of", "shop.boy", "shop.man", "CASCADE", "NO ACTION")]
