"""What a filtered and routed replica must be: a projection of the oracle."""

from applier.demo.simulator.compare import DatabaseFacts, differences
from applier.selection import EventFilter, Route, TableFilter, TableSelection
from tests.rig.oracle import read_facts
from tests.rig.upstream import fresh_oracle


def selection_of(tables=(), routes=(), event_filters=()):
    """Make a selection from the texts of the configuration; an event filter is (tables, ignore)."""
    return TableSelection(
        TableFilter.parse(tables),
        tuple(Route.parse(*route) for route in routes),
        tuple(EventFilter.parse(TableFilter.parse(rules), ignored) for rules, ignored in event_filters),
    )


SELECTIONS = [
    # Upstream makes tables of lab by LIKE, from any table.
    selection_of(["*.*", "!types.*", "!lab*.*"]),
    selection_of(["shop.*", "BANK.*", "!lab*.*"]),
    selection_of(["*.*", "!crm.[sw]*", "!/^types$/./^b/", "!LAB*.*"]),
    selection_of([], [("*.*", "copy_{schema}.{table}")]),
    selection_of([], [("shop.*", "bank.shop_{table}"), ("crm.*", "{schema}.x_{table}"), ("lab*.*", "{schema}.{table}_of_{schema}")]),
    selection_of(
        ["*.*", "!bank.*", "!types.everything", "!lab*.*"], [("types.bits", "archive.`all bits`"), ("*.*", "{schema}_2020.{table}")]
    ),
]


def differences_from_projection(history, upto_ts, url, selection):
    """List the differences of the sink at ``url`` from what the selection takes of upstream at ``upto_ts``."""
    with fresh_oracle(url) as oracle:
        oracle.apply(history, upto_ts)
        whole, tables = oracle.facts(), oracle.tables()
    expected = DatabaseFacts(
        tables={selection.name(name): facts for name, facts in whole.tables.items() if selection.has(name)},
        views=frozenset(selection.name(name) for name in whole.views if selection.has(name)),
    )
    return differences(expected, read_facts(url), {selection.name(name): table for name, table in tables.items()})
