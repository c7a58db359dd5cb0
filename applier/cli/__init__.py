"""The command line: one module per command, imported when the command is called. Nothing but `__main__` imports this package.

May import everything. Read ``main`` first (exit codes, errors), then ``command_group`` (which commands there are) and
`interrupt` (Ctrl-C before a command begins).
"""
