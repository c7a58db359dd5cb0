"""Where the values come from: a TOML file, the environment over it, the caller over both.

pydantic-settings reads and merges them. Added here: errors name the file; unknown variables are refused; text that is not JSON stays
text; below ``source.kafka`` and ``spark.conf`` the rest of a variable's name is the property, in lower case with ``.`` for ``_``
(``APPLIER_SOURCE__KAFKA__SASL_PASSWORD``). Empty variables count as not set: container tools pass unset ones so.
"""

import os
import stat
import tomllib
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from applier.config.model import Config
from applier.model.errors import ConfigError
from applier.model.remedy import Remedy

Values: TypeAlias = dict[str, Any]

PREFIX: Final = "APPLIER_"
DELIMITER: Final = "__"
OPEN_TABLES: Final = ("source__kafka__", "spark__conf__")
"""Tables of other programs' properties, whose names have dots."""


class Settings(BaseSettings, Config):
    """The configuration with its sources. The program gets a plain ``Config``, which reads nothing."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter=DELIMITER,
        env_nested_max_split=2,  # section, key, and a property that is left as it is
        env_ignore_empty=True,
    )


def settings_class(path: Path | None, environment: Mapping[str, str] | None) -> type[Settings]:
    """Return the class whose instances read the file and the environment (None: the process's own).

    An instance raises ConfigError if a source cannot be read, ValidationError if a value is invalid.
    """

    class _Settings(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            del env_settings, dotenv_settings, file_secret_settings
            file = () if path is None else (_file_source(settings_cls, path),)
            return init_settings, EnvironmentSource(settings_cls, environment), *file

    return _Settings


def _file_source(settings_cls: type[BaseSettings], path: Path) -> TomlConfigSettingsSource:
    """Read a TOML file; ConfigError names it and what is wrong with it."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # the library passes over it without a word
            what = "Is a directory" if stat.S_ISDIR(mode) else "Is not a regular file"
            raise ConfigError(
                f"the configuration file cannot be read: {what}",
                remedy=Remedy("config.give-config-file", "Give the path of a file with --config"),
                file=path,
            )
        return TomlConfigSettingsSource(settings_cls, path)
    except FileNotFoundError as error:
        raise ConfigError(
            "the configuration file does not exist", remedy=Remedy("config.give-config-path", "Give its path with --config"), file=path
        ) from error
    except OSError as error:
        raise ConfigError(
            f"the configuration file cannot be read: {error.strerror}",
            remedy=Remedy("config.check-file-permissions", "Check its permissions"),
            file=path,
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            "the configuration file is not UTF-8", remedy=Remedy("config.save-as-utf8", "Save it as UTF-8"), file=path
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"the configuration file is not TOML: {error}",
            remedy=Remedy("config.see-example-file", "See `applier docs configuration`"),
            file=path,
        ) from error


class EnvironmentSource(EnvSettingsSource):
    """``APPLIER_SECTION__KEY`` sets ``section.key``, ``APPLIER_NAME`` sets ``name``."""

    def __init__(self, settings_cls: type[BaseSettings], environment: Mapping[str, str] | None = None) -> None:
        super().__init__(settings_cls)
        given = os.environ if environment is None else environment
        # In the order of their names a whole table stands before its single properties, which override it.
        self.env_vars = {_with_dots(name.lower()): text for name, text in sorted(given.items()) if text}

    def __call__(self) -> Values:
        """Collect the keys that the environment sets. Unknown sections are included, so that the model refuses them by name."""
        values: Values = super().__call__()
        for name in self.env_vars:
            section, delimiter, rest = name.removeprefix(PREFIX.lower()).partition(DELIMITER)
            # Names without ``__`` that are no key (APPLIER_DEBUG, …) are not configuration.
            if name.startswith(PREFIX.lower()) and delimiter and section not in self.settings_cls.model_fields:
                values.setdefault(section, {})[rest] = self.env_vars[name]
        return values

    def variables_of(self, path: tuple[str, ...]) -> list[str]:
        """Name the variables that set the key ``path``, keys below it, or the table that holds it."""
        if not _has_path(self(), path):
            return []
        wanted = variable_of(path)
        given = [name.replace(".", "_").upper() for name in self.env_vars]
        below = [name for name in given if name == wanted or name.startswith(wanted + DELIMITER)]
        return below or [name for name in given if wanted.startswith(name + DELIMITER)]

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Read lists and tables in JSON, and leave other text to the model; ConfigError names the variable of broken JSON."""
        if not str(value).startswith(("[", "{")):
            return value
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            variables = " ".join(name.upper() for name, text in self.env_vars.items() if text == value)
            message = f"the environment variable {variables} starts like JSON but is not valid JSON"
            raise ConfigError(message, remedy=Remedy("config.write-json", "Write a JSON list or object, or plain text")) from None


def remove_from_environment(environment: MutableMapping[str, str]) -> None:
    """Remove the configuration's variables after they were read: a JVM and Python workers inherit the environment, and it holds secrets."""
    for name in list(environment):
        # Lower case: pydantic-settings reads names of variables without regard to case.
        section, delimiter, _ = name.lower().removeprefix(PREFIX.lower()).partition(DELIMITER)
        if name.lower().startswith(PREFIX.lower()) and (delimiter or section in Config.model_fields):
            # Only ours: APPLIER_DEBUG and the failpoints of tests have no section and stay.
            del environment[name]


def _with_dots(name: str) -> str:
    for table in (PREFIX.lower() + table for table in OPEN_TABLES):
        if name.startswith(table):
            return table + name.removeprefix(table).replace("_", ".")
    return name


def variable_of(path: tuple[str, ...]) -> str:
    """Return the environment variable that sets the key ``path``."""
    return PREFIX + DELIMITER.join(part.replace(".", "_") for part in path).upper()


def _has_path(values: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Return whether ``values`` sets the key ``path`` or a table that should hold it."""
    inner: Any = values
    for part in path:
        if not isinstance(inner, Mapping):
            return True
        if part not in inner:
            return False
        inner = inner[part]
    return True
