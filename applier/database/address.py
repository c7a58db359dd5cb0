"""What is common to the URLs of databases. No message about a URL quotes a part that may be a password."""

from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from applier.model.remedy import Remedy

Options: TypeAlias = list[tuple[str, str]]

QUOTED: Final = Remedy(
    "sink.encode-password",
    "If user or password contain such characters, encode them (@ as %40, : as %3A, / as %2F, # as %23, ? as %3F, % as %25), "
    "or give the password as password_file, APPLIER_SINK__PASSWORD or APPLIER_SOURCE__PASSWORD, without encoding",
)


class BadAddress(ValueError):
    """What is wrong with a URL (a text that follows the URL's name in a message), and the remedy."""

    def __init__(self, problem: str, remedy: Remedy) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


def parse_address(text: str, form: Remedy) -> tuple[URL, Options]:
    """Return the URL and its options; BadAddress: it is none. ``form``: the remedy that shows one."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Not chained: the library's message may hold the password.
        raise BadAddress("is not a URL of a database", form.then(QUOTED) if "@" in text else form) from None
    # SQLAlchemy drops options without a value; parsed here, they are refused like others.
    return url, parse_qsl(text.rpartition("@")[2].partition("?")[2], keep_blank_values=True)
