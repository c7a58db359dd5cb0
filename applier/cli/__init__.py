"""The command line: one module per command, imported when the command is called. Nothing imports this package.

May import everything. Read ``main`` first (exit codes, errors), then ``command_group`` (which commands there are).
"""
