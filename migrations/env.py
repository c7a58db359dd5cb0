"""Alembic's entry: runs the migrations on the SQLAlchemy connection that the caller passes, never on one of its own.

Called by ``applier.sinks.migration`` only. The version table lies with the bookkeeping: ``applier.schema_version``, in SQLite
``applier_schema_version``.
"""

from alembic import context

connection = context.config.attributes["connection"]
is_sqlite = connection.dialect.name == "sqlite"

context.configure(
    connection=connection,
    version_table="applier_schema_version" if is_sqlite else "schema_version",
    version_table_schema=None if is_sqlite else "applier",
    transactional_ddl=is_sqlite,
)
with context.begin_transaction():
    context.run_migrations()
