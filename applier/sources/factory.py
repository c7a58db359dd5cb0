"""Opens the source that the settings name, and gives its decoder to callers that have records but need no connection.

The one place that knows which sources there are: a second one adds its settings here.
"""

from collections.abc import Callable

from applier.planner.port import RowLookup
from applier.selection import EVERYTHING, TableSelection
from applier.sources.binlog.decoder import BINLOG, BinlogDecoder
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.source import BinlogSource
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.claim_check.store import FsspecStore
from applier.sources.formats import FORMATS
from applier.sources.kafka.client import KafkaSource
from applier.sources.kafka.reader import KafkaRangeReader
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.port import Decoder, RangeReader, Source
from applier.sources.ticdc.large_row import REFUSED, WholeRowSources
from applier.sources.ticdc.tso import TSO_TIMELINE


def open_source(
    settings: KafkaSettings | BinlogSettings, decoder: Decoder | None = None, zone_of_sessions: Callable[[], str] = str
) -> Source:
    """Make the source. ConfigError if a property is refused; it connects when it is first asked.

    ``decoder``: of ``decoder_of`` or ``binlog_decoder``. None is for commands that apply nothing: rows that were too large for Kafka are
    refused. ``zone_of_sessions``: returns the time zone of upstream's sessions, '' if it is not known; a binlog says it of each statement.
    """
    if isinstance(settings, BinlogSettings):
        return BinlogSource(settings, decoder if isinstance(decoder, BinlogDecoder) else BINLOG)
    return KafkaSource(settings, decoder or plain_decoder(settings), TSO_TIMELINE, zone_of_sessions)


def range_reader(settings: KafkaSettings) -> RangeReader:
    """Return the reading part of a source alone, for executors; it connects where it reads."""
    return KafkaRangeReader(settings)


def plain_decoder(settings: KafkaSettings | BinlogSettings, selection: TableSelection = EVERYTHING) -> Decoder:
    """Return how records are read by commands that apply nothing: rows that were too large for Kafka are refused."""
    return BinlogDecoder(selection) if isinstance(settings, BinlogSettings) else FORMATS[settings.protocol](REFUSED, selection)


def decoder_of(
    protocol: str, claim_check: ClaimCheckSettings | None, lookup: RowLookup | None = None, selection: TableSelection = EVERYTHING
) -> Decoder:
    """Return how records are read to be applied. ConfigError: a package is missing that reads the storage, or an option of it is wrong.

    ``protocol``: a name of ``FORMATS``. ``lookup``: what reads upstream's rows, of which the topic has the handle key only.
    """
    store = None if claim_check is None else FsspecStore(claim_check)
    if store is not None:
        store.check()
    return FORMATS[protocol](WholeRowSources(claims=store, lookup=lookup), selection)


def binlog_decoder(selection: TableSelection = EVERYTHING) -> Decoder:
    """Return how the records of a binlog are read to be applied."""
    return BinlogDecoder(selection)
