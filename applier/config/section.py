"""What all sections of the configuration share."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

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
