"""How a server of the MySQL family is reached, whatever it is to the replica: its sink, its upstream, or the owner of a binlog."""
