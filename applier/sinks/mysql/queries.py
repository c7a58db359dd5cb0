"""The named statements of ``sql/mysql.sql``: what the sink asks of a server besides its bookkeeping."""

from applier.sinks.bookkeeping.named_queries import load_queries

FILE = "sql/mysql.sql"
QUERIES = load_queries("mysql", FILE)
