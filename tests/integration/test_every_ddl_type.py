"""Every DDL type that TiCDC replicates, on MariaDB and MySQL: the catalogue afterwards, or the error that stops the replica."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from applier.ddl.policy import REPLICATED, ddl_type_name, default_policy
from applier.model.errors import ApplierError
from applier.sinks.mysql.ddl import runner
from tests.rig.clean_server import clean_server
from tests.rig.database import Kind
from tests.rig.ddl_type_feed import SCHEMA, feed_of
from tests.rig.ddl_types import CASES, VIEW, Shown, Stops, TypeCase
from tests.rig.faulty_sink import DeathError
from tests.rig.local_replica import Replica
from tests.rig.mysql_oracle import connect

SCHEMAS = (SCHEMA, "lab_1")
INT_WIDTH = re.compile(r"(?<=int)\(\d+\)")


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, *SCHEMAS)
    yield mysql_url
    clean_server(mysql_url, *SCHEMAS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_d13_a_ddl_of_every_type_is_applied_or_refused_by_name(url: str, database_kind: Kind, case: TypeCase) -> None:
    replica = Replica(url, feed_of(case))
    expected = case.expected(str(database_kind))
    if isinstance(expected, Stops):
        with pytest.raises(ApplierError, match=expected.words) as stopped:
            replica.catch_up()
        assert stopped.value.remedy
        assert case.ddl in str(stopped.value)
        return
    replica.catch_up()
    assert {name: shown(url, name) for name in expected} == expected


APPLIED = [case for case in CASES if not (isinstance(case.expected("mariadb"), Stops) or isinstance(case.expected("mysql"), Stops))]


@pytest.mark.soak(reason="test_deaths_around_ddls.py dies at the statements that every server understands as they come")
@pytest.mark.parametrize("point", ["ddl.after_intent", "ddl.after_statement"])
@pytest.mark.parametrize("case", APPLIED, ids=str)
def test_a_ddl_of_every_type_has_run_once_after_a_death(
    url: str, database_kind: Kind, case: TypeCase, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if default_policy(ddl_type_name(case.number)) == "skip":
        pytest.skip("a skipped DDL has no intent")
    deaths = DeathsAt(case.ddl, point)
    monkeypatch.setattr(runner, "reach", deaths.reach)
    replica = Replica(url, feed_of(case), wrap=deaths.watch)
    with pytest.raises(DeathError):
        replica.catch_up()
    replica.catch_up()
    expected = case.expected(str(database_kind))
    assert isinstance(expected, dict)
    assert {name: shown(url, name) for name in expected} == expected


class DeathsAt:
    """Lets a run die once, at one point of one statement."""

    def __init__(self, query: str, point: str) -> None:
        self._query, self._point, self._running = query, point, ""

    def reach(self, point: str) -> None:
        if (self._running, point) == (self._query, self._point):
            self._query = ""
            raise DeathError

    def watch(self, sink: Any) -> Any:
        deaths = self

        class Watched:
            def __getattr__(self, name: str) -> Any:
                return getattr(sink, name)

            def run_ddl(self, fence: Any, identity: Any, ddl: Any, **commits: Any) -> Any:
                deaths._running = ddl.query
                return sink.run_ddl(fence, identity, ddl, **commits)

        return Watched()


def test_no_replicated_type_is_missing() -> None:
    assert {case.number for case in CASES} >= REPLICATED


def shown(url: str, name: str) -> Shown | str | None:
    """Describe a table as the server's catalogue shows it."""
    schema, _, table = name.rpartition(".")
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        catalogue = Catalogue(cursor, schema or SCHEMA, table)
        match catalogue.value("TABLE_TYPE", "TABLES"):
            case None:
                return None
            case "VIEW":
                return VIEW
            case _:
                return catalogue.table()


class Catalogue:
    """What information_schema shows of one table."""

    def __init__(self, cursor: Any, schema: str, table: str) -> None:
        self._cursor, self._schema, self._table = cursor, schema, table

    def table(self) -> Shown:
        self._cursor.execute(f"SELECT COUNT(*) FROM {self._schema}.{self._table}")
        ((rows,),) = self._cursor.fetchall()
        comment = self.value("TABLE_COMMENT", "TABLES")
        return Shown(columns=self._columns(), keys=self._keys(), partitions=self._partitions(), rows=rows, comment=comment or "")

    def value(self, column: str, view: str) -> str | None:
        return next((row[0] for row in self._rows(column, view)), None)

    def _rows(self, columns: str, view: str, order: str = "1") -> list[tuple[Any, ...]]:
        where = "TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        self._cursor.execute(f"SELECT {columns} FROM information_schema.{view} WHERE {where} ORDER BY {order}", (self._schema, self._table))
        return list(self._cursor.fetchall())

    def _columns(self) -> str:
        columns = "COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, COLLATION_NAME, DATA_TYPE"
        return ", ".join(_column(*row) for row in self._rows(columns, "COLUMNS", "ORDINAL_POSITION"))

    def _keys(self) -> str:
        self._cursor.execute(f"SHOW INDEX FROM {self._schema}.{self._table}")
        names = [field[0] for field in self._cursor.description]
        keys: dict[str, list[dict[str, Any]]] = {}
        for row in self._cursor.fetchall():
            part = dict(zip(names, row, strict=True))
            keys.setdefault(part["Key_name"], []).append(part)
        return ", ".join(_key(name, keys[name]) for name in sorted(keys, key=lambda name: (name != "PRIMARY", name)))

    def _partitions(self) -> str:
        rows = self._rows("PARTITION_ORDINAL_POSITION, PARTITION_NAME", "PARTITIONS")
        return " ".join(f"{name}:{self._in_partition(name)}" for _, name in rows if name is not None)

    def _in_partition(self, name: str) -> int:
        self._cursor.execute(f"SELECT COUNT(*) FROM {self._schema}.{self._table} PARTITION (`{name}`)")
        ((rows,),) = self._cursor.fetchall()
        return int(rows)


def _column(name: str, kind: str, nullable: str, default: str | None, collation: str | None, data_type: str) -> str:
    text = f"{name} {INT_WIDTH.sub('', kind)}" + ("" if nullable == "YES" else "!")
    if default is not None and default != "NULL":
        text += "=" + (repr(default.strip("'")) if data_type == "varchar" else default)
    return text + (f"{{{collation}}}" if collation not in (None, "utf8mb4_bin") else "")


def _key(name: str, parts: list[dict[str, Any]]) -> str:
    columns = ",".join(part["Column_name"] or part["Expression"] for part in parts)
    is_hidden = parts[0].get("Visible") == "NO" or parts[0].get("Ignored") == "YES"
    mark = "u:" if not parts[0]["Non_unique"] and name != "PRIMARY" else ""
    return f"{mark}{name}({columns})" + ("~" if is_hidden else "")
