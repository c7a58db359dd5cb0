"""``[source.claim_check]``: where the objects of rows that were too large for Kafka are."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, field_validator, model_validator

from applier.config.secret import with_files_read
from applier.config.section import Section
from applier.config.value import Whole, parse_size, refuse
from applier.model.remedy import Remedy
from applier.sources.claim_check.settings import FORM, MAX_OBJECT_BYTES, BadStorage, ClaimCheckSettings, place_of

OWNED: Final = frozenset({"asynchronous", "loop", "skip_instance_cache", "use_listings_cache"})
"""Options of every filesystem of fsspec that the applier sets itself."""
_OPTION: Final = "options__"
"""``APPLIER_SOURCE__CLAIM_CHECK__OPTIONS__SECRET`` sets one option; the environment's names are cut before it."""


class ClaimCheckConfig(Section):
    """The storage of the changefeed's large messages, and how it is read. ``options`` go to fsspec's filesystem."""

    storage: str | None = None
    """``s3://bucket/path``, ``gcs://…``, ``azblob://…``, a directory, ``nfs:///mnt/…``. Object stores need the extra s3, gcs or azure."""
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
    """Options of the filesystem (s3fs, gcsfs, adlfs); with ``.file`` after a name: the file that holds its value."""
    max_object_size: Annotated[Whole, BeforeValidator(parse_size)] = MAX_OBJECT_BYTES
    """A larger object is refused."""

    @model_validator(mode="before")
    @classmethod
    def _take_single_options(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        single = {str(name).removeprefix(_OPTION): value for name, value in values.items() if str(name).startswith(_OPTION)}
        if not single:
            return values
        others = {name: value for name, value in values.items() if not str(name).startswith(_OPTION)}
        given = others.get("options", {})
        return {**others, "options": {**given, **single} if isinstance(given, Mapping) else given}

    @field_validator("storage")
    @classmethod
    def _check_storage(cls, storage: str | None) -> str | None:
        if storage is not None:
            try:
                place_of(storage)
            except BadStorage as bad:
                # Not quoted: the producer's own URI holds credentials.
                raise refuse(bad.problem, bad.remedy) from None
        return storage

    @field_validator("options")
    @classmethod
    def _read_options(cls, given: dict[str, Any]) -> dict[str, Any]:
        texts = with_files_read({name: value for name, value in given.items() if isinstance(value, str)})
        options = {name: value for name, value in given.items() if not isinstance(value, str)} | texts
        for name in OWNED & options.keys():
            raise refuse(f"cannot set {name!r}", Remedy("config.remove-own-storage-option", "Remove it: the applier sets it itself"))
        return options

    @model_validator(mode="after")
    def _check_use(self) -> "ClaimCheckConfig":
        if self.storage is None and self.options:
            raise refuse("sets options without storage", FORM)
        return self

    def settings(self) -> ClaimCheckSettings | None:
        """Return where the objects are; None if no storage is configured."""
        if self.storage is None:
            return None
        return ClaimCheckSettings(storage=self.storage, options=self.options, max_object_bytes=self.max_object_size)
