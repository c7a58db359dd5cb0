"""What all sections of the configuration share, with two kinds of value: secrets in files of their own, and paths of other files.

A secret's file is read once, with the configuration, as service managers and container platforms provide it. No message quotes its content
or its name: an operator may write the password itself instead of the path, and must not find it in a log. Other files (``ReadableFile``)
are opened later by other libraries: a wrong path is refused with the configuration, and named.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from applier.config.value import refuse
from applier.model.errors import Remedy

# --- choice ----------------------------------------------------------------------------------------------------------
# The choices that several keys offer, and what each means.


class OnRejectedEvent(StrEnum):
    """What happens to an unreadable record, or to a row that the sink rejects."""

    STOP = "stop"
    QUARANTINE = "quarantine"


class Keyless(StrEnum):
    """What happens to rows of tables without a handle key."""

    STOP = "stop"
    BEST_EFFORT = "best_effort"


class Consistency(StrEnum):
    """What a reader of the sink sees (DESIGN.md 8)."""

    TRANSACTION = "transaction"
    ROW = "row"


class DeclaredDispatcher(StrEnum):
    """How the changefeed chooses a row's partition; only the ways that ``consistency = "row"`` can use."""

    TABLE = "table"
    INDEX_VALUE = "index-value"


class DdlPolicy(StrEnum):
    """What happens to a DDL of one type."""

    APPLY = "apply"
    SKIP = "skip"
    STOP = "stop"


# --- section ---------------------------------------------------------------------------------------------------------


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
WaitSeconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""How long to wait for something; 0: try once."""


def _texts(properties: Any) -> Any:
    """Write scalars as the texts that librdkafka and Spark expect: ``true``, not ``True``."""
    if not isinstance(properties, dict):
        return properties
    return {name: str(v).lower() if isinstance(v, bool) else str(v) if isinstance(v, int | float) else v for name, v in properties.items()}


Properties = Annotated[dict[str, str], BeforeValidator(_texts)]
"""Properties of a library (librdkafka, Spark), passed on as they are."""


class Section(BaseModel):
    """One table of the configuration file: frozen, without unknown keys, and silent about values that may be secrets."""

    # extra: a misspelled key must not leave its default in force. hide_input: pydantic quotes values in its errors.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


KAFKA_FILES: Final = ("ssl.certificate.location", "ssl.key.location", "ssl.keystore.location", "ssl.crl.location")
"""Properties of librdkafka that name a file. ``ssl.ca.location`` may also name a directory, or ``probe``."""
REMEDY: Final = Remedy("config.check-readable-file", "Check the path, and that the applier's user can read it")


def _problem(path: str) -> str:
    """Return what is wrong with a file; '' if it can be read."""
    if "\n" in path:
        # A certificate or a key instead of its path: it must not be quoted.
        return "is not a path: it has several lines"
    try:
        with Path(path).open("rb"):
            return ""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        return f"names a file that cannot be read: {path} ({reason})"


def _check(path: str) -> str:
    if problem := _problem(path):
        raise refuse(problem, REMEDY)
    return path


ReadableFile = Annotated[str, AfterValidator(_check)]
"""The path of a file that this user can read."""


def check_kafka_files(properties: Mapping[str, str]) -> None:
    """Refuse a property that names a file that is not there: librdkafka's own error names neither of them."""
    for name, path in properties.items():
        is_authority = name == "ssl.ca.location" and path not in {"", "probe"} and not Path(path).is_dir()
        if (is_authority or (name in KAFKA_FILES and path)) and (problem := _problem(path)):
            raise refuse(f"{name!r} {problem}", REMEDY)


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
