"""Secrets that stand in files of their own, as service managers and container platforms hand them out.

Such a file is read once, when the configuration is. What is in it is never quoted, and neither is its name: who writes a password where
a file is asked for must not find it in a log.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, SecretStr

from applier.config.value import refuse

FILE_SUFFIX: Final = ".file"
"""``"sasl.password.file"`` names the file that holds ``sasl.password``. No property of librdkafka ends like this."""


def with_files_read(properties: Mapping[str, str]) -> dict[str, str]:
    """Put the contents of files in the place of the properties that name them."""
    read = {}
    for name, value in properties.items():
        plain = name.removesuffix(FILE_SUFFIX)
        if plain != name and plain in properties:
            raise refuse(f"sets both {plain!r} and {name!r}", "Leave one of them out")
        read[plain] = value if plain == name else _content(value, f"{name!r} ")
    return read


def _content(path: str, subject: str = "") -> str:
    """Return what the file holds, without the line end at its end."""
    try:
        secret = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text in UTF-8"
        message = f"{subject}names a file that cannot be read: {reason}"
        raise refuse(message, "Check path and permissions; the applier reads it as its own user") from None
    if not secret:
        raise refuse(f"{subject}names a file that is empty", "Write the secret into it")
    return secret


def _secret(path: Any) -> Any:
    """Read the file; what is no path is left to the model."""
    return _content(path) if isinstance(path, str) else path


SecretFile = Annotated[SecretStr, BeforeValidator(_secret)]
"""Is set to a path, and holds what the file holds."""
