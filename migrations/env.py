"""Alembic's entry: runs the migrations on the SQLAlchemy connection that the caller passes, never on one of its own.

Called by ``applier.sinks.bookkeeping.migration`` only, which says where the bookkeeping lies; the version table lies with it.
"""

from alembic import context

connection = context.config.attributes["connection"]
bookkeeping = context.config.attributes["bookkeeping"]

context.configure(
    connection=connection,
    version_table=f"{bookkeeping.address.prefix}schema_version",
    version_table_schema=bookkeeping.address.schema,
    transactional_ddl=bookkeeping.dialect.is_transactional,
)
with context.begin_transaction():
    context.run_migrations()
