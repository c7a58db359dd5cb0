"""What the client of every SQL database needs: sessions that are never replaced, and the statements that the applier carries as files."""
