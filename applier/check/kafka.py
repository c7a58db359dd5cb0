"""Examines Kafka: whether it answers, which topics and partitions there are, whether they may be read and still hold what is needed."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from confluent_kafka.admin import AdminClient

from applier.check.shared_facts import SharedFacts
from applier.check.time_zone import session_zone_finding
from applier.check.topic_events import examine_events
from applier.config import Config
from applier.coordinator.starting_point import check_beginning, streams_that_begin_late
from applier.coordinator.streams import check_excluded, check_known, is_required, missing
from applier.model.errors import ApplierError, InvariantViolation, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.finding import CheckFinding, not_examined, of_error, ok
from applier.model.position import Listing, Ts
from applier.model.topic_name import is_pattern
from applier.sinks.progress import Progress
from applier.sources.factory import open_source
from applier.sources.kafka.error_meaning import refusals_as_config_errors
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.kafka.topic_settings import compaction_error, topic_policies, unreadable_topics
from applier.sources.port import Source
from applier.telemetry.wording import MOST_NAMED, named_some

REACHED: Final = "Kafka"
TOPICS: Final = "topics"
AUTHORISED: Final = "topics: permission"
KEPT: Final = "topics: settings"
POSITIONS: Final = "topics: positions"


def examine(config: Config, shared: SharedFacts, *, patience_s: float, wait_s: float | None = None) -> Iterator[CheckFinding]:
    """Implement ``Examination`` for the topics of a changefeed."""
    settings = config.source_settings()
    if not isinstance(settings, KafkaSettings):
        raise InvariantViolation("the checks of another source", settings=type(settings).__name__)
    if wait_s is not None:
        yield session_zone_finding(config)
    yield from examine_kafka(config, settings, shared, patience_s=patience_s, wait_s=wait_s)


def examine_kafka(
    config: Config, kafka: KafkaSettings, shared: SharedFacts, *, patience_s: float, wait_s: float | None = None
) -> Iterator[CheckFinding]:
    """Examine the cluster and its topics. ``wait_s``: also read the topics' ends, and wait so long for resolved events; None: do not."""
    settings = replace(kafka, unreachable_after_s=patience_s)
    try:
        with open_source(settings) as source:
            listing = yield from _listed(settings, source)
            if listing is not None:
                yield from _permissions(settings, listing)
                yield from _settings(settings, listing)
                if wait_s is not None:
                    progress = shared.progress(2 * patience_s)
                    yield from position_findings(config, source, listing, progress, shared.start_ts)
                    yield from examine_events(config, source, shared, listing, progress, wait_s)
    finally:
        shared.set_tables(frozenset())


def _listed(settings: KafkaSettings, source: Source) -> Generator[CheckFinding, None, Listing | None]:
    try:
        listing = source.listing()
    except SourceError as error:
        if error.kind is FailureKind.UNREACHABLE:
            yield of_error(REACHED, error)
            return None
        yield ok(REACHED, f"{settings.bootstrap_servers} answers")
        yield from _each_topic(settings, error)
        return None
    yield ok(REACHED, f"{settings.bootstrap_servers} answers")
    topics = sorted({stream.topic for stream in listing.extents})
    yield ok(TOPICS, f"{named_some(topics)}: {len(listing.extents)} partitions")
    return listing


def _each_topic(settings: KafkaSettings, first: SourceError) -> Iterator[CheckFinding]:
    """Ask for each topic alone, so that all wrong ones are named at once."""
    names = [name for name in settings.topics if not is_pattern(name)]
    errors = [error for name in names if (error := _error_of(replace(settings, topics=(name,)))) is not None]
    for error in errors or [first]:
        yield of_error(TOPICS, error)


def _error_of(settings: KafkaSettings) -> SourceError | None:
    try:
        with open_source(settings) as source:
            source.listing()
    except SourceError as error:
        return error
    return None


def _permissions(settings: KafkaSettings, listing: Listing) -> Iterator[CheckFinding]:
    topics = {stream.topic for stream in listing.extents}
    refused = unreadable_topics(settings, topics)
    if refused is None:
        yield ok(AUTHORISED, "the brokers do not tell; reading shows it")
    elif refused:
        error = SourceError(
            "the user has no permission to read the topic",
            remedy=Remedy("check.grant-read", "Grant READ on the topic to this user"),
            kind=FailureKind.UNAUTHORIZED,
            topic=", ".join(refused),
        )
        yield of_error(AUTHORISED, error)
    else:
        yield ok(AUTHORISED, "the user may read each topic")


def _settings(settings: KafkaSettings, listing: Listing) -> Iterator[CheckFinding]:
    with refusals_as_config_errors(settings):
        admin = AdminClient(settings.client())
    found = topic_policies(settings, admin, {stream.topic for stream in listing.extents})
    if found is None:
        yield ok(KEPT, "a mock cluster does not have them")
        return
    for topic, reason in found.unexamined.items():
        detail = f"a compacted topic loses rows, and the brokers do not show the settings of {topic} ({reason})"
        yield not_examined(
            KEPT,
            detail,
            Remedy("check.grant-describe-configs", "Grant DESCRIBE_CONFIGS on the topic to this user: cleanup.policy must be delete"),
        )
    for topic in found.compacted:
        yield of_error(KEPT, compaction_error(topic, found.known[topic]))
    if found.known and not found.compacted:
        yield ok(KEPT, "no topic is compacted" if not found.unexamined else f"not compacted: {', '.join(sorted(found.known))}")


def position_findings(config: Config, source: Source, listing: Listing, progress: Progress | None, start_ts: Ts) -> Iterator[CheckFinding]:
    """Examine whether the topics still hold what the replica reads next, with the checks of a start."""
    count = 0
    for error in _position_errors(config, source, listing, progress, start_ts):
        count += 1
        if count <= MOST_NAMED:
            yield of_error(POSITIONS, error)
    if count == 0:
        where = "what the replica reads next" if progress is not None else "what a new replica needs"
        yield ok(POSITIONS, f"the topics hold {where}")


def _position_errors(config: Config, source: Source, listing: Listing, progress: Progress | None, start_ts: Ts) -> Iterator[ApplierError]:
    limits = config.source.required_partitions()
    positions = {} if progress is None else progress.positions
    required = {stream: extent for stream, extent in listing.extents.items() if is_required(stream, limits)}
    for stream in sorted(listing.extents.keys() - required.keys()):
        yield from _raised(partial(check_excluded, stream, listing.extents[stream]))
    for stream, position in sorted(positions.items()):
        if stream in required:
            yield from _raised(partial(check_known, stream, required[stream], position.next_offset, position.next_offset))
        elif stream not in listing.extents:
            yield missing(stream)
    start_ts = start_ts if progress is None else progress.start_ts
    late = streams_that_begin_late(Listing(required), positions)
    for stream in late:
        yield from _raised(partial(check_beginning, [stream], Listing(required), start_ts, source.times.holds_all_since))


def _raised(check: Callable[[], None]) -> Iterator[ApplierError]:
    try:
        check()
    except ApplierError as error:
        yield error
