"""Paths of files that other libraries open later: a wrong path is refused with the configuration, and named.

Not for files that hold a secret as text (``secret``): their path is not quoted, because somebody may write the secret in its place.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator

from applier.config.value import refuse
from applier.model.remedy import Remedy

KAFKA_FILES: Final = ("ssl.certificate.location", "ssl.key.location", "ssl.keystore.location", "ssl.crl.location")
"""Properties of librdkafka that name a file. ``ssl.ca.location`` may also name a directory, or ``probe``."""
REMEDY: Final = Remedy("config.check-readable-file", "Check the path, and that the applier's user can read it")


def _problem(path: str) -> str:
    """Return what is wrong with a file; '' if it can be read."""
    if "\n" in path:
        # A certificate or a key in the place of its path: it must not be quoted.
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
