"""Reads claim-check objects through fsspec: several at a time, within a limit of memory; retried where a failure may pass.

One GET per object, of its size limit and one byte more: so an object that is too large is noticed, and never held.

What a failure of a storage means: the object is absent, access is refused, or it may pass.

fsspec's filesystems raise what Python raises for files; what their libraries raise besides is known by its class name, since a library
that is not installed cannot be imported.
"""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from types import MappingProxyType
from typing import Any, Final

import fsspec
import stamina
from fsspec.asyn import AsyncFileSystem

from applier.model.errors import SKIP_RECORD, ConfigError, ProtocolError, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.sources.claim_check.settings import EXTRAS, LOCAL, ClaimCheckSettings


class StorageFailure(Enum):
    """What can be done about a failed read."""

    ABSENT = "absent"
    """The object does not exist: it is written before its Kafka message, so it does not come later."""
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


PARALLEL: Final = 8
"""Objects that are read at once: one takes about ten milliseconds to answer, whatever its size."""
MEMORY_BYTES: Final = 128 << 20
"""What the objects that are read at once should take together; a single one may be larger."""
ATTEMPTS: Final = 5
TIMEOUT_S: Final = 60.0
MAX_WAIT_S: Final = 5.0

S3_CLIENT: Final[Mapping[str, Any]] = MappingProxyType(
    {"connect_timeout": 10, "read_timeout": 30, "retries": MappingProxyType({"total_max_attempts": 1})}
)
"""No retries by the client: three layers of them would let one object that cannot be read take minutes."""

STORAGE_REMEDY: Final = Remedy("claim-check.check-storage", "Check source.claim_check: the storage, and its options")
OBJECT_REMEDY: Final = Remedy(
    "claim-check.restore-object",
    "The producer writes an object before its record: it was deleted, or source.claim_check.storage names another one. Restore it there "
    f"under this name. Or load the row from upstream, and skip the record: `{SKIP_RECORD}`. Keep objects longer than the topic's records",
)
LARGE_REMEDY: Final = Remedy(
    "claim-check.raise-max-object-size", "Raise source.claim_check.max_object_size, and the memory of the executors"
)


@dataclass(frozen=True, slots=True)
class FsspecStore:
    """Implements ``ClaimCheckStore``. Picklable: each process opens its own filesystem."""

    settings: ClaimCheckSettings

    def check(self) -> None:
        """Open the filesystem. ConfigError: its package is missing, or an option is wrong."""
        _opened(self.settings)

    def read(self, names: Sequence[str]) -> Iterator[bytes | SourceError]:
        """Yield the content of each object in order, or why there is none. Closing the iterator ends the reading."""
        storage = _opened(self.settings)
        waiting = deque(names)
        reading: deque[Future[bytes | SourceError]] = deque()
        try:
            while waiting or reading:
                while waiting and len(reading) < storage.at_once():
                    reading.append(storage.pool.submit(storage.read, waiting.popleft()))
                yield reading.popleft().result()
        finally:
            for future in reading:
                future.cancel()


class _Storage:
    """A filesystem that one process has opened."""

    def __init__(self, settings: ClaimCheckSettings, files: Any) -> None:
        self._settings, self._files = settings, files
        self._address = settings.address
        self._largest = 1
        self.pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="applier-claim-check")
        # A thread of ours waits for the filesystem's own event loop: without a limit, without end.
        self._limits = {"timeout": TIMEOUT_S} if isinstance(files, AsyncFileSystem) else {}

    def at_once(self) -> int:
        """Return how many objects may be read at once, if they are as large as the largest so far."""
        return max(1, min(PARALLEL, MEMORY_BYTES // self._largest))

    def read(self, name: str) -> bytes | SourceError:
        """Return the content of one object, or why there is none. Raises nothing that a storage may cause."""
        try:
            content = self._retried(lambda: self._get(name))
        except Exception as error:  # noqa: BLE001 - filesystems raise what they like
            return self._explained(name, error)
        self._largest = max(self._largest, len(content))
        if len(content) > self._settings.max_object_bytes:
            return self._of_object("is larger than source.claim_check.max_object_size", name, LARGE_REMEDY)
        return content

    def _get(self, name: str) -> bytes:
        path, end = f"{self._address.root.rstrip('/')}/{name}", self._settings.max_object_bytes + 1
        try:
            content: bytes = self._files.cat_file(path, start=0, end=end, **self._limits)
        except Exception as error:
            if failure_of(error) is StorageFailure.EMPTY:
                return b""
            raise
        return content

    def _retried(self, get: Callable[[], bytes]) -> bytes:
        for attempt in stamina.retry_context(on=_may_pass, attempts=ATTEMPTS, timeout=None, wait_max=MAX_WAIT_S):
            with attempt:
                return get()
        raise AssertionError("stamina ends with a result or an error")  # pragma: no cover

    def _explained(self, name: str, error: Exception) -> SourceError:
        failure = failure_of(error)
        if failure is StorageFailure.ABSENT and self._has_container():
            explained: SourceError = self._of_object("does not exist", name, OBJECT_REMEDY)
        elif failure is StorageFailure.ABSENT:
            explained = self._of_storage("does not exist", name, FailureKind.CLAIM_CHECK_STORAGE, error)
        elif failure is StorageFailure.REFUSED:
            explained = self._of_storage("refuses access", name, FailureKind.CLAIM_CHECK_STORAGE, error)
        elif failure is StorageFailure.TRANSIENT:
            explained = self._of_storage("does not answer", name, FailureKind.UNREACHABLE, error)
        else:
            explained = self._of_storage("cannot be read", name, FailureKind.CLAIM_CHECK_STORAGE, error)
        explained.__cause__ = error
        return explained

    def _has_container(self) -> bool:
        """Whether the directory or the bucket is there. An unmounted one must not look as if every object had been deleted."""
        try:
            return bool(self._retried(lambda: self._files.exists(self._address.container)))
        except Exception:  # noqa: BLE001 - then nothing is known of the object either
            return False

    def _of_object(self, problem: str, name: str, remedy: Remedy) -> ProtocolError:
        return ProtocolError(f"the claim-check object {problem}", remedy=remedy, kind="claim_check", object=self._url(name))

    def _of_storage(self, problem: str, name: str, kind: FailureKind, error: Exception) -> SourceError:
        cause = self._settings.masked(f"{type(error).__name__}: {error}"[:300])
        return SourceError(f"the claim-check storage {problem}", remedy=STORAGE_REMEDY, kind=kind, object=self._url(name), cause=cause)

    def _url(self, name: str) -> str:
        return f"{self._settings.storage.rstrip('/')}/{name}"


def _may_pass(error: Exception) -> bool:
    return failure_of(error) is StorageFailure.TRANSIENT


_storages: dict[tuple[int, str], _Storage] = {}
_opening = Lock()


def _opened(settings: ClaimCheckSettings) -> _Storage:
    # By process, too: a filesystem with an event loop does not survive a fork.
    key = (os.getpid(), f"{settings.storage} {settings.max_object_bytes} {dict(settings.options)!r}")
    with _opening:
        if key not in _storages:
            _storages[key] = _Storage(settings, _filesystem(settings))
        return _storages[key]


def _filesystem(settings: ClaimCheckSettings) -> Any:
    protocol = settings.address.protocol
    try:
        kind = fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        extra = EXTRAS.get(protocol)
        install = f'Install it: pip install "cdc-applier[{extra}]"' if extra else "Install the package that fsspec names"
        message = f"the package that reads {protocol}:// is not installed"
        remedy = Remedy("claim-check.install-filesystem", f"{install}. On the executors, too")
        raise ConfigError(message, remedy=remedy, key="source.claim_check.storage", cause=error) from error
    except ValueError as error:
        message = f"source.claim_check.storage has an unknown scheme: {protocol!r}"
        raise ConfigError(
            message,
            remedy=Remedy("claim-check.use-known-scheme", "It is s3, gcs, azblob, file, nfs, or a protocol of fsspec"),
            key="source.claim_check.storage",
        ) from error
    try:
        files = kind(**_options(protocol, settings.options), skip_instance_cache=True)
    except Exception as error:  # noqa: BLE001 - filesystems raise what they like
        cause = settings.masked(f"{type(error).__name__}: {error}"[:300])
        message = "the options of the claim-check storage are wrong"
        raise ConfigError(
            message,
            remedy=Remedy("claim-check.see-filesystem-documentation", "See the documentation of the filesystem"),
            key="source.claim_check.options",
            cause=cause,
        ) from None
    if hasattr(files, "retries"):
        files.retries = 1  # s3fs retries too: see S3_CLIENT
    return files


def _options(protocol: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if protocol == LOCAL:
        return dict(given)
    # Every object is read once, and nothing is listed.
    options = {**given, "use_listings_cache": False}
    if protocol == "s3":
        client = {**S3_CLIENT, "retries": dict(S3_CLIENT["retries"])}
        options["config_kwargs"] = {**client, **options.get("config_kwargs", {})}
    return options
