"""What a failure of a storage means: the object is absent, access is refused, or it may pass.

fsspec's filesystems raise what Python raises for files; what their libraries raise besides is known by its class name, since a library
that is not installed cannot be imported.
"""

import errno
from enum import Enum
from typing import Final


class StorageFailure(Enum):
    """What can be done about a failed read."""

    ABSENT = "absent"
    """There is no such object: it is written before its Kafka message, so it does not come later."""
    EMPTY = "empty"
    """There is an object without a byte."""
    REFUSED = "refused"
    """Credentials or permissions: a retry would fail again."""
    TRANSIENT = "transient"
    """A time-out, a lost connection, an overloaded server."""
    OTHER = "other"
    """Unknown, so it is not retried."""


_ABSENT: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_NOT_TRANSIENT: Final = frozenset({errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL})
_LIBRARIES: Final = ("aiohttp.", "aiobotocore.", "botocore.", "azure.", "gcsfs.", "google.", "requests.", "urllib3.")
_TRANSIENT_NAMES: Final = frozenset(
    {"ClientError", "HTTPClientError", "HttpError", "ConnectionError", "ServiceRequestError", "ServiceResponseError", "RequestException"}
)
_REFUSED_NAMES: Final = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ClientAuthenticationError", "DefaultCredentialsError"}
)


def failure_of(error: BaseException) -> StorageFailure:
    """Return what an exception of a read means."""
    if isinstance(error, _ABSENT):
        return StorageFailure.ABSENT
    # S3 has no byte to give from the first one on.
    if "InvalidRange" in str(error) or "range is not satisfiable" in str(error).casefold():
        return StorageFailure.EMPTY
    names = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith(_LIBRARIES)}
    if isinstance(error, PermissionError) or names & _REFUSED_NAMES:
        return StorageFailure.REFUSED
    if isinstance(error, OSError | TimeoutError) and getattr(error, "errno", None) not in _NOT_TRANSIENT:
        return StorageFailure.TRANSIENT
    return StorageFailure.TRANSIENT if names & _TRANSIENT_NAMES else StorageFailure.OTHER
