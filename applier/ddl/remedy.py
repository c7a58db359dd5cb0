"""What an operator can always do about a DDL that the sink cannot run."""

from typing import Final

BY_HAND: Final = "Make the same change in the sink by hand (schema and rows). Then skip the DDL with `applier ddl skip --ts … --table …`"
