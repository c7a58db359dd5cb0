"""Read, merge and check the configuration; report every problem with its key and a remedy."""

import os
import stat
import tomllib
from collections.abc import Mapping, MutableMapping
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from applier.config.model import Config
from applier.config.source import KAFKA, KINDS, of_other_kind
from applier.model.errors import NO_REMEDY, ConfigError, Remedy

# --- origin ----------------------------------------------------------------------------------------------------------
# Where the values come from: a TOML file, the environment over it, the caller over both.
#
# pydantic-settings reads and merges them. Added here: errors name the file; unknown variables are refused; text that is not JSON stays
# text; below ``source.kafka`` and ``spark.conf`` the rest of a variable's name is the property, in lower case with ``.`` for ``_``
# (``APPLIER_SOURCE__KAFKA__SASL_PASSWORD``). Empty variables count as not set: container tools pass unset ones so.


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
            "the configuration file does not exist",
            remedy=Remedy("config.give-config-path", "Give its path with --config, or write one: `applier init`"),
            file=path,
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


# --- load ------------------------------------------------------------------------------------------------------------


ALL_AT_ONCE: Final = Remedy("config.correct-each-key", "Correct these keys: each line says how")
SOURCE_KEY: Final = 2
"""The steps of a key of ``[source]`` itself."""


def load_config(
    path: Path | None,
    overrides: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """Return the configuration. ``overrides`` (nested as the file is) override the environment, which overrides the file (None: no file).

    Raises ConfigError that names the file or variable, the key and a remedy; no message quotes a value that may be a secret.
    """
    settings = settings_class(path, environment)
    try:
        # A plain Config: one that knows its sources would read them again whenever it is validated.
        return Config.model_validate(dict(settings(**(overrides or {}))))
    except ValidationError as error:
        # Without the cause: pydantic's text quotes the input, which may be a secret.
        raise _explain(error, path, EnvironmentSource(settings, environment)) from None


def _explain(error: ValidationError, path: Path | None, from_environment: EnvironmentSource) -> ConfigError:
    """Name every problem: one as the message, several as one fact per key, each with its own remedy."""
    problems = [_KeyProblem.of(detail) for detail in error.errors(include_url=False, include_input=False)]
    facts: dict[str, Any] = {} if path is None else {"file": path}
    variables = [variable for problem in problems if problem.key for variable in from_environment.variables_of(problem.key)]
    if variables:
        facts["environment"] = " ".join(dict.fromkeys(variables))
    by_key: dict[str, list[_KeyProblem]] = {}
    for problem in dict.fromkeys(problems):
        by_key.setdefault(".".join(problem.key), []).append(problem)
    if len(by_key) == 1:
        ((key, of_key),) = by_key.items()
        remedy = reduce(Remedy.then, dict.fromkeys(problem.remedy for problem in of_key if problem.remedy), NO_REMEDY)
        return ConfigError("; ".join(f"{key} {problem.text}".strip() for problem in of_key), remedy=remedy, key=key, **facts)
    lines: dict[str, Any] = {key or "configuration": " ".join(problem.sentences for problem in of_key) for key, of_key in by_key.items()}
    return ConfigError(f"the configuration has {len(by_key)} errors", remedy=ALL_AT_ONCE, **facts, **lines)


class _KeyProblem(NamedTuple):
    """What is wrong with one key, in words that follow its name, and what to do."""

    key: tuple[str, ...]
    text: str
    remedy: Remedy

    @classmethod
    def of(cls, detail: ErrorDetails) -> "_KeyProblem":
        kind, steps = _kind_and_steps(detail["loc"])
        key = _key(steps, kind)
        other = of_other_kind(kind, key[1]) if detail["type"] == "extra_forbidden" and kind and len(key) == SOURCE_KEY else None
        return cls(key, *other) if other else cls(key, _problem(detail, key), _remedy(detail, key, kind))

    @property
    def sentences(self) -> str:
        return f"{_sentence(self.text)} {_sentence(self.remedy)}".strip()


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "?")) else f"{text}."


def _kind_and_steps(loc: tuple[int | str, ...]) -> tuple[str, tuple[int | str, ...]]:
    """Return the kind of source, which pydantic adds as a step below ``source``, and the steps without it."""
    if loc[:1] == ("source",) and len(loc) > 1 and loc[1] in KINDS:
        return str(loc[1]), (loc[0], *loc[2:])
    return "", loc


def _key(steps: tuple[int | str, ...], kind: str) -> tuple[str, ...]:
    """Return the key without the steps that pydantic adds for members of a union or a tuple."""
    key: list[str] = []
    model: Any = Config
    for part in steps:
        # Below source.kafka and spark.conf a part is the name of a property, dots included, and belongs to the key.
        if model is None and len(key) > 1 and key[:2] not in (["source", "kafka"], ["spark", "conf"]):
            break
        key.append(str(part))
        model = _model_of(model, str(part), kind)
    return tuple(key)


def _model_of(model: Any, key: str, kind: str) -> type[BaseModel] | None:
    if model is Config and key == "source":
        return KINDS[kind or KAFKA]
    field = model.model_fields.get(key) if model is not None else None
    annotation = field.annotation if field is not None else None
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _problem(detail: ErrorDetails, key: tuple[str, ...]) -> str:
    match detail["type"]:
        case "extra_forbidden":
            return "is not a configuration key"
        case "missing":
            return "is missing"
        case "refused":
            return str(detail["ctx"]["message"])
        case "model_type" | "dict_type":
            return "must be a table"
        case "string_pattern_mismatch" if key == ("name",):
            return "must be 1 to 48 letters, digits, '_', '.' or '-'"
        case _:
            return "is invalid: " + detail["msg"][0].lower() + detail["msg"][1:]


def _remedy(detail: ErrorDetails, key: tuple[str, ...], kind: str) -> Remedy:
    match detail["type"]:
        case "extra_forbidden":
            return _nearest_key(key, kind)
        case "missing":
            return Remedy("config.set-missing-key", f"Set it in the configuration file, or {variable_of(key)} in the environment")
        case "refused":
            remedy: Remedy = detail["ctx"]["remedy"]
            return remedy
        case "model_type" | "dict_type":
            return Remedy("config.write-section", f"Write [{'.'.join(key)}] on its own line, with its keys below it")
        case "float_parsing" | "float_type":
            return Remedy("config.write-seconds", "Write a number of seconds, for instance 15 or 0.5")
        case _:
            return NO_REMEDY


def _keys(model: type[BaseModel]) -> list[str]:
    """Return the keys of a section as an operator writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _nearest_key(key: tuple[str, ...], kind: str) -> Remedy:
    """Suggest the nearest key of the section, or another section that has a key of that name."""
    model: Any = Config
    for part in key[:-1]:
        model = _model_of(model, part, kind)
    siblings = _keys(model)
    near = get_close_matches(key[-1], siblings, n=1)
    if near:
        return Remedy("config.correct-key", f"Did you mean {'.'.join((*key[:-1], near[0]))}?")
    # A right key in the wrong section is the commonest mistake.
    for section in Config.model_fields:
        inner = _model_of(Config, section, kind)
        if inner is not None and key[-1] in _keys(inner):
            return Remedy("config.move-key", f"Did you mean {section}.{key[-1]}?")
    return Remedy("config.choose-key", f"The keys here are: {', '.join(siblings)}")
