"""The GRANTs of ``sql/grants*.sql`` with the names of a replica instead of those of the example."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from applier.database.carried_files import read_text
from applier.mysql.grants import account, all_tables

EXAMPLE_USER: Final = re.compile(r"'(\w+)'@'%'")
EXAMPLE_SCHEMA: Final = "shop"
EXAMPLE_BOOKKEEPING: Final = "applier"
NOTE: Final = "-- `shop` stands for each replicated schema: name yours with --schema."


def grants_of(file: str, *, user: str, host: str, schemas: Sequence[str], bookkeeping: str) -> Iterable[str]:
    """Yield the lines of a file of ``sql/`` with these names instead of the example's. No ``schemas``: the example stays."""
    return lines_of(read_text(f"sql/{file}"), user=user, host=host, schemas=schemas, bookkeeping=bookkeeping)


def lines_of(text: str, *, user: str, host: str, schemas: Sequence[str], bookkeeping: str) -> Iterable[str]:
    """Yield the lines of ``text``, as ``grants_of`` does."""
    if not schemas and f" {EXAMPLE_SCHEMA}.*" in text:
        yield NOTE
    for line in text.splitlines():
        if line.startswith("--"):
            yield line
            continue
        named = EXAMPLE_USER.sub(lambda found: account(user or found[1], host), line)
        if bookkeeping != EXAMPLE_BOOKKEEPING:
            named = named.replace(f" {EXAMPLE_BOOKKEEPING}.* ", f" {all_tables(bookkeeping)} ")
        is_repeated = f" {EXAMPLE_SCHEMA}.* " in named and schemas
        yield from (named.replace(f" {EXAMPLE_SCHEMA}.* ", f" {all_tables(schema)} ") for schema in schemas) if is_repeated else [named]
