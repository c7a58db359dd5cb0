"""What ``[source]`` has for each kind of source: which tables, under which names, and what stops a run."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, model_validator

from applier.config.choice import OnRejectedEvent
from applier.config.section import Seconds, Section
from applier.config.selection import EventFilterConfig, RouteConfig, selection_of
from applier.config.value import split_text
from applier.model.topic_name import PartitionLimits
from applier.selection import TableSelection
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.upstream.settings import UpstreamSettings


class SelectedSource(Section):
    """The keys of every source. ``time_zone`` is a source's own: a binlog's TIMESTAMPs are UTC."""

    tables: Annotated[tuple[str, ...], BeforeValidator(split_text)] = ()
    """TiDB's table filter: the last rule that matches counts. None: all tables."""
    route: tuple[RouteConfig, ...] = ()
    """Other names in the sink."""
    event_filter: tuple[EventFilterConfig, ...] = ()
    """Kinds of events that are skipped."""
    on_unreadable: OnRejectedEvent = OnRejectedEvent.STOP
    """A record that cannot be read stops the run, or is stored in quarantine."""
    stall_after_s: Seconds = 60.0
    has_whole_transactions: ClassVar[bool] = False

    @model_validator(mode="after")
    def _check_selection(self) -> Self:
        self.selection()
        return self

    def selection(self) -> TableSelection:
        """Return what the replica has of upstream, and under which names."""
        return selection_of(self.tables, self.route, self.event_filter)

    def required_partitions(self) -> PartitionLimits | None:
        """Return how many partitions of each limited topic are required; None without a limit."""
        return None

    def claim_check_settings(self) -> ClaimCheckSettings | None:
        """Return where the objects of large rows are; None: nowhere."""
        return None

    def upstream_settings(self) -> UpstreamSettings | None:
        """Return where upstream's own rows are; None: it is not said."""
        return None

    def users(self) -> dict[str, str]:
        """Return the database users that the section names, by what they are for (``applier grants``)."""
        return {}

    def time_zone_warning(self) -> dict[str, Any] | None:
        """Return the facts of a warning if TIMESTAMP text of the zone can have two meanings, else None."""
        return None
