"""``[sink]``: the database that is written."""

from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator, model_validator
from sqlalchemy import URL

from applier.config.section import Consistency, Keyless, OnRejectedEvent
from applier.config.server import ServerSection
from applier.config.value import (
    Whole,
    check_schema,
    nearest,
    parse_url,
    refuse,
)
from applier.database.session import Tls
from applier.model.errors import Remedy
from applier.planner.keyless import EqualRows, EqualRowsRule
from applier.planner.table_check import DifferenceKind, check_pattern
from applier.sinks.kit import SinkKit
from applier.sinks.registry import kit_of
from applier.sinks.settings import SCHEMA, BulkLoad

DIFFERENCES: Final = frozenset(str(kind) for kind in DifferenceKind)


class SinkConfig(ServerSection):
    """The database, and how it is written."""

    url: SecretStr
    """URL of the server, without a database: ``mysql+pymysql://user@host:3306/``; or ``sqlite:///file.db``. ``@`` is ``%40``."""
    consistency: Consistency = Consistency.TRANSACTION
    writers: Annotated[Whole, Field(ge=1, le=64)] | None = None
    """With ``consistency = "row"``: how many connections write at once; None: one per core."""
    max_transaction_rows: Annotated[Whole, Field(ge=1)] = 100_000
    bulk_load: BulkLoad = BulkLoad.AUTO
    keyless: Keyless = Keyless.STOP
    equal_rows: EqualRows = EqualRows.STOP
    """Equal rows of one transaction in several records, in tables without a key: they may be real, or sent again."""
    equal_rows_of: dict[str, EqualRows] = Field(default_factory=dict)
    """Table (``*`` and ``?`` are wild) -> its ``equal_rows``. The first that fits decides."""
    on_rejected_row: OnRejectedEvent = OnRejectedEvent.STOP
    """A row that the sink rejects stops the run, or is stored in quarantine."""
    # Not named schema: a pydantic model has a method of that name.
    bookkeeping_schema: Annotated[str, Field(alias="schema"), AfterValidator(check_schema)] = SCHEMA
    """Schema of the bookkeeping tables; in SQLite the prefix of their names."""
    accept: dict[str, tuple[DifferenceKind, ...]] = Field(default_factory=dict)
    """Table (``*`` and ``?`` are wild) -> accepted differences from upstream's table."""

    @field_validator("bookkeeping_schema")
    @classmethod
    def _check_schema(cls, name: str, info: ValidationInfo) -> str:
        # Without a right URL nothing is known of the database, and the URL is refused.
        if "url" in info.data and kit_of(info.data["url"].get_secret_value()).is_system_schema(name.casefold()):
            raise refuse(
                f"is a system schema of the database: {name!r}",
                Remedy("config.choose-unused-schema", "Choose an unused schema, for instance applier"),
            )
        return name

    @field_validator("equal_rows_of")
    @classmethod
    def _check_equal_rows_of(cls, choices: dict[str, EqualRows]) -> dict[str, EqualRows]:
        for table in choices:
            if problem := check_pattern(table):
                raise refuse(f"{table!r} {problem}", Remedy("config.write-equal-rows", 'For instance "shop.visits" = "all"'))
        return choices

    @field_validator("accept", mode="before")
    @classmethod
    def _check_accept(cls, accept: Any) -> Any:
        for table, names in accept.items() if isinstance(accept, dict) else ():
            if problem := check_pattern(table):
                raise refuse(
                    f"{table!r} {problem}", Remedy("config.write-accepted-differences", 'For instance "shop.orders" = ["trigger"]')
                )
            for name in names if isinstance(names, list | tuple) else ():
                if name not in DIFFERENCES:
                    raise refuse(f"has an unknown kind of difference: {name!r}", nearest(str(name), DIFFERENCES))
        return accept

    @staticmethod
    def parse(text: str) -> URL:
        """Read the URL of any sink."""
        return parse_url(text)

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if self.tls != Tls() and self.kit.local:
            raise refuse(f"sets TLS for {self.kit.local}", Remedy("config.remove-sink-tls-keys", "Remove the tls_ keys"))
        return self

    @property
    def kit(self) -> SinkKit:
        """The sink's database."""
        return kit_of(self.url.get_secret_value())

    @property
    def equal_rows_rule(self) -> EqualRowsRule:
        """What happens to equal rows of each table without a key."""
        return EqualRowsRule(self.equal_rows, tuple(self.equal_rows_of.items()))
