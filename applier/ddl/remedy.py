"""What an operator can always do about a DDL that the sink cannot run."""

from typing import Final

BY_HAND: Final = (
    "Make the change by hand in the sink, in its rows too, if there is one to make, and skip the DDL with "
    "`applier ddl skip --ts … --table …`"
)
