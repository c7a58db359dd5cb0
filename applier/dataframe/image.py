"""The image of a row in a DataFrame: a JSON object, or a struct of one table's columns."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import msgspec
from pyspark.sql.types import DataType, StructType

from applier.dataframe.conversion import Conversion, conversion_to
from applier.model.errors import SourceError
from applier.model.events import Image, Value
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy

_ENCODER: Final = msgspec.json.Encoder()


class ImageForm(Protocol):
    """Makes the value of the columns ``before`` and ``after``."""

    def of(self, image: Image | None) -> Any:
        """Return the value of an image; None for None. SourceError (column_value, unknown_column), without a place."""
        ...


def json_object(values: Mapping[str, Value]) -> str:
    """Return columns as a JSON object: numbers as numbers, bytes in base64, DECIMAL and dates as text; nothing is rounded."""
    try:
        return _ENCODER.encode(values).decode()
    except UnicodeEncodeError:
        # Bytes that are not UTF-8 are lone surrogates; escaped they survive.
        plain = {name: b64encode(value).decode() if isinstance(value, bytes) else value for name, value in values.items()}
        return json.dumps(plain, separators=(",", ":"))


def key_object(image: Image | None) -> str | None:
    """Return the handle key of an image as a JSON object, in the order of the names; None if it has none."""
    values = handle_key(image)
    return json_object({name: values[name] for name in sorted(values, key=str.casefold)}) if values else None


def handle_key(image: Image | None) -> dict[str, Value]:
    """Return the values of the handle key."""
    return {name: column.value for name, column in (image or {}).items() if column.is_key}


class JsonImages:
    """Every column that the event has, as JSON."""

    def of(self, image: Image | None) -> str | None:
        """Return the image as a JSON object."""
        return None if image is None else json_object({name: column.value for name, column in image.items()})


@dataclass(frozen=True)
class TableImages:
    """The columns of one table by their types. ``is_strict``: a column that ``columns`` does not have is an error, not left out."""

    columns: tuple[tuple[str, DataType], ...]
    zone: str
    is_strict: bool

    @classmethod
    def of_struct(cls, struct: StructType, zone: str, *, is_strict: bool) -> "TableImages":
        """Take the columns from the type of ``after``."""
        return cls(tuple((field.name, field.dataType) for field in struct.fields), zone, is_strict)

    @cached_property
    def _conversions(self) -> dict[str, tuple[str, Conversion]]:
        # TiDB compares names of columns without regard to case.
        return {name.casefold(): (name, conversion_to(data_type, self.zone)) for name, data_type in self.columns}

    def check(self) -> None:
        """ConfigError if a column has a type that no value can have."""
        _ = self._conversions

    def of(self, image: Image | None) -> dict[str, Any] | None:
        """Return the image as the members of a struct. Columns that it lacks are NULL."""
        if image is None:
            return None
        members: dict[str, Any] = {}
        for name, column in image.items():
            found = self._conversions.get(name.casefold())
            if found is None:
                if self.is_strict:
                    raise self._unknown(name)
                continue
            member, convert = found
            try:
                members[member] = None if column.value is None else convert(column.value)
            except ValueError as error:
                raise self._misfit(member, "BINARY" if isinstance(column.value, bytes) else "STRING", error) from error
        return members

    def _unknown(self, name: str) -> SourceError:
        remedy = Remedy(
            "dataframe.reload-columns", "Load the DataFrame again, which reads the columns again. Or name them with the option columns"
        )
        return SourceError(
            "a row has a column that the table did not have when its columns were read",
            remedy=remedy,
            kind=FailureKind.UNKNOWN_COLUMN,
            column=name,
        )

    def _misfit(self, name: str, fitting: str, cause: ValueError) -> SourceError:
        wanted = ", ".join(f"`{each}` {fitting if each == name else kind.simpleString().upper()}" for each, kind in self.columns)
        return SourceError(
            f"a value does not fit the type of its column: {cause}",
            remedy=Remedy(
                "dataframe.widen-column-type", f'Give the column a type that holds it, for instance by the option columns="{wanted}"'
            ),
            kind=FailureKind.COLUMN_VALUE,
            column=name,
        )
