"""``[http]``: where a daemon answers about itself."""

import re
from typing import Annotated, Any, Final, NamedTuple, Self

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from applier.config.section import Seconds, SecretFile, Section
from applier.config.value import refuse
from applier.model.errors import Remedy

LISTEN: Final = re.compile(r"(?:(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):)?(?P<port>\d{1,5})")
LOOPBACK: Final = "127.0.0.1"
MAX_PORT: Final = 65535
HOST_NAME: Final = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
MIN_TOKEN: Final = 16


class Listen(NamedTuple):
    """Where the HTTP server listens."""

    host: str
    port: int

    @property
    def reached_at(self) -> str:
        """The host to connect to from this machine."""
        # A wildcard address can be listened at, but not connected to on every system.
        return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared, not listened to


def parse_listen(value: Any) -> Listen | None:
    """Read ``host:port``, ``[v6]:port`` or a port alone (loopback); ``off`` is None."""
    text = str(value).strip()
    if text == "off":
        return None
    match = LISTEN.fullmatch(text)
    if match is None or not 0 <= int(match["port"]) <= MAX_PORT:
        raise refuse(
            f"is not a listen address: {text!r}",
            Remedy("config.write-listen-address", 'Write "127.0.0.1:9464", a port alone for loopback, or "off"'),
        )
    return Listen(match["v6"] or match["host"] or LOOPBACK, int(match["port"]))


# Loopback, because the server asks for no password.
DEFAULT_LISTEN: Final = Listen(LOOPBACK, 9464)


class HttpConfig(Section):
    """Where ``run`` answers, and when it calls itself unhealthy."""

    listen: Annotated[Listen | None, BeforeValidator(parse_listen)] = DEFAULT_LISTEN
    unhealthy_after_s: Seconds = 600.0
    """``/healthz`` fails after so many seconds without progress of the loop."""
    names: tuple[Annotated[str, Field(pattern=HOST_NAME)], ...] = ()
    """More host names under which browsers may open the page: localhost and the name in ``listen`` always may."""
    token: SecretStr | None = None
    """Allows ``POST /api/pause`` and ``/api/resume``; without it they are refused."""
    token_file: SecretFile | None = None

    @model_validator(mode="after")
    def _check_token(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise refuse("sets both token and token_file", Remedy("config.remove-token-or-file", "Remove one of them"))
        if self.secret and len(self.secret) < MIN_TOKEN:
            raise refuse(
                f"has a token of fewer than {MIN_TOKEN} characters", Remedy("config.make-token", "Make one with: openssl rand -hex 16")
            )
        return self

    @property
    def secret(self) -> str:
        """The token; "" without one."""
        token = self.token_file if self.token is None else self.token
        return "" if token is None else token.get_secret_value()
