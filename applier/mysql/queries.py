"""The named statements of ``sql/mysql.sql``: what is asked of a server besides the bookkeeping."""

from applier.database.carried_files import clause, read_statements

FILE = "sql/mysql.sql"
QUERIES = {name: clause(statement) for name, statement in read_statements(FILE).items()}
