"""Database users that have what a file of sql/ grants, and nothing else."""

import re
from contextlib import closing
from secrets import token_hex

from sqlalchemy import make_url

from applier.database.carried_files import read_text
from tests.rig.mysql_oracle import connect

EXAMPLE_USER = re.compile(r"'\w+'@'%'")
EXAMPLE_PASSWORD, EXAMPLE_SCHEMA = "'choose-a-password'", " shop.* "
REPLICATED = ("bank", "shop", "crm", "types", "lab%", "log", "metrics", "bulk", "oltp", "applier_test_shop")
"""The schemas of the simulated upstream (``lab`` has others beside it), and those of the load on a primary and of integration tests."""


def statements_of(file: str) -> list[str]:
    """Return the statements of a file of sql/."""
    lines = read_text(f"sql/{file}").splitlines()
    return [text.strip() for text in "\n".join(line for line in lines if not line.startswith("--")).split(";") if text.strip()]


def make_user(
    url: str, file: str = "grants.sql", user: str = "applier", *, without: str = "", schemas: tuple[str, ...] = REPLICATED
) -> str:
    """Make the user of sql/``file`` on the server of the administrator's ``url``; return the user's own URL.

    ``without``: leaves out the statements that hold this word. ``schemas``: those that are replicated.
    """
    password = token_hex(16)
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        # At this very host: a server may have an anonymous user of it, which comes before one of any host.
        cursor.execute("SELECT SUBSTRING_INDEX(USER(), '@', -1)")
        account = f"'{user}'@'{cursor.fetchone()[0]}'"
        cursor.execute(f"DROP USER IF EXISTS {account}")
        for statement in (text for text in statements_of(file) if not without or without not in text):
            for schema in schemas if EXAMPLE_SCHEMA in statement else ("",):
                place = " `{}`.* ".format(schema.replace("_", "\\_"))
                granted = EXAMPLE_USER.sub(account, statement).replace(EXAMPLE_SCHEMA, place)
                cursor.execute(granted.replace(EXAMPLE_PASSWORD, f"'{password}'"))
    return make_url(url).set(username=user, password=password).render_as_string(hide_password=False)
