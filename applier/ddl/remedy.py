"""What an operator can always do about a DDL that the sink cannot run."""

from typing import Final

from applier.model.remedy import Remedy

OTHER_ROWS: Final = Remedy(
    "ddl.verify-rows-against-ddl",
    "Upstream's rows allow this DDL: `applier verify` finds those that differ. Correct them in the sink, and start the applier again: it "
    "runs the DDL again. If the sink can do without it: `applier ddl skip --ts … --table …`",
)
PLAIN_COLUMN: Final = Remedy(
    "ddl.make-plain-column-by-hand",
    "Make the same change in the sink by hand, with a plain column (no GENERATED) whose comment keeps upstream's expression, as "
    "/*: GENERATED ALWAYS AS (…) STORED */. Then skip the DDL with "
    "`applier ddl skip --ts … --table …`, and give the old rows upstream's values with `applier verify --fix-sql`",
)
BY_HAND: Final = Remedy(
    "ddl.change-by-hand-with-rows",
    "Make the same change in the sink by hand (schema and rows). Then skip the DDL with `applier ddl skip --ts … --table …`",
)
CONVERTED: Final = Remedy(
    "ddl.change-by-hand-and-skip",
    "Make the change in the sink by hand, and skip the DDL with `applier ddl skip --ts … --table …`. Then give the column upstream's "
    "values: `applier verify` finds the rows that differ, and `--fix-sql` writes them",
)
"""Where a sink would make other values of old rows than upstream."""
NO_SEQUENCE: Final = Remedy(
    "ddl.skip-sequence",
    "If this is a SEQUENCE upstream, which the sink has none of: `applier ddl skip --ts … --table …`. If it is a table: create it in the "
    "sink as upstream has it, with its rows, and start the applier again",
)
"""Of a table that the sink lacks, and that MariaDB's log does not tell apart from a SEQUENCE."""
