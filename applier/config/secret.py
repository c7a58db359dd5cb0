"""Secrets in their own files, as service managers and container platforms provide them.

Such a file is read once, with the configuration. No message quotes its content, nor its name: somebody may write the password itself
where the path belongs, and must not find it in a log.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, SecretStr

from applier.config.value import refuse
from applier.model.remedy import Remedy

FILE_SUFFIX: Final = ".file"
"""``"sasl.password.file"`` names the file that holds ``sasl.password``. No property of librdkafka ends like this."""


def with_files_read(properties: Mapping[str, str]) -> dict[str, str]:
    """Replace the properties that name a file by its content."""
    read = {}
    for name, value in properties.items():
        plain = name.removesuffix(FILE_SUFFIX)
        if plain != name and plain in properties:
            raise refuse(f"sets both {plain!r} and {name!r}", Remedy("config.remove-secret-or-file", "Remove one of them"))
        read[plain] = value if plain == name else _content(value, f"{name!r} ")
    return read


def _content(path: str, subject: str = "") -> str:
    """Return the file's text without its final line end."""
    try:
        # Only line ends are cut: a space may belong to the secret, and an editor adds the line end.
        secret = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        message = f"{subject}names a file that cannot be read: {reason}"
        # Without the cause: the text of an OSError has the path, which may be the password itself.
        raise refuse(message, Remedy("config.check-readable-secret", "Check the path, and that the applier's user can read it")) from None
    if not secret:
        raise refuse(f"{subject}names an empty file", Remedy("config.write-secret-into-file", "Write the secret into it"))
    return secret


def _secret(path: Any) -> Any:
    """Read the file. Anything but text is left to the model, which refuses it."""
    return _content(path) if isinstance(path, str) else path


SecretFile = Annotated[SecretStr, BeforeValidator(_secret)]
"""Set to a path, it holds the content of the file."""
