"""Makes the ALTER TABLE of a cut-over: what the ledger has of the copy that takes the table's place."""

from applier.ddl.copied_table import copied_table, refuse_other_columns, with_alters_of_copy
from applier.model.events import DdlEvent
from applier.sinks.port import Sink


def as_alter(ddl: DdlEvent, sink: Sink) -> DdlEvent:
    """Return a cut-over as the ALTER TABLE that it stands for, and any other DDL as it is. NeedsOperator: the ledger does not say which.

    The copy's own statements are in the ledger as skipped, so a run that begins between them and the cut-over knows them.
    """
    if ddl.cut_over is None:
        return ddl
    copied = copied_table(ddl, sink.statements())
    if copied.columns is not None:
        found = sink.describe([ddl.name])
        refuse_other_columns(ddl, copied, (column.name for table in found.values() for column in table.columns))
    return with_alters_of_copy(ddl, copied)
