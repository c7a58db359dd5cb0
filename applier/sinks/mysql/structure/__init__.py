"""What a table of the sink is made of, in one form for every server and version. Read ``model`` first, then ``reader``."""
