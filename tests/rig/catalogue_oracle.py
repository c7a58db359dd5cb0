"""The oracle without a database: what upstream itself holds, by the simulator's own rules.

An oracle on the sink's server shares that server's conversions, names and zone, so both may be wrong alike. This one knows upstream only:
its session's zone, the values that it generates, the names that it gives.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from applier.demo.simulator.catalogue import Catalogue, TableState
from applier.demo.simulator.column_type import TypeClass
from applier.demo.simulator.compare import ColumnFacts, DatabaseFacts, IndexFacts, TableFacts, differences
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.schema import PRIMARY, Table
from applier.model.events import TableName
from applier.model.position import Ts


class CatalogueOracle:
    """Upstream's present state as facts. Knows nothing of how a sink declares types."""

    def __init__(self) -> None:
        self._catalogue = Catalogue()

    def execute(self, step: UpstreamStep) -> None:
        """Execute one step."""
        self._catalogue.change(step.rows)
        for ddl in step.ddls:
            self._catalogue.execute(ddl)

    def apply(self, history: Iterable[UpstreamStep], upto_ts: Ts | None = None) -> None:
        """Execute all steps with ts <= ``upto_ts`` (None: all)."""
        for step in history:
            if upto_ts is not None and step.ts > upto_ts:
                return
            self.execute(step)

    def tables(self) -> dict[TableName, Table]:
        """Return the present definitions."""
        return {state.table.name: state.table for state in self._catalogue}

    def facts(self) -> DatabaseFacts:
        """Describe upstream for comparison."""
        tables = {state.table.name: _table_facts(state) for state in self._catalogue}
        return DatabaseFacts(tables=tables, views=frozenset(self._catalogue.views))

    def differences_from(self, sink: DatabaseFacts) -> list[str]:
        """List what differs in a sink of any kind; [] if nothing does."""
        tables = self.tables()
        return differences(_with_documents(self.facts(), tables), _with_documents(sink, tables), tables)


def _table_facts(state: TableState) -> TableFacts:
    table = state.table
    keys = frozenset(name for index in table.indexes if index.primary for name in index.columns)
    columns = tuple(ColumnFacts(name=column.name, nullable=column.nullable and column.name not in keys) for column in table.columns)
    # Not every database has indexes of expressions.
    kept = [index for index in table.indexes if not index.expression]
    indexes = frozenset(IndexFacts(name=i.name, columns=i.columns, unique=i.unique, primary=i.name == PRIMARY) for i in kept)
    return TableFacts(columns=columns, indexes=indexes, rows=list(state.rows.values()))


def _with_documents(facts: DatabaseFacts, tables: Mapping[TableName, Table]) -> DatabaseFacts:
    """Write JSON documents in one form: MySQL keeps the document, not its text."""
    known = {name: found for name, found in facts.tables.items() if name in tables and len(tables[name].columns) == len(found.columns)}
    return replace(facts, tables={**facts.tables, **{name: _table_with_documents(known[name], tables[name]) for name in known}})


def _table_with_documents(facts: TableFacts, table: Table) -> TableFacts:
    places = [place for place, column in enumerate(table.columns) if column.type.kind is TypeClass.JSON]
    return replace(facts, rows=[_row_with_documents(row, places) for row in facts.rows]) if places else facts


def _row_with_documents(row: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    return tuple(_document(value) if place in places else value for place, value in enumerate(row))


def _document(value: Any) -> Any:
    return json.dumps(json.loads(value), sort_keys=True, ensure_ascii=False) if isinstance(value, str) else value
