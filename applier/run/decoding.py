"""How the records of a source are read to be applied: what the configuration says about upstream, for large rows and for DDLs."""

from collections.abc import Callable

from applier.config import Config
from applier.sources.factory import kit_of
from applier.sources.port import Decoder
from applier.upstream.row_lookup import TidbRowLookup
from applier.upstream.session_zone import SessionZone


def decoder_for(config: Config) -> Decoder:
    """Return the decoder. ConfigError: a package is missing that reads the claim-check storage, or an option of it is wrong."""
    upstream = config.source.upstream_settings()
    lookup = None if upstream is None else TidbRowLookup(upstream)
    return kit_of(config.source_settings()).decoder(config.source.selection(), config.source.claim_check_settings(), lookup)


def zone_of_sessions(config: Config) -> Callable[[], str]:
    """Return what knows the time zone of upstream's sessions; it asks upstream when it is called first."""
    return SessionZone(config.source.ddl_time_zone, config.source.upstream_settings())
