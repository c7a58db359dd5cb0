"""How the records of a source are read to be applied: what the configuration says about upstream, for large rows and for DDLs."""

from collections.abc import Callable

from applier.config import Config
from applier.config.binlog_source import BinlogSourceConfig
from applier.sources.factory import binlog_decoder, decoder_of
from applier.sources.port import Decoder
from applier.upstream.row_lookup import TidbRowLookup
from applier.upstream.session_zone import SessionZone


def decoder_for(config: Config) -> Decoder:
    """Return the decoder. ConfigError: a package is missing that reads the claim-check storage, or an option of it is wrong."""
    if isinstance(config.source, BinlogSourceConfig):
        return binlog_decoder(config.source.selection())
    upstream = config.source.upstream_settings()
    lookup = None if upstream is None else TidbRowLookup(upstream)
    return decoder_of(config.source.protocol, config.source.claim_check_settings(), lookup, config.source.selection())


def zone_of_sessions(config: Config) -> Callable[[], str]:
    """Return what knows the time zone of upstream's sessions; it asks upstream when it is called first."""
    return SessionZone(config.source.ddl_time_zone, config.source.upstream_settings())
