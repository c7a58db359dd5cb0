"""Where claim-check objects are. Pure values: they cross to executors, which open the storage themselves."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from applier.model.errors import Remedy

MAX_OBJECT_BYTES: Final = 256 << 20
"""TiDB's largest row is 120 MiB (txn-entry-size-limit); the object is base64 of JSON, which takes more."""

LOCAL: Final = "file"
_PROTOCOLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("", "file", "local", "nfs"), LOCAL),
        "s3": "s3",
        **dict.fromkeys(("gcs", "gs"), "gs"),
        **dict.fromkeys(("azblob", "azure", "az", "abfs"), "abfs"),
    }
)
"""Schemes as TiCDC writes them -> fsspec's protocols. Any other scheme is fsspec's own."""

EXTRAS: Final[Mapping[str, str]] = MappingProxyType({"s3": "s3", "gs": "gcs", "abfs": "azure"})
"""Protocols whose package an extra of ours installs."""


class StorageAddress(NamedTuple):
    """A storage as fsspec names it: ``root`` is a directory, or bucket and prefix, without a slash at the end."""

    protocol: str
    root: str

    @property
    def container(self) -> str:
        """What must exist even where the storage holds no object: the directory, or the bucket."""
        return self.root if self.protocol == LOCAL else self.root.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCheckSettings:
    """The storage of one changefeed. ``options`` go to the filesystem of fsspec; they may hold secrets and are never shown."""

    storage: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    max_object_bytes: int = MAX_OBJECT_BYTES

    @property
    def address(self) -> StorageAddress:
        """Return where the storage is."""
        return address_of(self.storage)

    def masked(self, text: str) -> str:
        """Return ``text``, which another has written, without the secrets among the options."""
        for value in _secrets(self.options):
            text = text.replace(value, "***")
        return text


SECRET: Final = re.compile(r"password|secret|token|key|credential|connection_string|sas")
"""Names of options whose values are never shown."""


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and value and SECRET.search(name.casefold()):
            yield value


class BadStorage(ValueError):
    """What is wrong with a storage (a text that follows its name), and the remedy."""

    def __init__(self, problem: str, remedy: Remedy) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


FORM: Final = Remedy(
    "claim-check.write-storage",
    'Write "s3://bucket/path", "gcs://bucket/path", "azblob://container/path" or the absolute path of a directory',
)


def address_of(storage: str) -> StorageAddress:
    """Read the URI of a storage. BadStorage if it is not one, or holds more than a location."""
    if "::" in storage:
        raise BadStorage("chains several filesystems ('::')", FORM)
    if "://" not in storage:
        return _directory(storage)
    parts = urlsplit(storage)
    # TiCDC's own URIs hold credentials there; they are no part of where an object is.
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise BadStorage(
            "holds more than a location",
            Remedy("claim-check.write-storage-without-options", f"{FORM}. Put keys and endpoints into [source.claim_check.options]"),
        )
    protocol = _PROTOCOLS.get(parts.scheme, parts.scheme)
    if protocol == LOCAL:
        return _directory(unquote(parts.netloc + parts.path))
    root = (parts.netloc + parts.path).strip("/")
    if not root:
        raise BadStorage("names no bucket", FORM)
    return StorageAddress(protocol, root)


def _directory(path: str) -> StorageAddress:
    # Executors have other working directories.
    if not path.startswith("/"):
        raise BadStorage("is not an absolute path", FORM)
    return StorageAddress(LOCAL, path.rstrip("/") or "/")
