"""A sink whose database is away for a while."""


class AbsentDatabase:
    """A sink whose database is away for some calls in a row, from the ``since``-th write on: whatever is asked of it."""

    def __init__(self, sink, since, calls, error):
        self._sink, self._left, self._absent, self._error = sink, since, calls, error

    def __getattr__(self, name):
        found = getattr(self._sink, name)
        if name not in {"load", "raise_epoch", "save", "describe", "settle", "run_ddl"}:
            return found

        def call(*args, **options):
            self._left -= 1
            if self._left <= 0 and self._absent > 0:
                self._absent -= 1
                raise self._error
            return found(*args, **options)

        return call
