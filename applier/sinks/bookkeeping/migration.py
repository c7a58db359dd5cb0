"""Creates and upgrades the bookkeeping tables with Alembic, on a connection of the caller. Runs on the driver only."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from applier.database.carried_files import path
from applier.model.errors import FatalSinkError, Remedy
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping


def upgrade(connection: Connection, bookkeeping: Bookkeeping) -> tuple[str, ...]:
    """Upgrade to the newest revision and return the revisions applied, oldest first; none: nothing was changed.

    The caller has created the schema where there are schemas, holds a lock against other migrations, and commits. FatalSinkError if the
    tables belong to a newer applier; database errors come through as SQLAlchemy's.
    """
    with path("migrations") as directory:
        config = Config()
        # The configuration takes % for an interpolation.
        config.set_main_option("script_location", str(directory).replace("%", "%%"))
        config.attributes["connection"] = connection
        config.attributes["bookkeeping"] = bookkeeping
        missing = _missing(ScriptDirectory.from_config(config), current(connection, bookkeeping))
        if missing:
            command.upgrade(config, "head")
    return missing


def check(connection: Connection, bookkeeping: Bookkeeping) -> None:
    """Raise FatalSinkError unless the bookkeeping tables have this applier's version."""
    with path("migrations") as directory:
        missing = _missing(ScriptDirectory(str(directory)), current(connection, bookkeeping))
    if missing:
        message = "the bookkeeping tables are missing or have an older version"
        raise FatalSinkError(
            message,
            remedy=Remedy("bookkeeping.run-migrate", "Run `applier migrate`"),
            schema=bookkeeping.schema,
            missing_revisions=" ".join(missing),
        )


def current(connection: Connection, bookkeeping: Bookkeeping) -> str | None:
    """Return the revision of the bookkeeping tables, None where there are none."""
    address = bookkeeping.address
    options = {"version_table": f"{address.prefix}schema_version", "version_table_schema": address.schema}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


def _missing(script: ScriptDirectory, present: str | None) -> tuple[str, ...]:
    known = [revision.revision for revision in script.walk_revisions()][::-1]
    if present is None:
        return tuple(known)
    if present not in known:
        message = "the bookkeeping tables have a newer version than this applier"
        raise FatalSinkError(
            message,
            remedy=Remedy("bookkeeping.install-newer-applier", "Install the applier that wrote them, or a newer one"),
            revision=present,
        )
    return tuple(known[known.index(present) + 1 :])
