"""``[ddl]``: what happens to each type of DDL, and how DDLs are run."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, field_validator, model_validator

from applier.config.choice import DdlPolicy
from applier.config.section import Section
from applier.config.value import nearest, refuse
from applier.ddl.policy import DDL_TYPE_NAMES
from applier.sinks.settings import Collations

DDL_TYPES: Final = frozenset(DDL_TYPE_NAMES.values())

Collation = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")]


class DdlConfig(Section):
    """A policy for each type that the operator sets, beside the keys below."""

    # The types are keys of this very table, so that truncate_table = "stop" stands by itself.
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, DdlPolicy] = Field(init=False)

    background: bool = False
    """Whether a new non-unique index is built in the background."""
    collations: dict[str, Collation] = Field(default_factory=dict)
    """What the sink calls upstream's collations."""

    @model_validator(mode="before")
    @classmethod
    def _check_types(cls, section: Any) -> Any:
        known = DDL_TYPES | cls.model_fields.keys()
        for name in section if isinstance(section, Mapping) else ():
            if name not in known:
                raise refuse(f"has an unknown DDL type: {name!r}", nearest(name, known))
        return section

    @field_validator("collations")
    @classmethod
    def _fold_names(cls, collations: dict[str, str]) -> dict[str, str]:
        return {name.casefold(): own.casefold() for name, own in collations.items()}

    @property
    def policies(self) -> dict[str, DdlPolicy]:
        """The policies that the operator sets, by DDL type."""
        return dict(self.__pydantic_extra__)

    @property
    def collation_pairs(self) -> Collations:
        """The operator's collations as the sink takes them."""
        return tuple(sorted(self.collations.items()))
