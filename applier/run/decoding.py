"""How the records of a source are read to be applied: what the configuration says about rows that were too large for Kafka."""

from applier.config import Config
from applier.config.binlog_source import BinlogSourceConfig
from applier.sources.factory import binlog_decoder, decoder_of
from applier.sources.port import Decoder
from applier.upstream.row_lookup import TidbRowLookup


def decoder_for(config: Config) -> Decoder:
    """Return the decoder. ConfigError: a package is missing that reads the claim-check storage, or an option of it is wrong."""
    if isinstance(config.source, BinlogSourceConfig):
        return binlog_decoder(config.source.selection())
    upstream = config.source.upstream_settings()
    lookup = None if upstream is None else TidbRowLookup(upstream)
    return decoder_of(config.source.claim_check_settings(), lookup, config.source.selection())
