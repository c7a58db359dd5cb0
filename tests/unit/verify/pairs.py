"""Tables of two sides on one line each, for the tests of the comparison."""

from applier.ddl.table_draft import parse_type
from applier.ddl.tokens import Cursor
from applier.planner.port import ColumnDescription, TableDescription
from applier.sinks.mysql.table_text import MARIADB, MYSQL
from applier.sinks.table_pair import ColumnPair, SideColumn, SideTable, TablePair, pair_columns, pair_tables

BOTH = (MYSQL, MARIADB)


def side_column(name, sql_type, *, nullable=False, charset="", collation="", generated=False):
    found = parse_type(Cursor(sql_type)) if sql_type != "geometry" else None
    labels = found.labels if found is not None else ()
    is_set = sql_type.startswith("set")
    description = ColumnDescription(name=name, sql_type=sql_type, nullable=nullable, generated=generated, labels=labels, is_set=is_set)
    return SideColumn(description=description, type=found, charset=charset, collation=collation)


def side_table(*columns, key=("id",), schema="shop", table="t"):
    keys = (tuple(key),) if key else ()
    description = TableDescription(schema=schema, table=table, columns=tuple(c.description for c in columns), unique_keys=keys)
    return SideTable(description=description, columns=tuple(columns))


def column_pair(upstream, sink=None, kinds=BOTH, **facts) -> ColumnPair:
    found = pair_columns(side_column("c", upstream, **facts), side_column("c", sink or upstream, **facts), kinds)
    assert found is not None
    return found


def table_pair(*columns, key=("id",), kinds=BOTH) -> TablePair:
    found = pair_tables(side_table(*columns, key=key), side_table(*columns, key=key), kinds)
    assert isinstance(found, TablePair)
    return found
