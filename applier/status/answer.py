"""One answer of the HTTP server: a status, a body, and the headers that every answer has."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

JSON: Final = "application/json; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"
_ALWAYS: Final = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request gets. ``headers`` are added to those of every answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, value: Any, status: HTTPStatus = HTTPStatus.OK, *headers: tuple[str, str]) -> Self:
        """Return an answer in JSON."""
        return cls(status, json.dumps(value).encode() + b"\n", headers=headers)

    @classmethod
    def refusal(cls, status: HTTPStatus, error: str, remedy: str, *headers: tuple[str, str]) -> Self:
        """Return why a request is refused, and what to do."""
        return cls.of({"error": error, "remedy": remedy}, status, *headers)

    def send(self, start_response: "StartResponse", *, is_head: bool) -> Iterable[bytes]:
        """Send the headers and return the body; none for HEAD, which has the headers of GET."""
        described = [("Content-Type", self.content_type), ("Content-Length", str(len(self.body)))]
        start_response(f"{self.status.value} {self.status.phrase}", [*described, *_ALWAYS, *self.headers])
        return [] if is_head else [self.body]
