"""Who may ask: the name that a browser used, and the token of a command.

A web site can point a name of its own at 127.0.0.1 (DNS rebinding), and its scripts may then read what is answered under that name. So
the page and its data are answered under known names only. An IP address is no name that anybody could point elsewhere.
"""

from collections.abc import Iterable
from hmac import compare_digest
from ipaddress import ip_address
from typing import Final

LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost"})
_SCHEME: Final = "bearer "


def names_of(host: str, more: Iterable[str]) -> frozenset[str]:
    """Return the names that a browser may use: those of loopback, the configured host, and ``more``."""
    return LOOPBACK_NAMES | {name.casefold().rstrip(".") for name in (host, *more)}


def is_known_host(header: str, names: frozenset[str]) -> bool:
    """Return whether the Host header has an IP address or one of ``names``. Without one no browser asks."""
    if not header:
        return True
    host = _without_port(header.strip()).casefold().rstrip(".")
    return host in names or _is_address(host)


def has_token(header: str, token: str) -> bool:
    """Return whether the Authorization header carries the token. It takes the same time however many characters are right."""
    if not header.casefold().startswith(_SCHEME):
        return False
    return compare_digest(header[len(_SCHEME) :].strip().encode("utf-8", "replace"), token.encode())


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
