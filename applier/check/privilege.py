"""Examines the privileges of the sink's user: on the bookkeeping and on the replicated schemas (sql/grants.sql)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from sqlalchemy import Connection

from applier.check.finding import CheckFinding, ok, problem, warning
from applier.check.shared_facts import SharedFacts
from applier.config import Config
from applier.model.events import TableName
from applier.mysql.grants import Grants, account_of, grant
from applier.mysql.queries import QUERIES
from applier.sources.binlog.settings import BinlogSettings


class Useful(NamedTuple):
    """Privileges that a replica can run without, and what happens then."""

    privileges: tuple[str, ...]
    harm: str


ROWS: Final = ("SELECT", "INSERT", "DELETE")
DDLS: Final = Useful(
    ("CREATE", "ALTER", "INDEX", "DROP", "REFERENCES", "CREATE VIEW", "SHOW VIEW", "TRIGGER"),
    "a DDL that needs them will stop the replica",
)
ORDERED: Final = Useful(
    (*DDLS.privileges, "UPDATE"), f"{DDLS.harm}, and without UPDATE so will rows of tables with ON DELETE CASCADE and the like"
)
"""Of a binlog, whose rows may have to be updated (``planner.ordered_rows``)."""
BOOKKEEPING: Final = (*ROWS, "UPDATE")
MIGRATION: Final = ("CREATE", "ALTER", "INDEX")
"""What making the tables of the bookkeeping takes. sql/grants.sql gives more, for migrations to come."""
LATER: Final = Useful((*MIGRATION, "DROP", "REFERENCES"), "an upgrade of the bookkeeping may need them")
ANYWHERE: Final = TableName("", "")


def privilege_findings(
    config: Config, connection: Connection, grants: Grants, shared: SharedFacts, *, patience_s: float | None, is_new: bool
) -> Iterator[CheckFinding]:
    """Examine both kinds of schemas. ``patience_s``: how long to wait for the tables of the topics; None: the bookkeeping's alone."""
    user = str(connection.execute(QUERIES["current_user"]).scalar_one())
    yield _of_schema(grants, user, config.sink.bookkeeping_schema, (*BOOKKEEPING, *(MIGRATION if is_new else ())), LATER)
    if patience_s is None:
        return
    useful = ORDERED if isinstance(config.source_settings(), BinlogSettings) else DDLS
    for schema in target_schemas(config, shared, patience_s):
        yield _of_schema(grants, user, schema, ROWS, useful)
    if not grants.allows("PROCESS", ANYWHERE):
        missing = "PROCESS is missing; it is optional, and shows which session blocks a DDL"
        yield warning("sink: privileges", missing, grant(["PROCESS"], "", *account_of(user)))


def target_schemas(config: Config, shared: SharedFacts, patience_s: float) -> list[str]:
    """Return the schemas that the replica writes, as far as its tables, the topics and the table filter show them."""
    progress, selection = shared.progress(patience_s), config.source.selection()
    known = {name.schema: name.schema for name in (progress.known_tables if progress is not None else ())}
    seen = {table.schema.casefold(): table.schema for table in shared.tables(patience_s)}
    named = [rule.partition(".")[0] for rule in config.source.tables if not rule.startswith("!")]
    filtered = {selection.schema_name(name).casefold(): selection.schema_name(name) for name in named if name.replace("_", "").isalnum()}
    return sorted(set({**known, **filtered, **seen}.values()))


def _of_schema(grants: Grants, user: str, schema: str, needed: tuple[str, ...], useful: Useful) -> CheckFinding:
    check, place = "sink: privileges", TableName(schema, "")
    missing = [name for name in needed if not grants.allows(name, place)]
    # Some servers are granted table by table. That is no reason to refuse a replica that runs: a table that is missing is named then.
    unknown = [name for name in missing if not grants.allows_on_a_table(name, schema)]
    absent = [name for name in useful.privileges if not grants.allows(name, place)]
    if unknown:
        # With what is useful only: an administrator is asked once.
        every = list(dict.fromkeys([*missing, *absent]))
        return problem(check, f"{user} lacks {', '.join(every)} on {schema}.*", grant(every, schema, *account_of(user)))
    if absent:
        return warning(check, f"{user} lacks {', '.join(absent)} on {schema}.*: {useful.harm}", grant(absent, schema, *account_of(user)))
    return ok(check, f"{user} has all on {schema}.*")
